"""The idx format in which MNIST and its relatives are published.

A big-endian header (two zero bytes, the type of the numbers, the number of dimensions, then each
dimension as a 32-bit integer) followed by the numbers in C order.
"""

import math
import struct

import numpy as np

import errors

UNSIGNED_BYTE = 0x08


def decode(content: bytes, name: str, ndim: int) -> np.ndarray:
    """Reads an idx file of unsigned bytes.

    Args:
        content: the decompressed file.
        name: what to call it in an error.
        ndim: the number of dimensions it must have.

    Returns:
        uint8 array of the shape in the header; it shares memory with `content`.

    Raises:
        errors.RunError: the header is of another kind, or the length is not what it says.
    """
    start = 4 + 4 * ndim
    if content[:4] != bytes((0, 0, UNSIGNED_BYTE, ndim)):
        raise errors.RunError(
            f"{name}: not an idx file of {ndim}-dimensional bytes (starts with "
            f"{content[:4].hex(' ') or 'nothing'}, expected 00 00 08 {ndim:02x})"
        )
    if len(content) < start:
        raise errors.RunError(f"{name}: truncated, {len(content)} of {start} bytes of header")
    shape = struct.unpack(f">{ndim}I", content[4:start])
    # math.prod does not overflow: a damaged header must not wrap round to a length that fits.
    size = start + math.prod(shape)
    if len(content) != size:
        what = "truncated" if len(content) < size else "too long"
        raise errors.RunError(
            f"{name}: {what}, {len(content):,} bytes, but its header says {list(shape)}, which takes {size:,}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
