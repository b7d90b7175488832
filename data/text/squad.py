"""Questions in the JSON of SQuAD: articles of paragraphs, each with its questions and their answers.

    {"data": [{"title": ..., "paragraphs": [{"context": ..., "qas": [
        {"id": ..., "question": ..., "answers": [{"text": ..., "answer_start": ...}]}]}]}]}

Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text".
"""

import json
from typing import Any

import errors

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
