"""One adapter a format: bytes in, events out, every loss counted and located."""
