import json
import logging

import numpy as np
import pytest

import errors
from data.text import vocabulary
from data.text.types import LabelledTexts, TaggedSentences
from data.text.vocabulary import Vocabulary

TRAIN = TaggedSentences(
    [["The", "cat", "saw", "the", "dog"], ["the", "X-ray", "saw", "1984"]],
    [["DET", "NOUN", "VERB", "DET", "NOUN"], ["DET", "NOUN", "", "NUM"]],
)
TEXTS = LabelledTexts([["good", "film"], ["bad", "film", "!"], []], ["+1", "-1", "+1"])


def test_words_most_frequent_first_from_two():
    found = Vocabulary.fit(TRAIN)
    assert found.words == ("saw", "the", "1984", "The", "X-ray", "cat", "dog")
    assert found.size == 9
    assert Vocabulary.fit(TRAIN, lower=True).words == ("the", "saw", "1984", "cat", "dog", "x-ray")
    assert Vocabulary.fit(TRAIN, min_count=2).words == ("saw", "the")
    assert Vocabulary.fit(TRAIN, max_size=3).words == ("saw", "the", "1984")
    assert "0000" in Vocabulary.fit(TRAIN, fold_digits=True).words


def test_encoding_of_words_and_tags():
    found = Vocabulary.fit(TRAIN).encode(
        TaggedSentences([["the", "bird"], [], ["cat"]], [["DET", ""], [], ["NOUN"]])
    )
    words, tags = found.vectors["words"], found.vectors["tags"]
    assert words.offsets.tolist() == [0, 2, 2, 3]
    assert words.values.tolist() == [3, 1, 7]
    assert found.vectors["known"].values.tolist() == [True, False, True]
    assert tags.values.tolist() == [0, vocabulary.UNLABELLED, 1]  # of DET, NOUN, NUM, VERB
    assert (words.values.dtype, tags.values.dtype) == (np.int32, np.int32)


def test_lower_case_and_digits_when_looked_up():
    found = Vocabulary.fit(TRAIN, lower=True, fold_digits=True)
    assert found.known("CAT")
    assert found.known("2001")
    assert not found.known("201")
    assert found.encode([["THE", "2001"]]).vectors["words"].values.tolist() == [2, 4]


def test_affixes_by_hand():
    found = Vocabulary.fit(TRAIN, affix_min_count=1)
    affixes = dict(zip(vocabulary.AFFIXES, found.affixes, strict=True))
    assert affixes["prefix_1"] == ("t", "s", "1", "c", "d", "x")  # the 3, saw 2, and one each
    assert affixes["suffix_2"] == ("he", "aw", "84", "at", "ay", "og")
    assert affixes["shape"] == ("x", "X-x", "Xx", "d")
    assert affixes["digit"] == ("no", "yes")
    assert found.affix_sizes[:1] == (8,)
    columns = list(vocabulary.AFFIXES)
    row = found.encode([["Thaw"]]).vectors["affixes"].values[0]
    assert row.dtype == np.int32
    assert row[columns.index("prefix_1")] == 2
    assert row[columns.index("prefix_4")] == vocabulary.UNKNOWN
    assert row[columns.index("suffix_2")] == 3
    assert row[columns.index("shape")] == 4
    assert row[columns.index("digit")] == 2
    assert Vocabulary.fit(TRAIN, affix_min_count=2).affixes[0] == ("t", "s")


@pytest.mark.parametrize(
    "word, expected",
    [
        ("the", "x"),
        ("The", "Xx"),
        ("USA", "X"),
        ("McDonald-2000", "XxXx-d"),
        ("中文", "c"),
        ("...", "."),
        ("", ""),
    ],
)
def test_shape(word, expected):
    assert vocabulary.shape(word) == expected


def test_without_affixes():
    found = Vocabulary.fit(TRAIN, affixes=False)
    assert found.affix_sizes == ()
    assert sorted(found.encode(TRAIN).vectors) == ["known", "tags", "words"]


def test_labels_and_texts_without_a_token():
    found = Vocabulary.fit(TEXTS)
    assert found.label_names == ("-1", "+1")
    encoded = found.encode(TEXTS)
    assert encoded.fields["label"].tolist() == [1, 0, 1]
    assert encoded.fields["label"].dtype == np.int32
    assert encoded.sizes[:, 0].tolist() == [2, 3, 0]
    batch = encoded.gather(np.array([2, 0]), (3, 0))
    assert batch["mask"].tolist() == [[False] * 3, [True, True, False]]
    assert batch["words"][:, 2].tolist() == [vocabulary.PADDING] * 2
    assert batch["affixes"].shape == (2, 3, 11)


