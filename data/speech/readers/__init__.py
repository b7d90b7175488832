"""Readers of files, published formats and your own: from bytes to the types of this folder."""
