"""Data files that ship with the library, and the one YAML loader."""
