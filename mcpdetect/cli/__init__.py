"""The command line: the only code that prints, reads arguments or exits."""
