"""Explanations: which features spoke for a label, and what a model has learned about one."""
