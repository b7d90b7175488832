import pytest

import errors
from data.speech import load
from data.speech.readers import folder


@pytest.fixture
def wavs(tmp_path, wav_bytes):
    """Writes wav files, each of one sample more than the last, and a label file."""

    def write(files, name="labels.tsv", content=b""):
        for number, file in enumerate(files, 1):
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wav_bytes([0] * number))
        if content:
            (tmp_path / name).write_bytes(content)
        return tmp_path

    return write


def summary(splits):
    """Split: samples and label of each recording."""
    return {
        split: [(len(recording.sound.samples), recording.label) for recording in recordings]
        for split, recordings in splits.items()
    }


def test_label_file_of_another_system(wavs):
    """Byte-order mark, CRLF, blank lines, spaces, a heading, no end of the last line, quotes, U+2028."""
    content = (
        "\ufefffile\tlabel\tsplit\r\n"
        "a.wav\tyes\ttrain\r\n"
        "\r\n"
        "\t\t\r\n"
        'in/b.wav \t"no"\u2028really\ttest\r\n'
        "c.wav\tyes\ttrain"
    ).encode()
    found = folder.labelled(wavs(["a.wav", "in/b.wav", "c.wav"], content=content))
    assert summary(found) == {"train": [(1, "yes"), (3, "yes")], "test": [(2, '"no"\u2028really')]}
    assert found["test"][0].where.endswith("labels.tsv:5")


def test_commas_and_quotes(wavs):
    content = b'"a,1.wav",yes,train\nb.wav,"no, really",test\n'
    found = folder.labelled(wavs(["a,1.wav", "b.wav"], "labels.csv", content))
    assert summary(found) == {"train": [(1, "yes")], "test": [(2, "no, really")]}


def test_without_splits_the_names_decide(wavs):
    files = [f"{number}.wav" for number in range(20)]
    content = "".join(f"{file}\tx\n" for file in files).encode()
    directory = wavs(files, content=content)
    found = summary(folder.labelled(directory))
    assert sorted(found["train"] + found["test"]) == [(number, "x") for number in range(1, 21)]
    assert 1 <= len(found["test"]) <= 8
    wavs([], content=content.replace(b"7.wav\tx\n17.wav\tx\n", b""))  # the others stay where they are
    fewer = summary(folder.labelled(directory))
    assert set(fewer["test"]) <= set(found["test"])
    assert set(fewer["train"]) <= set(found["train"])


def test_a_folder_for_each_label(wavs):
    found = folder.labelled(wavs(["train/no/a.wav", "train/yes/b.WAV", "test/yes/c.wav"]))
    assert summary(found) == {"train": [(1, "no"), (2, "yes")], "test": [(3, "yes")]}


def test_a_validation_part_is_held_out(wavs):
    files = [f"{number}.wav" for number in range(30)]
    lines = [f"{file}\t{'ab'[n % 2]}\t{'test' if n > 19 else 'train'}\n" for n, file in enumerate(files)]
    directory = wavs(files, content="".join(lines).encode())
    parts = load.labelled(f"folder:{directory}")
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [18, 2, 10]
    assert sorted(recording.label for recording in parts.validation) == ["a", "b"]


@pytest.mark.parametrize(
    "content, parts",
    [
        (b"a.wav\tx\ttrain\nmissing.wav\ty\ttest\n", ["labels.tsv:2: ", "missing.wav does not exist"]),
        (b"a.wav\tx\ttrain\n\nb.wav\ty\tTest\n", ["labels.tsv:3: ", "unknown split 'Test'", "test"]),
        (b"a.wav\tx\nb.wav\n", ["labels.tsv:2: ", "1 columns", "2 are needed"]),
        (b"a.wav\tx\nb.wav\ty\ttest\n", ["labels.tsv:2: ", "3 columns", "2 are needed"]),
        (b"a.wav x\nb.wav y\n", ["labels.tsv:1: ", "1 columns", "file, label"]),
        (b"a.wav\t\n", ["labels.tsv:1: ", "none of them empty"]),
        (b"a.wav\tx\ttrain\na.wav\ty\ttest\n", ["labels.tsv:2: ", "line 1 already"]),
        (b"a.wav\tx\ttrain\nb.wav\ty\ttrain\n", ["no file for test", "2 for train"]),
        (b"file\tlabel\n", ["no file for train", "none"]),
        (b"a.wav\t\xe9\n", ["labels.tsv: byte 6", "UTF-8"]),
    ],
)
def test_wrong_lines_are_named(wavs, content, parts, one_line):
    with pytest.raises(errors.UserError) as raised:
        folder.labelled(wavs(["a.wav", "b.wav"], content=content))
    one_line(raised, *parts)


