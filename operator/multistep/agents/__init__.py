"""Agents as data: profiles of CLIs, what they used, and the trajectory of what they did."""
