import pytest

import errors
from data.text.readers import table

TEXTS = ['he said "no" ,', "a\u2028b\x85c", ""]
LABELS = ["-1", "+1", "-1"]


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.tsv", 'label\ttext\n-1\the said "no" ,\n\n+1\ta\u2028b\x85c\n-1\t'),
        ("x.tsv", '\ufefftext\tid\tlabel\r\nhe said "no" ,\t1\t-1\r\na\u2028b\x85c\t2\t+1\r\n\t3\t -1 \r\n'),
        ("x.CSV", 'label,sentence\n-1,"he said ""no"" ,"\n+1,a\u2028b\x85c\n\n-1,""\n'),
        (
            "x.jsonl",
            '{"text": "he said \\"no\\" ,", "label": -1}\n\n{"text": "a\u2028b\x85c", "label": "+1"}\r\n'
            '{"label": "-1", "text": ""}',
        ),
    ],
)
def test_labelled(name, content):
    assert table.labelled(content.encode(), name) == (TEXTS, LABELS)


def test_a_quoted_value_goes_on_over_lines():
    content = b'text,label\r\n"two\r\nlines",1\r\nb,0\r\nc\r\n'
    with pytest.raises(errors.UserError, match=r"x\.csv:5: 1 column"):
        table.labelled(content, "x.csv")
    assert table.labelled(content[:-3], "x.csv") == (["two\nlines", "b"], ["1", "0"])


def test_named_columns():
    content = b"a\tb\tlabel\n1\t2\t3\n"
    assert table.labelled(content, "x.tsv", text_column="b", label_column="a") == (["2"], ["1"])


def test_latin_1_where_it_is_said():
    content = "text\tlabel\nca\xf1on\t1\n".encode("latin-1")
    assert table.labelled(content, "x.tsv", encoding="latin-1")[0] == ["ca\xf1on"]


@pytest.mark.parametrize(
    "name, content, parts",
    [
        ("x.txt", "", ["x.txt: a table must end in .tsv .csv .jsonl"]),
        ("x.tsv", "text\tlabel\na\t1\nb\n", ["x.tsv:3: 1 column(s)", "has 2: text, label"]),
        ("x.tsv", "text\tlabel\na\tb\t1\n", ["x.tsv:2: 3 column(s)"]),
        ("x.tsv", "text\tclass\na\t1\n", ["x.tsv:2: no column 'label'", "text, class", "label_column"]),
        ("x.csv", "label\n1\n", ["x.csv:2: no column 'text or sentence'", "text_column"]),
        ("x.tsv", "text\tlabel\na\t \n", ["x.tsv:2: the label is empty"]),
        ("x.tsv", "text\ttext\na\t1\n", ["x.tsv:1: two columns are called 'text'"]),
        ("x.csv", 'text,label\n"a,1\n', ["x.csv:2: no CSV"]),
        (
            "x.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b" "label": 1}',
            ["x.jsonl:2: no JSON", "column 14"],
        ),
        ("x.jsonl", "[1, 2]", ["x.jsonl:1: a JSON object"]),
        ("x.jsonl", '{"text": "a", "label": null}', ["x.jsonl:1: the label is null"]),
        ("x.jsonl", '{"text": "a", "label": true}', ["x.jsonl:1: the label is true"]),
        ("x.jsonl", '{"text": 7, "label": 1}', ["x.jsonl:1: the text is 7"]),
    ],
)
def test_what_is_not_allowed(name, content, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        table.labelled(content.encode(), name)
    one_line(raised, *parts)


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.jsonl", '{"tokens": ["I", "20 000"], "tags": ["A", "B"]}\n{"tokens": [], "tags": []}'),
        ("x.csv", "words,tags\nI 20\u00a0000,A B\n,\n"),
    ],
)
def test_tagged(name, content):
    found = table.tagged(content.encode(), name)
    assert [len(tokens) for tokens in found.tokens] == [2, 0]
    assert found.tags == [["A", "B"], []]


@pytest.mark.parametrize(
    "content, parts",
    [
        ('{"tokens": ["a", "b"], "tags": ["A"]}', ["x.jsonl:1: 2 tokens, but 1 tags"]),
        ('{"tokens": ["a", 3], "tags": ["A", "B"]}', ["x.jsonl:1: tokens must be a list of words"]),
        ('{"tokens": ["a"], "tags": [""]}', ["x.jsonl:1: tags must be a list of words"]),
    ],
)
def test_tokens_and_tags_that_do_not_match(content, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        table.tagged(content.encode(), "x.jsonl")
    one_line(raised, *parts)
