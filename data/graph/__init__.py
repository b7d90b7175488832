"""Graphs: sets of vectors with edges between them, such as papers that cite each other, and molecules."""
