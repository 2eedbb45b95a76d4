"""The microVM shell: the same cell in a QEMU guest without any way out."""
