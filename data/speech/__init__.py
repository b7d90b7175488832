"""Recordings: sound, and frames of any kind that follow each other in time."""
