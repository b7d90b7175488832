import pytest

import errors
from data.speech import load


@pytest.mark.parametrize(
    "name, arguments, parts",
    [
        ("tone", {}, ["unknown data set 'tone'", "Did you mean 'tones'?", "fsdd", "folder:DIR"]),
        ("", {}, ["unknown data set ''"]),
        ("folder:", {}, ["unknown data set"]),
        ("folder:/does/not/exist", {}, ["/does/not/exist does not exist"]),
        ("fsdd", {}, ["not prepared", "python -m data.prepare fsdd --data_dir"]),
        ("tones", {"target": "speaker"}, ["unknown target 'speaker'", "label"]),
        ("tones", {"validation_fraction": 0.0}, ["validation_fraction 0.0", "(0, 1)"]),
        ("tones", {"split_seed": -1}, ["seed -1"]),
    ],
)
def test_what_is_not_allowed_is_told_in_one_line(name, arguments, parts, tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.labelled(name, data_dir=str(tmp_path), **arguments)
    one_line(raised, *parts)


def test_two_recordings_are_needed_to_hold_one_out(tmp_path, wav_bytes, one_line):
    (tmp_path / "a.wav").write_bytes(wav_bytes([1]))
    (tmp_path / "b.wav").write_bytes(wav_bytes([1]))
    (tmp_path / "labels.tsv").write_text("a.wav\tx\ttrain\nb.wav\tx\ttest\n")
    with pytest.raises(errors.UserError) as raised:
        load.labelled(f"folder:{tmp_path}")
    one_line(raised, tmp_path, "1 recording to train on")
