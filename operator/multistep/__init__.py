"""Kubernetes operator that runs multi-step agent evaluations in the Harbor task format."""
