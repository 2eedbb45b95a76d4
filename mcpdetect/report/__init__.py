"""Pure functions from a result to text."""
