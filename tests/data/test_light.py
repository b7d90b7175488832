"""Embedded sets are loaded without what takes longer to import than they take to load."""

import subprocess
import sys


def test_nothing_heavy_is_imported():
    code = """
import sys
from data.graph import load as graphs
from data.image import load as images
from data.text import load as text, vocabulary
assert not {"PIL", "pooch", "scipy"} & set(sys.modules)
from data.speech import load as speech
graphs.graphs("karate")
speech.labelled("tones")
text.tagged("grammar")
text.labelled("grammar")
text.parallel("dates")
text.questions("facts")
heavy = {"tensorflow", "jax", "sklearn", "grain", "sentencepiece", "torch", "pandas", "models", "tasks"}
assert not ({"tensorflow_datasets"} | heavy) & set(sys.modules), heavy & set(sys.modules)
images.labelled("digits")  # by a builder of TFDS
images.labelled("pointed_digits", train_size=5)
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
