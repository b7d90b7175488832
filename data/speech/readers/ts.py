"""The .ts format of the time series classification archive (timeseriesclassification.com).

Lines that begin with # or @ are about the data. Every other line is a series: its dimensions separated by
colons, the values of each over time by commas, and at the end the label.

    1.5,2.5,3.5:-1.0,-2.0,-3.0:loud
"""

import numpy as np

import errors


def decode(content: bytes, where: str) -> list[tuple[np.ndarray, str]]:
    """The series of a file and their labels.

    Args:
        content: of the file.
        where: how messages name it.

    Returns:
        For each series the frames, float32 `[T, C]` (T may differ), and the label.

    Raises:
        errors.UserError: a line is no series; it is named.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.UserError(f"{where}: byte {error.start} is no UTF-8 text") from error
    series = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line[0] in "#@":
            continue
        *dimensions, label = line.split(":")
        try:
            values = [np.array(dimension.split(","), np.float32) for dimension in dimensions]
        except ValueError as error:
            raise errors.UserError(f"{where}:{number}: {error}") from error
        lengths = {len(dimension) for dimension in values}
        if len(lengths) != 1:
            raise errors.UserError(
                f"{where}:{number}: dimensions of {sorted(lengths)} values; they must be equally long, "
                "separated by colons, and a label must follow"
            )
        series.append((np.stack(values, axis=1), label.strip()))
    return series
