"""The label model and its loader."""
