"""Verdicts against labels."""
