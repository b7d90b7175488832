import json

import pytest

import errors
from data.text.subwords import END, PADDING, START, UNITS, UNKNOWN, Subwords
from models import encoder_decoder

TEXT = ["the cat sat on the mat", "The  dog ate the   rat, ", "Väter läuft 3 x.", "你好。"]
CLEAN = ["the cat sat on the mat", "The dog ate the rat,", "Väter läuft 3 x.", "你好。"]


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_gives_text_back(unit, capfd):
    subwords = Subwords.fit(TEXT, unit=unit, vocab_size=60)
    encoded = subwords.encode([*TEXT, "", " \t"])
    assert [subwords.decode(tokens) for tokens in encoded] == [*CLEAN, "", ""]
    assert encoded[-2:] == [[], []]
    assert all(4 <= token < subwords.size <= 60 for tokens in encoded for token in tokens)
    assert Subwords.fit(TEXT, unit=unit, vocab_size=60) == subwords
    assert Subwords.from_json(json.loads(json.dumps(subwords.to_json()))) == subwords
    assert capfd.readouterr() == ("", "")


def test_words_by_how_often_they_occur():
    subwords = Subwords.fit(["a b a c", "b a ▁ d"], unit="word", vocab_size=100)
    assert subwords.size == 4 + 4
    assert subwords.encode(["b a", "x y b"]) == [[5, 4], [UNKNOWN, UNKNOWN, 5]]
    assert subwords.pieces([PADDING, UNKNOWN, START, END, 4]) == ["<pad>", "<unk>", "<s>", "</s>", "▁a"]
    assert subwords.decode([UNKNOWN, UNKNOWN, 5]) == "⁇ ⁇ b"
    frequent = Subwords.fit(["a b a c", "b a d"], unit="word", vocab_size=100, min_count=2)
    assert frequent.size == 4 + 2
    assert frequent.encode(["a c b"]) == [[4, UNKNOWN, 5]]
    assert Subwords.fit(["a b a c", "b a d"], unit="word", vocab_size=6) == frequent


def test_characters_and_merges():
    assert Subwords.fit(["aab"], unit="char", vocab_size=100).size == 4 + 3  # a b and the space before
    tokens = {"a", "b", "c", "▁", "ab", "abc", "▁abc"}  # those of the first three merges
    subwords = Subwords.fit(["abc abc ab ab"], vocab_size=4 + 7)
    found = set(subwords.pieces(range(4, subwords.size)))
    assert len(found) == 7
    assert {"a", "b", "c", "▁", "ab"} <= found <= tokens | {"▁a", "▁ab"}


def test_decoding_ends_where_the_sentence_does():
    subwords = Subwords.fit(["ab cd"], unit="char", vocab_size=20)
    (tokens,) = subwords.encode(["ab"])
    assert subwords.decode([START, *tokens, END, *tokens, PADDING]) == "ab"
    assert subwords.decode([*tokens, PADDING, PADDING]) == "ab"
    assert subwords.decode([END]) == ""


def test_what_is_not_known_fails_nowhere():
    subwords = Subwords.fit(["ab cd"], unit="bpe", vocab_size=20)
    long = "ab " * 500
    lines = ["aжb", "русский", "a\0b", "ab", long, "ab"]
    encoded = subwords.encode(lines)
    assert subwords.decode(encoded[0]) == "a⁇b"
    assert encoded[0].count(UNKNOWN) == encoded[1].count(UNKNOWN) == 1
    assert encoded[3] == encoded[5] == subwords.encode(["ab"])[0]
    assert subwords.decode(encoded[4]) == long.strip()


def test_lower_case():
    subwords = Subwords.fit(["Ab CD"], unit="word", vocab_size=20, lower=True)
    assert subwords.decode(subwords.encode(["AB cd"])[0]) == "ab cd"


def test_a_long_line_is_learnt_from():
    line = "x" * 9000 + "y"
    subwords = Subwords.fit(["ab", line], unit="char", vocab_size=20)
    assert UNKNOWN not in subwords.encode([line])[0]


def test_the_tokens_of_no_text_are_those_of_the_models():
    mine, theirs = (PADDING, UNKNOWN, START, END), encoder_decoder
    assert mine == (theirs.PADDING, theirs.UNKNOWN, theirs.START, theirs.END)


@pytest.mark.parametrize(
    "lines, arguments, parts",
    [
        (["", " "], {"vocab_size": 10}, ["no text"]),
        (["a"], {"vocab_size": 10, "unit": "words"}, ["'words'", "Did you mean 'word'?", "bpe"]),
        (["a"], {"vocab_size": 4}, ["vocab_size 4", "at least 5"]),
        (["abcd"], {"vocab_size": 8}, ["vocab_size 8", "5 characters", "at least 9"]),
        (["a"], {"vocab_size": 10, "min_count": 2}, ["min_count 2", "'word'"]),
    ],
)
def test_what_is_not_allowed_is_told(lines, arguments, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        Subwords.fit(lines, **arguments)
    one_line(raised, *parts)
