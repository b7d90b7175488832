import pytest

import errors
from data.speech.readers import ts


def test_series_of_different_lengths():
    text = "#about\r\n@dimensions 2\r\n@data\r\n1.5,2.5,3.5:-1.0,-2.0,-3.0:loud\r\n\r\n4:5: soft \r\n"
    found = ts.decode(b"\xef\xbb\xbf" + text.encode(), "x.ts")
    assert [frames.tolist() for frames, _ in found] == [[[1.5, -1], [2.5, -2], [3.5, -3]], [[4, 5]]]
    assert [label for _, label in found] == ["loud", "soft"]


@pytest.mark.parametrize(
    "line, parts",
    [
        (b"1,2:3:a", ["x.ts:3", "[1, 2] values"]),
        (b"1,b:3,4:a", ["x.ts:3", "'b'"]),
        (b"a", ["x.ts:3", "[] values", "label"]),
        (b"1,\xff:1:a", ["x.ts", "no UTF-8"]),
    ],
)
def test_a_line_that_is_no_series(line, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        ts.decode(b"@data\n1:2:a\n" + line, "x.ts")
    one_line(raised, *parts)
