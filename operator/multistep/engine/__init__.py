"""The engine: `decide`, and one module per kind of decision. Pure: no clock, no I/O, no kopf."""
