import pytest

import errors
from data.text import tokenisation


@pytest.mark.parametrize(
    "text, how, expected",
    [
        (" a  b\tc ", "whitespace", ["a", "b", "c"]),
        ("it's 20\u00a0000 a\u2028b", "whitespace", ["it's", "20\u00a0000", "a\u2028b"]),
        (
            "I don't know...<br /><br>Don’t!",
            "punctuation",
            ["I", "don't", "know", ".", ".", ".", "Don’t", "!"],
        ),
        ("'quoted' well-known 3.5", "punctuation", ["'", "quoted", "'", "well", "-", "known", "3", ".", "5"]),
        ("a <br b>", "punctuation", ["a", "<", "br", "b", ">"]),
        ("a\u2028b\u3000c", "punctuation", ["a", "b", "c"]),
        (" a b ", "none", [" a b "]),
        ("", "none", []),
        ("  ", "whitespace", []),
        ("", "punctuation", []),
    ],
)
def test_tokens(text, how, expected):
    assert tokenisation.tokens(text, how) == expected


def test_unknown(one_line):
    with pytest.raises(errors.UserError) as raised:
        tokenisation.tokens("a", "words")
    one_line(raised, "'words'", "whitespace")
