"""Translation: data, metrics, and new lines, by an untrained model, which has to answer them all the same."""

import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from configs import EXPERIMENT, translation
from data.text.types import Link
from errors import UserError
from models.encoder_decoder import Prediction
from tasks import build
from tasks import translation as translation_task
from tasks.generation import signature
from tasks.task import answers
from training import config as configs
from training import randomness
from training.optimizer import SGD
from training.state import create, prediction_step

SMALL = {
    "model.dim": 8,
    "subwords.unit": "bpe",
    "subwords.vocab_size": 120,
    "evaluation_batch_tokens": 64,
    "decoding.max_ratio": 0.2,
}


def small(**fields):
    config = translation.get_config("model=rnn,smoke")
    return build(configs.override(config, SMALL | fields, EXPERIMENT, parsed=True))


@pytest.fixture(scope="module")
def task():
    return small()


@pytest.fixture(scope="module")
def answer(task):
    """Lines to answers, by parameters as they are drawn."""
    inputs = task.encoded.inputs
    model = functools.partial(task.make_model, inputs)
    structure, state = create(model, randomness.key(0, "init"), SGD())

    def answer(lines, task=task):
        step = prediction_step(task, structure)
        records = [{"text": line, "where": f"line {i}"} for i, line in enumerate(lines, 1)]
        return answers(task, lambda batch: step(state.params, state.statistics, batch), records, inputs)

    return answer


def test_pairs_are_encoded_with_an_end_and_numbered_through_all_parts(task):
    found = task.encoded
    parts, inputs, references = found.splits, found.inputs, found.answers
    sizes = [len(part) for part in (parts.train, parts.validation, parts.test)]
    assert len(references) == sum(sizes)
    assert parts.test.fields["example"][0] == sizes[0] + sizes[1]
    assert parts.train.targets["tokens"][5][-1] == 3
    assert parts.train.vectors["words"][5][-1] == 3
    assert inputs["longest"] == parts.train.sizes[:, 0].max()


def test_every_line_has_its_answer(answer, caplog):
    lines = [
        "Montag",
        "",
        "Montag, 5. Mai 2025",
        "  ",
        "字母",
        "Montag",
        " ".join(["Montag"] * 9),
        "\u2028",
    ]
    with caplog.at_level(logging.WARNING):
        found = answer(lines)
    said = [one["line"] for one in found]
    assert [bool(line) for line in said] == [True, False, True, False, True, True, True, False]
    assert said[0] == said[5]
    assert all("\n" not in line for line in said)
    assert [record.getMessage()[:7] for record in caplog.records] == ["line 7 "]
    assert [answer([line])[0]["line"] for line in lines] == said


def test_scores_say_what_they_are():
    said = {name: signature(score) for name, score in translation_task.SCORES.items()}
    assert "case:mixed" in said["bleu"] and "tok:13a" in said["bleu"]  # noqa: PT018
    assert "case:lc" in said["bleu_lower"]


def test_a_record_without_text_is_named(task):
    with pytest.raises(UserError, match="line 3 has no text"):
        list(task.encode([{"tokens": ["a"], "where": "line 3"}], task.encoded.inputs))


def test_where_it_looked_has_the_subwords_at_its_sides(answer):
    wide = small(**{"decoding.align": True, "decoding.beam": 2, "decoding.num_best": 2})
    (found,) = answer(["Montag, 5. Mai 2025"], wide)
    alignment = found["alignment"]
    assert "".join(alignment.source).replace("▁", " ").strip().startswith("Montag, 5. Mai 2025")
    assert alignment.weights.shape == (len(alignment.target), len(alignment.source))
    np.testing.assert_allclose(alignment.weights.sum(axis=-1), 1, atol=1e-5)
    assert len(found["hypotheses"]) == 2
    assert found["hypotheses"][0]["score"] >= found["hypotheses"][1]["score"]


