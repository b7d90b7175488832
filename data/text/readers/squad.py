"""Questions in the JSON of SQuAD: articles of paragraphs, each with its questions and their answers.

    {"data": [{"title": ..., "paragraphs": [{"context": ..., "qas": [
        {"id": ..., "question": ..., "answers": [{"text": ..., "answer_start": ...}]}]}]}]}

Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text".
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import errors
from data.text.types import Question, Text

Record = dict[str, Any]


def decode(content: bytes, name: str) -> list[Record]:
    """The questions of a file, in its order, in the fields that TFDS gives SQuAD.

    Args:
        content: the file.
        name: what to call it in an error.

    Returns:
        For each question `id`, `title` of the article, `context`, `question`, and `answers`: a list of
        `text` and one of `answer_start`, characters before it in the context.

    Raises:
        errors.UserError: the file is no JSON, or not of this form.
    """
    try:
        articles = json.loads(content)["data"]
        return [
            {
                "id": str(asked.get("id", "")),
                "title": article.get("title", ""),
                "context": paragraph["context"],
                "question": asked["question"],
                "answers": {
                    field: [answer[field] for answer in asked["answers"]]
                    for field in ("text", "answer_start")
                },
            }
            for article in articles
            for paragraph in article["paragraphs"]
            for asked in paragraph["qas"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise errors.UserError(
            f"{name}: not JSON as of SQuAD ({what}); needed are data, paragraphs, context, qas, question, "
            "answers, text and answer_start"
        ) from None


def questions(records: Iterable[Mapping[str, Any]], where: str) -> list[Question]:
    """Questions with their spans of tokens, from records as `decode` gives them.

    Args:
        records: one for each question.
        where: how messages begin.

    Raises:
        errors.UserError: a question has no answer, or one that is not in its passage.
    """
    passages: dict[str, Text] = {}  # several questions are about each
    made = []
    for index, record in enumerate(records):
        context = record["context"]
        if context not in passages:
            passages[context] = Text.of(context)
        made.append(_question(passages[context], record, f"{where}: question {record.get('id') or index}"))
    return made


def _question(passage: Text, record: Mapping[str, Any], where: str) -> Question:
    answers = tuple(record["answers"]["text"])
    if not answers:
        raise errors.UserError(f"{where} has no answer; every question needs one, as in SQuAD 1.1")
    begin = int(record["answers"]["answer_start"][0])
    end = begin + len(answers[0])
    if begin < 0 or passage.text[begin:end] != answers[0]:
        raise errors.UserError(
            f"{where}: the answer {answers[0][:40]!r} does not begin at character {begin} of its passage"
        )
    span = passage.cover(begin, end)
    if span is None:
        raise errors.UserError(f"{where}: the answer {answers[0][:40]!r} has no token")
    article = record.get("title") or passage.text
    return Question(passage, Text.of(record["question"]), span, answers, article)
