"""One file is one detector; discovery walks this package, there is no list to edit."""