def test_metrics_are_of_what_was_made(task):
    parts, references = task.encoded.splits, task.encoded.answers
    batch = parts.test.gather(np.array([0, 1, -1]), (32, 32))
    tokens = np.where(np.arange(3)[:, None] == 1, 0, batch["tokens"])
    output = {"loss": np.array([3.0, 5.0, 0.0]), "tokens": tokens, "finished": np.array([True, False, False])}
    metrics = task.metrics([(batch, output)])
    assert metrics["loss"] == pytest.approx(8 / batch["target_mask"].sum())
    assert metrics["perplexity"] == pytest.approx(np.exp(metrics["loss"]))
    assert metrics["finished"] == 0.5
    whole = task.measure([references[1][0]] * 2, [references[1]] * 2, np.zeros(2))
    assert {name: round(value, 6) for name, value in whole.items()} == {
        "bleu": 100,
        "bleu_lower": 100,
        "chrf": 100,
    }
    shouted = task.measure([references[1][0].upper()] * 2, [references[1]] * 2, np.zeros(2))
    assert shouted["bleu"] < 50 and round(shouted["bleu_lower"], 6) == 100  # noqa: PT018
    assert metrics["bleu"] < 100


@pytest.mark.parametrize(
    "field, value, said",
    [
        ("decoding.beam", 0, "beam"),
        ("max_length", 1, "every training pair is longer"),
        ("subwords.unit", "letters", "letters"),
    ],
)
def test_mistakes_in_the_config_are_one_line(field, value, said):
    with pytest.raises(UserError, match=said) as caught:
        small(**{field: value}).data()
    assert "\n" not in str(caught.value)


def test_one_vocabulary_or_two():
    separate = small(joint_vocabulary=False)
    inputs = separate.encoded.inputs
    with pytest.raises(UserError, match="joint_vocabulary"):
        separate.make_model(inputs, nnx.Rngs(0))
    apart = small(joint_vocabulary=False, **{"model.share_embeddings": False})
    nnx.eval_shape(lambda: apart.make_model(inputs, nnx.Rngs(0)))
    assert inputs["source"] != inputs["target"]


def test_where_each_token_should_look():
    # "3. März" and "March 3": "March" is said by the second source token, " 3" by the first.
    links = [Link((0, 5), (3, 7)), Link((6, 7), (0, 1))]
    source, target = [(0, 1), (1, 3), (3, 5), (5, 7)], [(0, 3), (3, 5), (5, 7)]
    assert translation_task.looks(source, target, links) == [(2, 3), (2, 3), (0, 0), (-1, -1)]


def test_attention_that_looks_at_the_right_place_is_counted(task):
    batch = task.encoded.splits.test.gather(np.array([0, -1]), (32, 32))
    known = (batch["looks"][0, :, 0] >= 0) & batch["target_mask"][0]
    assert 4 <= known.sum() < batch["target_mask"][0].sum()
    output = {"loss": np.zeros(2), "tokens": batch["tokens"], "finished": np.ones(2, bool)}
    output["aligned"] = np.array([known.sum() - 1, 0])
    metrics = task.metrics([(batch, output)])
    assert metrics["alignment_accuracy"] == pytest.approx(1 - 1 / known.sum())
    assert metrics["bleu"] == pytest.approx(100)


class Looking:
    """Looks at the second place always."""

    def __call__(self, batch, *, train=False, rngs=None, return_weights=False):
        shape = batch["tokens"].shape
        weights = jnp.broadcast_to(jnp.array([0.2, 0.8]), (shape[0], 1, shape[1], 2))
        return Prediction(jnp.zeros((*shape, 4)), (weights,) if return_weights else (), None)


def test_padding_is_not_counted_as_aligned(task, monkeypatch):
    """The places of padding have looks, too, of which none is known."""
    monkeypatch.setattr(translation_task.GenerationTask, "evaluate", lambda *_: {})
    monkeypatch.setattr(
        translation_task.GenerationTask, "metrics", lambda _, evaluated: {"n": len(list(evaluated))}
    )
    batch = {
        "tokens": jnp.ones((2, 3), jnp.int32),
        "target_mask": jnp.array([[True, True, False], [True, False, False]]),
        # Right, open, padding; wrong, padding that would be right, and padding.
        "looks": jnp.array([[[1, 1], [-1, -1], [0, 1]], [[0, 0], [0, 3], [1, 1]]]),
    }
    output = task.evaluate(Looking(), batch)
    assert output["aligned"].tolist() == [1, 0]
    assert task.metrics([(jax.device_get(batch), output)]) == {"n": 1, "alignment_accuracy": 0.5}
