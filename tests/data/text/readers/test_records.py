import pytest
import tensorflow_datasets as tfds

import errors
from data.text import load
from data.text.readers import records

TEXT, TEXTS = tfds.features.Text(), tfds.features.Sequence(tfds.features.Text())
SIDES = tfds.features.ClassLabel(names=["left", "right"])
TAGS = tfds.features.Sequence(tfds.features.ClassLabel(names=["A", "B", "C"]))


@pytest.fixture
def made(tmp_path):
    """Prepares a data set as TFDS would and gives its folder; `splits` gives the examples of each."""

    def made(features, splits, called="made"):
        class Made(tfds.core.GeneratorBasedBuilder, skip_registration=True):
            VERSION = tfds.core.Version("1.0.0")
            name = called

            def _info(self):
                return tfds.core.DatasetInfo(
                    builder=self, features=tfds.features.FeaturesDict(features), disable_shuffling=True
                )

            def _split_generators(self, dl_manager):
                return {split: self._generate_examples(rows) for split, rows in splits.items()}

            def _generate_examples(self, rows):
                yield from enumerate(rows)

        Made(data_dir=tmp_path, file_format="array_record").download_and_prepare()
        return tmp_path / called / "1.0.0"

    return made


def test_labelled_texts_whatever_they_are_called(made):
    """As in glue/sst2: the text is called sentence, and the labels of the test are hidden."""
    folder = made(
        {"idx": TEXT, "sentence": TEXT, "label": SIDES},
        {
            "train": [
                {"idx": "0", "sentence": "go left!", "label": 0},
                {"idx": "1", "sentence": "", "label": 1},
            ],
            "validation": [{"idx": "2", "sentence": "é", "label": "right"}],
            "test": [{"idx": "3", "sentence": "b", "label": -1}],
            "unsupervised": [{"idx": "4", "sentence": "c", "label": -1}],
        },
    )
    found = records.labelled(folder)
    assert list(found) == ["train", "validation"]
    assert found["train"].tokens == [["go", "left", "!"], []]
    assert found["train"].label == ["left", "right"]
    assert (found["validation"].tokens, found["validation"].label) == ([["é"]], ["right"])
    assert found["train"].tokenisation == "punctuation"
    assert records.labelled(folder, how="whitespace")["train"].tokens[0] == ["go", "left!"]
    assert records.labelled(folder, text_column="idx")["train"].tokens == [["0"], ["1"]]
    assert records.labelled(folder, label_column="idx")["validation"].label == ["2"]

    data = load.labelled("made", data_dir=str(folder.parents[1]))
    assert (len(data.train), len(data.validation), data.test.label) == (1, 1, ["right"])


def test_tagged_sentences(made):
    """As in universal_dependencies: several sequences, of which the universal tags are meant."""
    folder = made(
        {"lemmas": TEXTS, "tokens": TEXTS, "upos": TAGS, "deps": TAGS, "xpos": TEXTS, "text": TEXT},
        {
            "train": [
                {
                    "lemmas": ["x", "y"],
                    "tokens": ["a", "b"],
                    "upos": [0, 2],
                    "deps": [0, 0],
                    "xpos": ["N", "_"],
                }
                | {"text": "a b"},
                {"lemmas": [], "tokens": [], "upos": [], "deps": [], "xpos": [], "text": ""},
            ]
        },
    )
    found = records.tagged(folder)["train"]
    assert (found.tokens, found.tags) == ([["a", "b"], []], [["A", "C"], []])
    assert records.tagged(folder, tag_column="xpos")["train"].tags[0] == ["N", ""]
    assert records.tagged(folder, tag_column="deps")["train"].tags[0] == ["A", "A"]
    assert records.tagged(folder, token_column="lemmas")["train"].tokens[0] == ["x", "y"]


def test_what_is_not_allowed(made, one_line):
    two = made(
        {"tokens": TEXTS, "ner": TAGS, "pos": TAGS},
        {"train": [{"tokens": ["a"], "ner": [0], "pos": [0, 1]}]},
        "two",
    )
    cases = [
        (lambda: records.tagged(two), ["a tag feature", "ner, pos could all be meant", "tag_column"]),
        (lambda: records.tagged(two, tag_column="nerr"), ["'nerr'", "Did you mean 'ner'?"]),
        (lambda: records.labelled(two), ["a text feature is needed", "none is one"]),
        (lambda: records.tagged(two, tag_column="pos"), ["sentence 0 of train", "1 tokens, but 2 tags"]),
    ]
    some = made(
        {"text": TEXT, "label": SIDES},
        {"train": [{"text": "a", "label": 0}, {"text": "b", "label": -1}]},
        "some",
    )
    cases.append((lambda: records.labelled(some), ["1 of 2 labels of train are hidden"]))
    other = made({"text": TEXT, "label": SIDES}, {"test": [{"text": "a", "label": 0}]}, "other")
    cases.append((lambda: records.labelled(other), ["no split called train, only test"]))
    for read, parts in cases:
        with pytest.raises(errors.UserError) as raised:
            read()
        one_line(raised, *parts)
