import collections
import itertools

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from data.text.generated import grammar

SPLITS = {"train": (4_000, 3), "test": (1_000, 0)}


def test_the_first_examples_do_not_depend_on_how_many_there_are():
    for make in (grammar.tagged, grammar.labelled):
        assert make("train", 20, seed=3).take(range(7)) == make("train", 7, seed=3)
        assert make("train", 20, seed=3) != make("train", 20, seed=4)
        assert make("train", 20, seed=3) != make("test", 20, seed=3)


def test_splits_differ_by_seed_in_train_alone():
    for make in (grammar.labelled, grammar.tagged):
        first, second = grammar.splits(make, 0), grammar.splits(make, 1)
        assert first.train != second.train
        assert (first.validation, first.test) == (second.validation, second.test)
        assert [len(p) for p in (first.train, first.validation, first.test)] == [2_000, 500, 1_000]


def contexts(sentences, width):
    """Every token as the words from `width` before to `width` after it, with its tag."""
    for tokens, tags in zip(sentences.tokens, sentences.tags, strict=True):
        padded = [*[""] * width, *tokens, *[""] * width]
        for place, tag in enumerate(tags):
            yield tuple(padded[place : place + 2 * width + 1]), tag


def test_only_context_decides_the_tag():
    """Counts how often the most frequent tag of a word, and of a word among its neighbours, is right."""
    data = {split: grammar.tagged(split, size, seed) for split, (size, seed) in SPLITS.items()}
    right = {}
    for width in (0, 1):
        counts = collections.defaultdict(collections.Counter)
        for context, tag in contexts(data["train"], width):
            counts[context][tag] += 1
        found = [
            context in counts and counts[context].most_common(1)[0][0] == tag
            for context, tag in contexts(data["test"], width)
        ]
        right[width] = np.mean(found)
    assert right[0] < 0.85
    assert right[1] > 0.9


def test_no_row_of_words_has_two_taggings():
    tagging = {}
    sentences = grammar.tagged("train", 6_000, 1)
    for tokens, tags in zip(sentences.tokens, sentences.tags, strict=True):
        assert tagging.setdefault(tuple(tokens), tags) == tags
    assert len(tagging) < 6_000  # there were some to compare


def test_words_are_as_ambiguous_as_is_said():
    tags = collections.defaultdict(set)
    for (word,), tag in contexts(grammar.tagged("train", 4_000, 3), 0):
        tags[word].add(tag)
    assert tags["can"] == {"NOUN", "VERB", "AUX"}
    assert tags["that"] == {"DET", "PRON", "SCONJ"}
    assert tags["saw"] == {"NOUN", "VERB"}
    assert sum(len(kinds) > 1 for kinds in tags.values()) >= 10


def is_plural(noun):
    return noun.endswith("s")


def test_the_label_is_agreement_of_the_first_noun_with_the_verb():
    texts = grammar.labelled("train", 400, 3)
    for tokens, label in zip(texts.tokens, texts.label, strict=True):
        assert label == ("no" if is_plural(tokens[1]) == is_plural(tokens[-1]) else "yes")


def test_words_without_their_order_say_nothing():
    """Any noun of a text could stand first, half of them singular: no bag of words has a likelier label."""
    data = {split: grammar.labelled(split, size, seed) for split, (size, seed) in SPLITS.items()}
    for tokens in data["train"].tokens:
        nouns = [after for word, after in itertools.pairwise(tokens) if word == "the"]
        assert 2 * sum(map(is_plural, nouns)) == len(nouns)
    bags = CountVectorizer(analyzer=list)
    model = LogisticRegression(max_iter=300).fit(
        bags.fit_transform(data["train"].tokens), data["train"].label
    )
    accuracy = model.score(bags.transform(data["test"].tokens), data["test"].label)
    assert abs(accuracy - 0.5) < 0.05  # three standard deviations of 1,000 coins
