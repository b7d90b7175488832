import pytest

import errors
from data.readers import lines


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", []),
        (b"\n", [(1, "")]),
        (b"a\nb\n", [(1, "a"), (2, "b")]),
        (b"a\n\nb", [(1, "a"), (2, ""), (3, "b")]),
        (b"a\r\nb\r\n", [(1, "a"), (2, "b")]),
        (b"\xef\xbb\xbfa\n", [(1, "a")]),
        # None of these ends a line: line and paragraph separator, next line, vertical tab, form feed, return.
        (
            "a\u2028b\u2029c\x85d\x0be\x0cf\rg\nh".encode(),
            [(1, "a\u2028b\u2029c\x85d\x0be\x0cf\rg"), (2, "h")],
        ),
    ],
)
def test_lines(content, expected):
    assert list(lines.numbered(content, "x")) == expected


def test_latin_1_only_where_it_is_said(one_line):
    content = "b\nca\xf1on\n".encode("latin-1")
    assert list(lines.numbered(content, "x", encoding="latin-1")) == [(1, "b"), (2, "ca\xf1on")]
    with pytest.raises(errors.UserError) as raised:
        list(lines.numbered(content, "x.tsv"))
    one_line(raised, "x.tsv:2: byte 0xf1", "encoding=latin-1")


def test_what_is_utf_8_is_never_read_as_latin_1():
    assert list(lines.numbered("é".encode(), "x", encoding="latin-1")) == [(1, "é")]


def test_lines_of_carriage_returns_alone(one_line):
    with pytest.raises(errors.UserError) as raised:
        list(lines.numbered(b"a\tO\rb\tO\r", "x.conll"))
    one_line(raised, "x.conll:1: lines end in a carriage return alone")


def test_unknown_encoding(one_line):
    with pytest.raises(errors.UserError) as raised:
        list(lines.numbered(b"", "x", encoding="utf8"))
    one_line(raised, "'utf8'", "utf-8")
