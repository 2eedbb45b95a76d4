"""What the texts of a server say: folded, cut into words and sentences, read for roles and orders."""
