"""The custom resource MultiStepTrial: its spec and status as pydantic models, and the CRD made from them."""
