"""All that talks to the API server: observe a trial and its children, apply what the engine decided."""
