import gzip
import logging

import numpy as np
import pytest
import tensorflow_datasets as tfds

import errors
from data.text import load
from data.text.readers import parallel_files
from data.text.types import Link, ParallelText


def write(stem, source, target):
    """A file for each side; gives the path without the language."""
    for language, lines in (("de", source), ("en", target)):
        stem.with_name(f"{stem.name}.{language}").write_text("".join(line + "\n" for line in lines))
    return stem


def numbered(size, word="w"):
    return [f"{word} {i}" for i in range(size)]


def pairs(text):
    return set(zip(text.source, text.target, strict=True))


def test_three_pairs_of_files_are_taken_as_they_are(tmp_path):
    stems = [write(tmp_path / f"f{n}", numbered(n, "s"), numbered(n, "t")) for n in (5, 3, 2)]
    data = load.parallel("file:" + ",".join(map(str, stems)))
    assert (len(data.train), len(data.validation), len(data.test)) == (5, 3, 2)
    assert data.test == ParallelText(["s 0", "s 1"], ["t 0", "t 1"])
    back = load.parallel("file:" + ",".join(map(str, stems)), source="en", target="de")
    assert back.test == ParallelText(["t 0", "t 1"], ["s 0", "s 1"])
    assert back.train.take(np.array([4, 1])) == ParallelText(["t 4", "t 1"], ["s 4", "s 1"])


def test_compressed_files_of_a_folder(tmp_path):
    for name, size in (("train", 9), ("dev", 3), ("test_a", 2), ("test", 4)):
        for language in ("de", "en"):
            text = "".join(f"{language} {line}\r\n" for line in numbered(size))
            (tmp_path / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "readme").write_text("")
    name = f"folder:{tmp_path}"
    assert load.parallel(name).test.source == [f"de w {i}" for i in range(4)]
    assert [len(part) for part in vars(load.parallel(name, test="test_a")).values()] == [9, 3, 2]


def test_one_file_is_divided_by_its_source(tmp_path):
    source = [f"s {i // 2}" for i in range(60)]  # each twice
    stem = write(tmp_path / "all", source, numbered(60, "t"))
    first, second = (
        load.parallel(f"file:{stem}", validation_fraction=0.2, split_seed=seed) for seed in (0, 1)
    )
    assert [len(part) for part in vars(first).values()] == [38, 10, 12]
    sides = [set(part.source) for part in vars(first).values()]
    assert sum(map(len, sides)) == len(set.union(*sides)) == 30
    assert set.union(*map(pairs, vars(first).values())) == set(zip(source, numbered(60, "t"), strict=True))
    assert first.test == second.test
    assert first.validation != second.validation
    assert first.train.source == sorted(first.train.source, key=source.index)


def test_blank_sides_are_left_out_of_training_alone(tmp_path, caplog):
    stem = write(tmp_path / "a", ["a", " ", "c", "d"], ["a", "b", "c", ""])
    with caplog.at_level(logging.WARNING):
        data = load.parallel(f"file:{stem},{stem},{stem}")
    assert data.train == ParallelText(["a", "c"], ["a", "c"])
    assert len(data.validation) == len(data.test) == 4
    (record,) = caplog.records
    assert "2 of 4 training pairs" in record.getMessage()
    assert "the first is pair 2" in record.getMessage()


def test_unequal_files_name_the_line(tmp_path, one_line):
    source = ["word " * n for n in (2, 9, 4, 12, 6, 1, 8)]
    target = [*source[:3], "a line that the other has not", *source[3:]]
    stem = write(tmp_path / "a", source, target)
    with pytest.raises(errors.UserError) as raised:
        load.parallel(f"file:{stem}")
    one_line(raised, f"{stem}.de has 7 lines", f"{stem}.en has 8", "about line 4")


@pytest.mark.parametrize("missing, lost", [(1, (1_200,)), (2, (700, 1_500)), (30, tuple(range(400, 430)))])
def test_the_first_suspicious_line_of_noisy_lengths(missing, lost):
    random = np.random.default_rng(0)
    first = random.integers(10, 120, 2_000)
    second = np.round(first * random.normal(1.1, 0.15, 2_000).clip(0.5, 2)).astype(int)
    shorter = np.delete(second, lost)
    assert len(shorter) == 2_000 - missing
    assert abs(parallel_files.first_suspicious(first, shorter) - (lost[0] + 1)) <= 3
    assert abs(parallel_files.first_suspicious(shorter, first) - (lost[0] + 1)) <= 3


