import numpy as np
import pytest

import errors
from data.image.readers import idx

HEADER = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3])


def test_by_hand():
    array = idx.decode(HEADER + bytes([1, 2, 3, 4, 5, 6]), "x", 2)
    assert array.dtype == np.uint8
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    "content, ndim, parts",
    [
        (b"", 2, ["starts with nothing", "00 00 08 02"]),
        (b"<html>", 2, ["3c 68 74 6d"]),
        (HEADER + bytes(6), 3, ["00 00 08 02", "00 00 08 03"]),
        (bytes([0, 0, 13, 2]) + HEADER[4:] + bytes(24), 2, ["00 00 0d 02"]),  # floats
        (HEADER[:9], 2, ["truncated", "9 of 12 bytes of header"]),
        (HEADER + bytes(5), 2, ["truncated", "17 bytes", "[2, 3]", "18"]),
        (HEADER + bytes(7), 2, ["too long", "19 bytes"]),
        # 2**31 * 2**31 * 4 is 0 in 64 bits.
        (bytes([0, 0, 8, 3, 128, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 4]), 3, ["truncated"]),
    ],
)
def test_damage(content, ndim, parts, one_line):
    with pytest.raises(errors.RunError) as raised:
        idx.decode(content, "some-file", ndim)
    one_line(raised, "some-file", *parts)