def test_numbers_are_in_order_and_words_by_character():
    names = ["10", "9", "-1", "+2"]
    assert Vocabulary.fit(LabelledTexts([["a"]] * 4, names)).label_names == ("-1", "+2", "9", "10")
    assert Vocabulary.fit(LabelledTexts([["a"]] * 3, ["b", "10", "9"])).label_names == ("10", "9", "b")


def test_a_tag_that_train_does_not_have_is_wrong_and_told_once(caplog):
    data = TaggedSentences([["a", "b", "c"]], [["INTJ", "NOUN", "INTJ"]])
    with caplog.at_level(logging.WARNING):
        encoded = Vocabulary.fit(TRAIN).encode(data)
    assert encoded.vectors["tags"].values.tolist() == [vocabulary.UNSEEN, 1, vocabulary.UNSEEN]
    (record,) = caplog.records
    assert record.getMessage() == "2 of 3 tags do not occur in train and count as wrong: INTJ"
    assert vocabulary.UNSEEN not in (vocabulary.UNLABELLED, *range(4))


def test_bytes():
    found = Vocabulary.fit(TEXTS, unit="bytes", max_length=4)
    encoded = found.encode(LabelledTexts([["aé b"], ["a", "b"], [], ["\x00"]], ["-1"] * 4))
    assert encoded.vectors["bytes"].offsets.tolist() == [0, 4, 7, 7, 8]
    assert encoded.vectors["bytes"].values.tolist() == [98, 0xC3 + 1, 0xA9 + 1, 33, 98, 33, 99, 1]
    assert list(encoded.vectors) == ["bytes"]
    assert found.size == 257
    assert found.words == found.affixes == ()


def test_texts_are_cut_but_tagged_sentences_never():
    found = Vocabulary.fit(TEXTS, max_length=2)
    assert found.encode(TEXTS).sizes[:, 0].tolist() == [2, 2, 0]
    assert found.encode([["a", "b", "c"]]).sizes[:, 0].tolist() == [2]


@pytest.mark.parametrize(
    "data, options", [(TRAIN, {"lower": True}), (TEXTS, {"unit": "bytes", "max_length": 9})]
)
def test_json(data, options):
    found = Vocabulary.fit(data, **options)
    stored = json.dumps(found.to_json())
    read = Vocabulary.from_json(json.loads(stored))
    assert read == found
    assert json.dumps(read.to_json()) == stored
    assert read.encode(data).fingerprint == found.encode(data).fingerprint


def test_order_of_sentences_does_not_matter():
    assert Vocabulary.fit(TRAIN.take([1, 0])) == Vocabulary.fit(TRAIN)


def test_what_is_to_be_predicted_is_tokenised_as_train_was():
    raw = LabelledTexts([["good", "!"]], ["1"], "punctuation")
    assert Vocabulary.fit(raw).tokens("very good!") == ["very", "good", "!"]
    assert Vocabulary.fit(TRAIN).tokens("very good!") == ["very", "good!"]


@pytest.mark.parametrize(
    "train, options, parts",
    [
        (TRAIN, {"unit": "chars"}, ["unknown unit 'chars'", "bytes, words"]),
        (TRAIN, {"min_count": 0}, ["min_count 0", "at least 1"]),
        (TRAIN, {"max_size": -1}, ["max_size -1", "at least 1"]),
        (TRAIN, {"max_length": 5}, ["max_length 5", "every token needs its tag"]),
        (TRAIN, {"unit": "bytes"}, ["unit 'bytes'", "every token needs its tag"]),
        (TaggedSentences([["a"]], [[""]]), {}, ["no label"]),
    ],
)
def test_what_is_not_allowed(train, options, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        Vocabulary.fit(train, **options)
    one_line(raised, *parts)


def test_tokens_and_tags_of_unequal_number():
    with pytest.raises(ValueError, match="sentence 1: 2 tokens, but 1 tags"):
        TaggedSentences([[], ["a", "b"]], [[], ["X"]])
    with pytest.raises(ValueError, match="1 texts, but 2 labels"):
        LabelledTexts([["a"]], ["x", "y"])