def test_lines_missing_at_the_end_or_altogether():
    lengths = [50, 7, 120, 33, 80]
    assert parallel_files.first_suspicious(lengths, lengths[:3]) == 4
    assert parallel_files.first_suspicious([], lengths) == 1


def prepared(root, sizes):
    """Writes a set with TFDS's feature of translations, as its own builders have it."""

    class Flores(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            return self.dataset_info_from_configs(features=tfds.features.Translation(("ne", "en")))

        def _split_generators(self, dl_manager):
            return {split: self._generate_examples(split, size) for split, size in sizes.items()}

        def _generate_examples(self, split, size):
            for i in range(size):
                yield i, {language: f"{language} {split} {i}" for language in ("ne", "en")}

    builder = Flores(data_dir=root / "made", file_format="array_record")
    builder.download_and_prepare()
    folder = root / "flores" / "neen" / "1.0.0"
    folder.parent.mkdir(parents=True)
    builder.data_path.rename(folder)


def test_a_set_that_tfds_prepared(tmp_path, one_line):
    prepared(tmp_path, {"validation": 3, "train": 9, "test": 2, "test_new": 4})
    where = {"data_dir": str(tmp_path)}
    data = load.parallel("flores/neen", source="ne", target="en", **where)
    assert [len(part) for part in vars(data).values()] == [9, 3, 2]
    assert pairs(data.test) == {("ne test 0", "en test 0"), ("ne test 1", "en test 1")}
    other = load.parallel("flores", source="en", target="ne", test="test_new", **where)
    assert ("en test_new 3", "ne test_new 3") in pairs(other.test)
    assert other.validation == ParallelText(data.validation.target, data.validation.source)
    for arguments, parts in (
        ({}, ["unknown language of", "flores/neen/1.0.0 'de'", "en, ne"]),
        ({"source": "ne", "test": "dev"}, ["unknown test of", "flores/neen/1.0.0 'dev'", "test, test_new"]),
    ):
        with pytest.raises(errors.UserError) as raised:
            load.parallel("flores/neen", **where, **arguments)
        one_line(raised, *parts)


@pytest.mark.parametrize(
    "name, arguments, parts",
    [
        ("multi30", {}, ["unknown data set 'multi30'", "Did you mean 'multi30k'?", "folder:DIR"]),
        ("multi30k", {}, ["not prepared", "python -m data.prepare multi30k --data_dir"]),
        ("dates", {"source": "en"}, ["both 'en'", "two languages"]),
        ("dates", {"source": "xx"}, ["'xx' is no locale"]),
        ("dates", {"test": "test"}, ["test 'test'", "dates"]),
        ("dates", {"validation_fraction": 1}, ["validation_fraction 1"]),
        ("dates", {"split_seed": -1}, ["seed -1"]),
        ("multi30k", {"encoding": "latin-1"}, ["encoding 'latin-1'", "files of your own"]),
        ("file:/no/train", {}, ["/no/train.de or /no/train.de.gz", "without the language"]),
        ("file:a,b,c,d", {}, ["names 4 files"]),
        ("folder:/no", {}, ["/no does not exist"]),
        ("folder:.", {}, ["no train.de and train.en"]),
    ],
)
def test_what_is_not_allowed_is_told(name, arguments, parts, tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.parallel(name, **{"data_dir": str(tmp_path), **arguments})
    one_line(raised, *parts)


def test_files_that_cannot_be_used(tmp_path, one_line):
    blank = write(tmp_path / "blank", ["", "a"], ["b", " "])
    empty = write(tmp_path / "empty", [], [])
    same = write(tmp_path / "same", ["a", "a"], ["b", "c"])
    for name, part in (
        (f"file:{blank}", "every training pair has a blank side"),
        (f"file:{same},{empty}", "nothing to read for test"),
        (f"file:{same}", "1 different source line to train on"),
    ):
        with pytest.raises(errors.UserError) as raised:
            load.parallel(name)
        one_line(raised, part)
    for name in ("train", "val", "dev"):
        write(tmp_path / name, ["a"], ["b"])
    with pytest.raises(errors.UserError) as raised:
        load.parallel(f"folder:{tmp_path}")
    one_line(raised, "val and dev for validation")


def test_dates():
    data = load.parallel("dates", source="en", target="hu")
    assert [len(part) for part in vars(data).values()] == [4_000, 500, 500]
    assert any(line.startswith("Wednesday, March ") for line in data.train.source)
    back = load.parallel("dates", source="hu", target="en", split_seed=3).test
    assert (back.source, back.target) == (data.test.target, data.test.source)
    assert back.take([7]).links == [
        [Link(*link[::-1]) for link in sorted(data.test.links[7], key=lambda x: x.source)]
    ]
