"""What readers of every kind need: lines of text, a folder per class, sets prepared on disk."""
