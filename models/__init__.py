"""Flax NNX modules: they hold parameters, call attention/, and know nothing of data sets or configs."""