def test_two_label_files(wavs, one_line):
    directory = wavs(["a.wav"], content=b"a.wav\tx\n")
    wavs([], "labels.csv", b"a.wav,x\n")
    with pytest.raises(errors.UserError) as raised:
        folder.labelled(directory)
    one_line(raised, "both labels.tsv and labels.csv")


def test_a_damaged_file_is_named(wavs, one_line):
    directory = wavs(["a.wav", "b.wav"], content=b"a.wav\tx\ttrain\nb.wav\ty\ttest\n")
    (directory / "b.wav").write_bytes(b"RIFF")
    with pytest.raises(errors.UserError) as raised:
        folder.labelled(directory)
    one_line(raised, directory / "b.wav")


def texts(splits):
    return {
        split: [(len(recording.sound.samples), recording.text) for recording in recordings]
        for split, recordings in splits.items()
    }


def test_transcripts_in_a_table(wavs):
    content = b'file,text,split\na.wav,"one, two",train\nb.wav,three,test\n'
    found = folder.transcribed(wavs(["a.wav", "b.wav"], "transcripts.csv", content))
    assert texts(found) == {"train": [(1, "one, two")], "test": [(2, "three")]}
    assert found["test"][0].where.endswith("transcripts.csv:3")


def test_transcripts_beside_the_recordings(wavs):
    files = ["train/a.wav", "train/deep/er/b.WAV", "test/c.wav"]
    directory = wavs(files)
    for file, text in zip(files, ["one  two\n", "\ufeffthree\r\nfour\r\n", " five"], strict=True):
        (directory / file).with_suffix(".txt").write_text(text, newline="")
    (directory / "README").touch()
    found = load.transcribed(f"folder:{directory}", validation_fraction=0.5)
    assert sorted([*texts(vars(found))["train"], *texts(vars(found))["validation"]]) == [
        (1, "one two"),
        (2, "three four"),
    ]
    assert texts(vars(found))["test"] == [(3, "five")]
    (directory / "train" / "a.txt").write_text(" \n")
    with pytest.raises(errors.UserError, match=r"a\.txt is empty; it must hold what is said in a\.wav"):
        folder.transcribed(directory)
    (directory / "train" / "a.txt").unlink()
    with pytest.raises(errors.UserError, match=r"a\.wav has no text: a\.txt is needed beside it"):
        folder.transcribed(directory)


def test_transcripts_divided_by_the_names_of_the_files(wavs):
    files = [f"{number}.wav" for number in range(20)]
    directory = wavs(files)
    for number, file in enumerate(files, 1):
        (directory / file).with_suffix(".txt").write_text(f"said {number}")
    content = "".join(f"{file}\tsaid {number}\n" for number, file in enumerate(files, 1)).encode()
    beside, listed = (
        {split: sorted(found) for split, found in texts(folder.transcribed(each)).items()}
        for each in (directory, wavs([], "transcripts.tsv", content))
    )
    assert beside == listed
    assert 1 <= len(beside["test"]) <= 8


def test_transcripts_that_are_missing(wavs, tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        folder.transcribed(tmp_path / "no")
    one_line(raised, tmp_path / "no", "does not exist")
    with pytest.raises(errors.UserError) as raised:
        folder.transcribed(wavs(["a.wav"], "transcripts.tsv", b"a.wav\tone\n"))
    one_line(raised, "transcripts.tsv has no file for test (1 for train); a third column")
