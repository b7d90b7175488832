"""Images: data sets of them, their augmentation, and folders of one's own."""
