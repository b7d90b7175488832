"""Sets made when they are loaded: nothing to download, nothing to prepare."""
