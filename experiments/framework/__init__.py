"""The frame of every study: contests -> runs -> one tidy CSV -> tables and figures from that CSV."""
