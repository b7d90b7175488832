"""Text: tagged sentences and labelled texts, files of one's own, and the vocabulary that encodes them."""
