import pytest

import errors
from data.text.readers import columns


@pytest.mark.parametrize(
    "text",
    [
        "I\tO\nParis\tB-loc\n\nyes\tO\n",
        "I\tO\nParis\tB-loc\n\nyes\tO",
        "I\tO\nParis\tB-loc\n\t\nyes\tO\n\n\n",
        "\n\nI\tO\nParis\tB-loc\n \t \n\nyes\tO\n",
        "\ufeffI\tO\r\nParis\tB-loc\r\n\r\nyes\tO\r\n",
        "-DOCSTART-\tO\n\nI\tO\nParis\tB-loc\n-DOCSTART-\tO\nyes\tO\n",
        "-DOCSTART- -X- -X- O\n\nI O\nParis   B-loc\n\nyes O \n",
    ],
)
def test_two_columns(text):
    found = columns.decode(text.encode(), "x")
    assert found.tokens == [["I", "Paris"], ["yes"]]
    assert found.tags == [["O", "B-loc"], ["O"]]


def test_more_columns():
    content = b"EU NNP I-NP B-ORG\nrejects VBZ I-VP O\n"
    assert columns.decode(content, "x").tags == [["B-ORG", "O"]]
    assert columns.decode(content, "x", tag_column=1).tags == [["NNP", "VBZ"]]
    swapped = columns.decode(content, "x", token_column=-1, tag_column=0)
    assert (swapped.tokens, swapped.tags) == ([["B-ORG", "O"]], [["EU", "rejects"]])


def test_with_tabs_a_token_may_hold_spaces_and_separators():
    content = "20 000\tNUM\na\u2028b\x85c\x0cd\tX\n#\tSYM\n".encode()
    assert columns.decode(content, "x").tokens == [["20 000", "a\u2028b\x85c\x0cd", "#"]]


def test_an_empty_file_has_no_sentence():
    assert len(columns.decode(b"\n\n", "x")) == 0


@pytest.mark.parametrize(
    "text, options, parts",
    [
        ("a\tO\nb\n", {}, ["x:2: 1 column(s) between tabs", "have 2"]),
        ("a O\n\nb c O\n", {}, ["x:3: 3 column(s) between spaces", "have 2"]),
        ("a\nb\n", {}, ["x:1: 1 column;", "a token and its tag"]),
        ("a\tO\n\tO\n", {}, ["x:2: the token is empty"]),
        ("a\tO\nb\t\n", {}, ["x:2: the tag is empty"]),
        ("a\tO\n", {"tag_column": 2}, ["x:1: no tag column 2", "0 to 1"]),
        ("a\tO\n", {"token_column": -3}, ["x:1: no token column -3", "-1 to -2"]),
        ("a\tO\n", {"token_column": 1}, ["x:1: column 1 cannot be both"]),
    ],
)
def test_what_is_not_allowed(text, options, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        columns.decode(text.encode(), "x", **options)
    one_line(raised, *parts)
