"""Manifests of a trial's children, and the way back from a pod to what it means. Pure: data in, data out."""
