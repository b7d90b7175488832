"""Data sets and the batch pipeline: one module per data set, `prepare`, subsets, augmentation."""
