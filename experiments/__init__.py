"""Studies: a grid of runs, one tidy CSV, and figures drawn from that CSV alone."""
