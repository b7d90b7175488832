import pytest

import errors
from data.text.readers import files


def write(folder, **contents):
    for name, content in contents.items():
        path = folder / name.replace("__", "-").replace("_", ".")
        path.write_text(content, encoding="utf-8", newline="")


CONLLU = "1\tGo\t_\tVERB\tVB\t_\t_\t_\t_\t_\n"


def test_tagged_by_ending(tmp_path):
    write(
        tmp_path,
        a_conllu=CONLLU,
        b_tsv="Go\tVERB\n",
        c_conll="Go VB VERB\n",
        d_jsonl='{"tokens": ["Go"], "tags": ["VERB"]}',
        e_csv="tokens,tags\nGo,VERB\n",
    )
    for path in sorted(tmp_path.iterdir()):
        (found,) = files.tagged(files.listed(str(path))).values()
        assert (list(map(list, found.tokens)), list(map(list, found.tags))) == ([["Go"]], [["VERB"]])
    conll = files.listed(str(tmp_path / "c.conll"))
    assert files.tagged(conll, tag_column="1")["train"].tags == [["VB"]]
    conllu = files.listed(str(tmp_path / "a.conllu"))
    assert files.tagged(conllu, tag_column="xpos")["train"].tags == [["VB"]]


def test_labelled_by_ending(tmp_path):
    write(
        tmp_path,
        a_tsv="text\tlabel\nGo!\t1\n",
        b_csv="text,label\nGo!,1\n",
        c_jsonl='{"text": "Go!", "label": 1}',
    )
    for path in sorted(tmp_path.iterdir()):
        (found,) = files.labelled(files.listed(str(path))).values()
        assert (found.tokens, found.label, found.tokenisation) == ([["Go", "!"]], ["1"], "punctuation")
        (whole,) = files.labelled(files.listed(str(path)), how="none").values()
        assert whole.tokens == [["Go!"]]


def test_one_to_three_files(tmp_path):
    a, b, c = (tmp_path / name for name in "abc")
    assert files.listed(f"{a}") == {"train": a}
    assert files.listed(f"{a},{b}") == {"train": a, "test": b}
    assert files.listed(f"{a}, {b},{c}") == {"train": a, "validation": b, "test": c}


def test_a_folder_by_the_words_of_its_names(tmp_path):
    write(
        tmp_path, en__ud__train_conllu="", en__ud__dev_conllu="", TEST_conllu="", latest_conllu="", README=""
    )
    found = files.in_folder(tmp_path)
    assert {split: path.name for split, path in found.items()} == {
        "test": "TEST.conllu",
        "validation": "en-ud-dev.conllu",
        "train": "en-ud-train.conllu",
    }


def test_folders_that_cannot_be_read(tmp_path, one_line):
    with pytest.raises(errors.UserError) as raised:
        files.in_folder(tmp_path / "no")
    one_line(raised, tmp_path / "no", "does not exist")
    write(tmp_path, test_tsv="")
    with pytest.raises(errors.UserError) as raised:
        files.in_folder(tmp_path)
    one_line(raised, tmp_path, "train")
    write(tmp_path, a__train_tsv="", b__train_tsv="")
    with pytest.raises(errors.UserError) as raised:
        files.in_folder(tmp_path)
    one_line(raised, "two files for train, a-train.tsv and b-train.tsv")


@pytest.mark.parametrize(
    "read, name, options, parts",
    [
        (files.tagged, "no.tsv", {}, ["no.tsv cannot be read: No such file"]),
        (files.tagged, "a.txt", {"tag_column": "upos"}, ["tag_column 'upos'", "numbers from 0"]),
        (files.tagged, "a.conllu", {"tag_column": "pos"}, ["'pos'", "upos"]),
        (files.tagged, "a.conllu", {"token_column": "lemma"}, ["token_column 'lemma'", "form"]),
        (files.labelled, "a.txt", {}, ["a.txt: a table must end in .tsv .csv .jsonl"]),
        (files.labelled, "a.tsv", {"how": "words"}, ["tokenisation 'words'"]),
    ],
)
def test_what_is_not_allowed(read, name, options, parts, tmp_path, one_line):
    write(tmp_path, a_txt="a b\n", a_conllu=CONLLU)
    with pytest.raises(errors.UserError) as raised:
        read(files.listed(str(tmp_path / name)), **options)
    one_line(raised, *parts)


def test_too_many_files(one_line):
    with pytest.raises(errors.UserError) as raised:
        files.listed("a,b,c,d")
    one_line(raised, "names 4 files", "TRAIN,VALIDATION,TEST")
