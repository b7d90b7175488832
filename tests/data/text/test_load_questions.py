"""Questions about passages: tokens and spans by hand, the generated facts, and files as SQuAD has them."""

import collections
import json
import logging
import re

import numpy as np
import pytest

import errors
from data import catalogue
from data.text import load
from data.text.generated import facts
from data.text.types import Text


def test_tokens_and_where_they_are():
    text = Text.of(" Anna's  hat-box, 308分！")
    assert text.tokens == ["Anna", "'", "s", "hat", "-", "box", ",", "308", "分", "！"]
    assert text.places[:4] == ((1, 5), (5, 6), (6, 7), (9, 12))
    assert text.span(0, 3) == "Anna's  hat"
    assert Text.of("  \n").tokens == []


def test_the_fewest_tokens_that_cover_an_answer():
    text = Text.of("in 1,066 days")  # in 1 , 066 days
    assert text.cover(3, 8) == (1, 3)
    assert text.cover(6, 11) == (3, 4)  # "66 da"
    assert text.cover(2, 3) is None  # the space


def test_a_fact_is_a_function_of_seed_split_and_number():
    assert facts.example(3, "train", 7) == facts.example(3, "train", 7)
    others = [facts.example(4, "train", 7), facts.example(3, "test", 7), facts.example(3, "train", 8)]
    assert all(other["context"] != facts.example(3, "train", 7)["context"] for other in others)


FACT = re.compile(r"the (\w+) (.+) of (.+) is in (.+)|in (.+) is the (\w+) (.+) of (.+)")


def read(context):
    """Facts as (colour, thing, owner, place), from the sentences alone."""
    found = []
    for sentence in context.removesuffix(" .").split(" . "):
        *first, place, colour, thing, owner = FACT.fullmatch(sentence).groups()
        found.append(tuple(first) if place is None else (colour, thing, owner, place))
    return found


def test_only_all_that_a_question_gives_finds_its_fact():
    """The facts around the one that is asked for: each differs in the answer, three in one feature more."""
    wanted, places, lengths = collections.Counter(), [], set()
    for index in range(300):
        record = facts.example(5, "train", index)
        (answer,), (start,) = record["answers"]["text"], record["answers"]["answer_start"]
        assert record["context"][start:].startswith(f"{answer} ")
        said = read(record["context"])
        assert 4 <= len(said) <= 7
        first = record["question"].split(" ")[0] + record["question"].split(" ")[1]
        asked = {"whereis": 3, "whichcolour": 0}.get(first, 1 if first.startswith("which") else 2)
        wanted[asked] += 1
        place = record["context"][:start].count(" . ")
        places.append((len(said), place))
        assert said[place][asked] == answer
        given = [feature for feature in range(4) if feature != asked]
        differ = sorted(
            sum(fact[feature] != said[place][feature] for feature in given)
            for number, fact in enumerate(said)
            if number != place
        )
        assert differ == [1, 1, 1] + [2] * (len(said) - 4)
        assert all(fact[asked] != answer for number, fact in enumerate(said) if number != place)
        lengths.add(len(answer.split(" ")))
    assert lengths == {1, 2, 3, 4}
    assert wanted[3] / 300 == pytest.approx(0.5, abs=0.1)
    # Asked facts stand anywhere, with equal chances: mean and variance of a uniform number in [0, 1).
    where = np.array([(place + 0.5) / size for size, place in places])
    assert where.mean() == pytest.approx(0.5, abs=0.06)
    assert where.var() == pytest.approx(1 / 12, abs=0.02)


def squad(articles, answer="a cat", start=2):
    """A file of one question for each of so many articles."""
    asked = {"id": "q", "question": "What?", "answers": [{"text": answer, "answer_start": start}]}
    paragraphs = [{"context": "A a cat sat.", "qas": [asked]}]
    return json.dumps(
        {"data": [{"title": f"article {i}", "paragraphs": paragraphs * 2} for i in range(articles)]}
    )


@pytest.fixture
def file(tmp_path):
    def file(content, name="a.json"):
        (tmp_path / name).write_text(content)
        return f"file:{tmp_path / name}"

    return file


def test_one_file_is_divided_by_articles(file):
    parts = load.questions(file(squad(20)))
    articles = [{question.article for question in part} for part in vars(parts).values()]
    assert [len(found) for found in articles] == [16, 2, 2]
    assert len(set.union(*articles)) == 20
    assert [len(part) for part in vars(parts).values()] == [32, 4, 4]
    question = parts.test[0]
    assert question.span == (1, 2)
    assert question.passage.span(*question.span) == question.answers[0] == "a cat"


def test_three_files_are_what_they_are_called(file):
    names = [file(squad(n), f"{n}.json").removeprefix("file:") for n in (3, 1, 2)]
    parts = load.questions("file:" + ",".join(names))
    assert [len(part) for part in vars(parts).values()] == [6, 2, 4]


def test_answers_within_words_are_counted(file, caplog):
    with caplog.at_level(logging.WARNING):
        parts = load.questions(file(squad(10, "at", 5)))
    assert "20 of 20 answers are not whole tokens" in caplog.text
    assert (parts.test[0].answers, parts.test[0].span) == (("at",), (2, 2))


@pytest.mark.parametrize(
    "content, said",
    [
        (squad(12, start=3), "question q: the answer 'a cat' does not begin at character 3"),
        (squad(12).replace('{"text": "a cat", "answer_start": 2}', ""), "question q has no answer"),
        (squad(12, " ", 1), "question q: the answer ' ' has no token"),
        (squad(9), "9 article(s), no test; 10 are needed for 10 folds"),
        ('{"data": [{"paragraphs": [{"qas": []}, {}]}]}', "no 'qas'"),
        ("[]", "not JSON as of SQuAD"),
        ("", "not JSON as of SQuAD"),
        ('{"data": []}', "nothing to read for train"),
    ],
)
def test_a_file_that_is_not_as_it_must_be(content, said, file, one_line):
    with pytest.raises(errors.UserError) as raised:
        load.questions(file(content))
    one_line(raised, said)


def test_names(tmp_path, one_line):
    for name, said in (
        ("factz", "Did you mean 'facts'"),
        ("xquad_en", "python -m data.prepare xquad_en"),
        (f"file:{tmp_path}/none.json", "none.json cannot be read"),
    ):
        with pytest.raises(errors.UserError) as raised:
            load.questions(name, data_dir=str(tmp_path))
        one_line(raised, said)


@pytest.mark.parametrize("name, inexact, tokens", [("xquad_en", 1, ["308"]), ("xquad_zh", 0, ["308"])])
def test_xquad(name, inexact, tokens, real_data, caplog):
    (raw_file,) = catalogue.builder(name).RAW_FILES
    with caplog.at_level(logging.WARNING):
        parts = load.questions(f"file:{real_data('reading') / raw_file.name}")
    every = [question for part in vars(parts).values() for question in part]
    assert len(every) == 1_190
    assert len({question.passage.text for question in every}) == 240
    assert (f"{inexact} of 1,190" in caplog.text) == bool(inexact)
    (first,) = [question for question in every if question.answers == ("308",)]
    assert first.passage.tokens[first.span[0] : first.span[1] + 1] == tokens


def test_a_prepared_set_is_its_file(real_data, prepared):
    name = f"file:{real_data('reading') / 'xquad.en.json'}"
    assert load.questions("xquad_en", data_dir=prepared("xquad_en")) == load.questions(name)
