"""Every builder, on literal lines of its raw format and on the published files where they are at hand."""

import collections
import time

import numpy as np
import pytest

import errors
from data import catalogue
from data.text import load
from data.text.types import LabelledTexts, TaggedSentences
from data.text.vocabulary import Vocabulary

EWT = b"# text = Go!\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n2\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_\n"
WNUT = b"\xef\xbb\xbfin\tO\nHyde\tB-location\nPark\tI-location\n\t\n@you\tO\n"


@pytest.mark.parametrize(
    "name, contents, expected",
    [
        (
            "ud_en_ewt",
            {f"en_ewt-ud-{part}.conllu": EWT for part in ("train", "dev", "test")},
            {"text": "Go!", "tokens": ["Go", "!"], "upos": ["VERB", "PUNCT"], "xpos": ["VB", "."]},
        ),
        (
            "wnut17",
            {"wnut17train.conll": WNUT, "emerging.dev.conll": WNUT, "emerging.test.annotated": WNUT},
            {"tokens": ["in", "Hyde", "Park"], "tags": ["O", "B-location", "I-location"]},
        ),
        (
            "mr",
            {"rt-polarity.neg": b"clich\xe9s \x85 \n", "rt-polarity.pos": b"good .\n"},
            {"text": "clich\xe9s \x85", "label": "negative"},
        ),
        (
            "subj",
            {"subj.objective": b"sam leaves . \n", "subj.subjective": b"dull .\n"},
            {"text": "sam leaves .", "label": "objective"},
        ),
        (
            "sst5",
            {f"stsa.fine.{part}": b"4 great \xc3\xa9 .\n" for part in ("train", "dev", "test")},
            {"text": "great é .", "label": "very positive"},
        ),
        (
            "trec",
            {"TREC.train": b"NUM:dist How far \xf0 ?\n", "TREC.test": b"HUM:desc Who ?\n"},
            {"text": "How far \xf0 ?", "label": "NUM", "label_fine": "NUM:dist"},
        ),
        (
            "imdb",
            {"train.tsv": b"1\t7\t9\tA \xc2\x85 film.\n", "test.tsv": b"0\t8\t1\tNo.\n"},
            {"text": "A \x85 film.", "label": "positive"},
        ),
    ],
)
def test_the_raw_format(name, contents, expected):
    assert catalogue.builder(name).decode(contents)["train"][0] == expected


@pytest.mark.parametrize(
    "name, contents, part",
    [
        (
            "sst2",
            {f"stsa.binary.{part}": b"0 a\n2 b\n" for part in ("train", "dev", "test")},
            "stsa.binary.train:2",
        ),
        ("trec", {"TREC.train": b"Who ?\n", "TREC.test": b""}, "TREC.train:1: begins with 'Who'"),
        ("imdb", {"train.tsv": b"1\tA film.\n", "test.tsv": b""}, "train.tsv:1"),
    ],
)
def test_a_damaged_line_is_named(name, contents, part, one_line):
    with pytest.raises(errors.RunError) as raised:
        catalogue.builder(name).decode(contents)
    one_line(raised, part)


def test_unknown_tags_and_labels_are_told(one_line):
    ewt, trec = catalogue.builder("ud_en_ewt"), catalogue.builder("trec")
    with pytest.raises(errors.RunError) as raised:
        ewt.check("train", [{"tokens": ["a"], "upos": ["CONJ"]}] * 12_543)
    one_line(raised, "ud_en_ewt, split train: tag 'CONJ' in sentence 0", "CCONJ")
    with pytest.raises(errors.RunError) as raised:
        trec.check("test", [{"label": "num"}] * 500)
    one_line(raised, "trec, split test: label 'num' of text 0", "NUM")
    with pytest.raises(errors.RunError) as raised:
        trec.check("test", [{"label": "NUM"}])
    one_line(raised, "1 examples, expected 500")


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("ud_en_ewt", {"train": 12_543, "validation": 2_001, "test": 2_077}),
        ("ud_en_lines", {"train": 3_176, "validation": 1_032, "test": 1_035}),
        ("ud_zh_gsd", {"train": 3_997, "validation": 500, "test": 500}),
        ("wnut17", {"train": 3_394, "validation": 1_009, "test": 1_287}),
        ("mr", {"train": 10_662}),
        ("subj", {"train": 10_000}),
        ("sst2", {"train": 6_920, "validation": 872, "test": 1_821}),
        ("sst5", {"train": 8_544, "validation": 1_101, "test": 2_210}),
        ("trec", {"train": 5_452, "test": 500}),
        ("imdb", {"train": 25_000, "test": 25_000}),
    ],
)
def test_published_sizes(name, sizes, published):
    assert {split: len(examples) for split, examples in published(name).items()} == sizes


