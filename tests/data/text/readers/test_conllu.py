import pytest

import errors
from data.text.readers import conllu


def word(identity, form, upos, xpos="_"):
    return "\t".join([identity, form, form.lower(), upos, xpos, "_", "0", "root", "_", "_"])


TREEBANK = "\n".join(
    [
        "# newdoc",
        "# sent_id = 1",
        "# text = Don't  go!",
        "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_",
        word("1", "Do", "AUX", "VB"),
        word("2", "n't", "PART"),
        word("3", "go", "VERB", "VB"),
        "3.1\tthere\t_\t_\t_\t_\t_\t_\t3:x\t_",
        word("4", "!", "PUNCT", "."),
        "",
        "# a sentence without a word",
        "",
        word("1", "_", "_"),
        word("2", "\u2028", "SYM"),
    ]
)


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\t\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_words_ranges_empty_nodes_and_comments(end, newline, mark):
    content = (mark + TREEBANK + end).replace("\n", newline).encode()
    found = conllu.decode(content, "x")
    assert found.tokens == [["Do", "n't", "go", "!"], ["_", "\u2028"]]
    assert found.tags == [["AUX", "PART", "VERB", "PUNCT"], ["", "SYM"]]
    first, second = conllu.sentences(content, "x")
    assert (first.text, second.text) == ("Don't  go!", "")


@pytest.mark.parametrize(
    "field, tags",
    [
        ("xpos", ["VB", "", "VB", "."]),
        ("lemma", ["do", "n't", "go", "!"]),
        ("feats", ["_", "_", "_", "_"]),  # no features, which is a value
    ],
)
def test_any_field(field, tags):
    assert conllu.decode(TREEBANK.encode(), "x", field=field).tags[0] == tags


@pytest.mark.parametrize(
    "text, parts",
    [
        (word("1", "a", "X") + "\n2\tb\tb\tX\n", ["x:2: 4 fields", "10"]),
        ("1 a a X _ _ 0 root _ _", ["x:1: 1 fields between tabs"]),
        (word("1", "a", "X") + "\n" + word("1", "b", "X"), ["x:2: word 1 where word 2", "blank line"]),
        (word("2", "a", "X"), ["x:1: word 2 where word 1"]),
        (word("one", "a", "X"), ["x:1: id 'one'", "1-2"]),
        (word("1", "", "X"), ["x:1: the word is empty"]),
    ],
)
def test_what_is_not_allowed(text, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        conllu.decode(text.encode(), "x")
    one_line(raised, *parts)


def test_unknown_field(one_line):
    with pytest.raises(errors.UserError) as raised:
        conllu.decode(b"", "x", field="pos")
    one_line(raised, "'pos'", "upos", "xpos")
