import pytest

import errors
from data import catalogue
from data.text import load


def table(path, size, labels=("x", "y")):
    rows = [f"text {i}\t{labels[i % len(labels)]}" for i in range(size)]
    path.write_text("\n".join(["text\tlabel", *rows]))
    return path


def texts(part):
    return {tokens[1] for tokens in part.tokens}


@pytest.mark.parametrize("read", [load.labelled, load.tagged])
def test_grammar_needs_no_files(read):
    data = read("grammar")
    assert (len(data.train), len(data.validation), len(data.test)) == (2_000, 500, 1_000)
    assert read("grammar", split_seed=1).train != data.train


def test_three_files_are_taken_as_they_are(tmp_path):
    paths = [table(tmp_path / f"{size}.tsv", size) for size in (4, 3, 2)]
    data = load.labelled("file:" + ",".join(map(str, paths)))
    assert [len(part) for part in (data.train, data.validation, data.test)] == [4, 3, 2]


def test_validation_is_held_out_class_by_class(tmp_path):
    name = f"file:{table(tmp_path / 'a.tsv', 60, 'xxxy')},{table(tmp_path / 'b.tsv', 5)}"
    data, other = (load.labelled(name, validation_fraction=0.2, split_seed=seed) for seed in (0, 1))
    assert sorted(data.validation.label) == ["x"] * 9 + ["y"] * 3
    assert texts(data.train).isdisjoint(texts(data.validation))
    assert len(texts(data.train) | texts(data.validation)) == 60
    assert texts(other.validation) != texts(data.validation)
    assert texts(other.test) == texts(data.test)
    numbers = [int(tokens[1]) for tokens in data.train.tokens]
    assert numbers == sorted(numbers)  # as published


def test_ten_folds_share_nothing_and_are_the_same_for_every_seed(tmp_path):
    name = f"file:{table(tmp_path / 'a.tsv', 23)}"
    folds = [load.labelled(name, fold=fold) for fold in range(10)]
    assert [len(fold.test) for fold in folds] == [3, 3, 3] + [2] * 7
    assert len(set.union(*(texts(fold.test) for fold in folds))) == 23
    for fold in folds:
        parts = [texts(part) for part in (fold.train, fold.validation, fold.test)]
        assert len(set.union(*parts)) == 23 == sum(map(len, parts))
    assert load.labelled(name).test == folds[9].test
    assert load.labelled(name, split_seed=5).test == folds[9].test


def test_tagged_sentences_of_a_folder(tmp_path):
    for name, size in (("train.conll", 20), ("test.conll", 3)):
        (tmp_path / name).write_text("".join(f"a{i}\tX\nb\tY\n\n" for i in range(size)))
    data = load.tagged(f"folder:{tmp_path}")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [18, 2, 3]
    assert data.test.tokens[2] == ["a2", "b"]


@pytest.mark.parametrize(
    "name, arguments, parts",
    [
        (
            "gramar",
            {},
            ["unknown data set 'gramar'", "Did you mean 'grammar'?", "file:TRAIN,VALIDATION,TEST"],
        ),
        ("trec", {}, ["not prepared", "python -m data.prepare trec --data_dir"]),
        ("file:", {}, ["unknown data set"]),
        ("file:/no/a.tsv", {}, ["/no/a.tsv cannot be read"]),
        ("folder:/no", {}, ["/no does not exist"]),
        ("grammar", {"validation_fraction": 0}, ["validation_fraction 0", "(0, 1)"]),
        ("grammar", {"folds": 5}, ["folds 5", "a test of its own"]),
        ("grammar", {"fold": 3}, ["fold 3", "a test of its own"]),
        ("grammar", {"split_seed": -1}, ["seed -1"]),
        ("grammar", {"text_column": "text"}, ["text_column 'text'", "grammar is generated"]),
        ("trec", {"tokenisation": "spaces"}, ["tokenisation 'spaces'"]),
        ("trec", {"encoding": "latin-1"}, ["encoding 'latin-1'", "files of your own"]),
    ],
)
def test_what_is_not_allowed_is_told_in_one_line(name, arguments, parts, tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.labelled(name, **{"data_dir": str(tmp_path), **arguments})
    assert one_line(raised, *parts).exit_code == 2


def test_too_few_examples(tmp_path, one_line):
    nine, one, none = (table(tmp_path / f"{size}.tsv", size) for size in (9, 1, 0))
    cases = {
        f"file:{nine}": ["9 text(s), no test", "10 are needed for 10 folds"],
        f"file:{one},{nine}": ["1 text to train on"],
        f"file:{nine},{none}": ["nothing to read for test"],
    }
    for name, parts in cases.items():
        with pytest.raises(errors.UserError) as raised:
            load.labelled(name)
        one_line(raised, *parts)
    with pytest.raises(errors.UserError) as raised:
        load.labelled(f"file:{nine},{nine}", fold=2)
    one_line(raised, "fold 2", "a test of its own")
    for arguments, part in (({"fold": 9}, "fold 9 of 9"), ({"fold": -1}, "fold -1"), ({"folds": 1}, "of 1")):
        with pytest.raises(errors.UserError) as raised:
            load.labelled(f"file:{nine}", **({"folds": 9} | arguments))
        one_line(raised, part, "2 folds at least")


def test_columns_of_generated_tags_are_refused(one_line):
    with pytest.raises(errors.UserError) as raised:
        load.tagged("grammar", tag_column="x")
    one_line(raised, "tag_column 'x'", "grammar is generated")


def test_every_built_in_name_is_known_to_load(tmp_path):
    for name in catalogue.BUILDERS["text"]:
        for read in (load.labelled, load.tagged):
            with pytest.raises(errors.UserError, match="is not prepared"):
                read(name, data_dir=str(tmp_path))