def test_every_builder_is_tested():
    (mark,) = test_published_sizes.pytestmark
    assert {name for name, *_ in mark.args[1]} == set(catalogue.BUILDERS["text"])


def test_trec(published):
    test = published("trec")["test"]
    assert test[0] == {
        "text": "How far is it from Denver to Aspen ?",
        "label": "NUM",
        "label_fine": "NUM:dist",
    }
    counts = collections.Counter(record["label"] for record in test)
    assert counts == {"DESC": 138, "NUM": 113, "ENTY": 94, "LOC": 81, "HUM": 65, "ABBR": 9}


def test_folds_of_mr(prepared):
    """Prepared and read back in several pieces, since it is longer than one."""
    data_dir = prepared("mr")
    data = load.labelled("mr", data_dir=data_dir)
    assert (len(data.train), len(data.validation), len(data.test)) == (8_636, 960, 1_066)
    assert collections.Counter(data.validation.label) == {"negative": 479, "positive": 481}
    assert load.labelled("mr", fold=0, data_dir=data_dir).test != data.test


def test_bytes_of_sst2(published):
    test = published("sst2")["test"]
    texts = LabelledTexts([[record["text"]] for record in test], [record["label"] for record in test], "none")
    encoded = Vocabulary.fit(texts, unit="bytes", max_length=20).encode(texts)
    first = encoded.vectors["bytes"][0]
    assert bytes((first - 1).astype(np.uint8)) == b"no movement , no yuk"


def test_wnut17(published):
    records = published("wnut17")
    assert sum(len(record["tokens"]) for record in records["test"]) == 23_394
    assert records["train"][0]["tokens"][:2] == ["@paulwalk", "It"]
    tags = [tag for record in records["test"] for tag in record["tags"]]
    assert sum(tag.startswith("B-") for tag in tags) == 1_079


@pytest.fixture(scope="module")
def ewt(published):
    """Train and test of EWT."""
    records = published("ud_en_ewt")
    return [
        TaggedSentences(
            [record["tokens"] for record in records[split]], [record["upos"] for record in records[split]]
        )
        for split in ("train", "test")
    ]


def test_most_frequent_tag_of_ewt(ewt):
    """86.2 % is published: the most frequent tag of a word, and PROPN for words never seen."""
    train, test = ewt
    assert [sum(map(len, part.tokens)) for part in ewt] == [204_578, 25_094]
    counts = collections.defaultdict(collections.Counter)
    for tokens, tags in zip(train.tokens, train.tags, strict=True):
        for token, tag in zip(tokens, tags, strict=True):
            counts[token][tag] += 1
    best = {token: tags.most_common(1)[0][0] for token, tags in counts.items()}
    right = [
        best.get(token, "PROPN") == tag
        for tokens, tags in zip(test.tokens, test.tags, strict=True)
        for token, tag in zip(tokens, tags, strict=True)
    ]
    assert np.mean(right) == pytest.approx(0.862, abs=5e-4)
    known = Vocabulary.fit(train, affixes=False).encode(test).vectors["known"].values
    assert known.tolist() == [token in best for tokens in test.tokens for token in tokens]


def test_a_treebank_is_encoded_in_two_seconds(ewt):
    found = Vocabulary.fit(ewt[0])
    start = time.process_time()
    assert found.encode(ewt[0]).vectors["affixes"].values.shape == (204_578, 11)
    assert time.process_time() - start < 2
