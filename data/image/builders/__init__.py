"""TFDS builders of published sets: each its facts and how its raw files are read."""
