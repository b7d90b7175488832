"""Reading: loss and metrics by hand, and answers to new questions, alone and in a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import tasks
from configs import EXPERIMENT, reading
from data.text.generated import facts
from data.text.types import Question, Text
from errors import UserError
from models.reader import Spans
from tasks.task import Encoded, answers
from tests.models.parameters import filled
from training import config as configs


class Given(nnx.Module):
    """A model whose probabilities are its input."""

    def __call__(self, batch, *, train, rngs=None):
        return Spans(batch["p_start"], batch["p_end"])


# The likeliest span of the first passage is 0 to 1, of the second 2 to 2.
START = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [1.0, 1.0, 1.0]]
END = [
    [[0.2, 0.7, 0.1], [0.1, 0.5, 0.4], [0.3, 0.3, 0.4]],
    [[0.9, 0.05, 0.05], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4]],
    [[1.0, 1.0, 1.0]] * 3,
]
BATCH = {
    "p_start": jnp.log(jnp.asarray(START, jnp.float32)),
    "p_end": jnp.log(jnp.asarray(END, jnp.float32)),
    "mask": jnp.ones((3, 3), bool),
    "start": jnp.array([0, 1, 0], jnp.int32),
    "end": jnp.array([1, 2, 0], jnp.int32),
    "weight": jnp.array([1.0, 1.0, 0.0], jnp.float32),
    "example": np.array([1, 0, 0], np.int32),
}


def make(**fields):
    return tasks.build(configs.override(reading.get_config("smoke"), fields, EXPERIMENT, parsed=True))


def test_loss_is_that_of_start_and_end():
    loss, weight, sums = make().loss(Given(), BATCH, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(loss, -np.log(0.6 * 0.7) - np.log(0.2 * 0.5), rtol=1e-6)
    assert (float(weight), float(sums["exact_match"])) == (2.0, 1.0)


def test_metrics_are_of_texts():
    task = make()
    passage = Text.of("the red hat")
    asked = [
        Question(passage, Text.of("what ?"), (1, 2), ("red hat",), ""),
        Question(passage, Text.of("which ?"), (0, 1), ("nothing", "red"), ""),
    ]
    task.__dict__["encoded"] = Encoded(None, {}, asked)
    output = {name: np.asarray(array) for name, array in task.evaluate(Given(), BATCH).items()}
    # Found are "the red" for "red", and "hat" for "red hat".
    assert task.metrics([(BATCH, output)]) == {
        "exact_match": 0.5,
        "f1": pytest.approx((1 + 2 / 3) / 2),
        "loss": pytest.approx(-np.log(0.6 * 0.7 * 0.2 * 0.5) / 2),
        "examples": 2.0,
    }
    # With one token at most, the first becomes 0 to 0 or 1 to 1: 0.6 * 0.2 < 0.3 * 0.5.
    shorter = make(max_answer_length=1).evaluate(Given(), BATCH)
    assert (shorter["start"][:2].tolist(), shorter["end"][:2].tolist()) == ([1, 2], [1, 2])


def test_lengths_below_one_are_refused():
    with pytest.raises(UserError, match=r"config\.max_answer_length is 0"):
        make(max_answer_length=0)


@pytest.fixture(scope="module")
def read():
    """Answers of an untrained reader of facts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "NUM_EXAMPLES", {"train": 50, "validation": 2, "test": 2})
        task = make(**{"model.dim": 8})
        inputs = task.encoded.inputs
    structure, params = nnx.split(filled(task.make_model, inputs))
    predict = jax.jit(lambda batch: task.predict(nnx.merge(structure, params), batch))

    def read(*pairs):
        records = [
            {"context": context, "question": question, "where": f"line {number}"}
            for number, (context, question) in enumerate(pairs, 1)
        ]
        return answers(task, predict, records, inputs)

    return read


def test_a_question_alone_is_answered_as_in_a_batch(read):
    asked = [
        ("the key  of Anna is in Rome", "where is the key ?"),
        (" \n", "where is the key ?"),
        ("疯狂科学家", "what is xyzzy, at all?"),
        ("in Rome is a hat .", "  "),
        ("the key  of Anna is in Rome", "where is the key ?"),
    ]
    together = read(*asked)
    assert [answer["answer"] == "" for answer in together] == [False, True, False, True, False]
    assert together[0] == together[4]
    for (context, question), answer in zip(asked, together, strict=True):
        assert answer["question"] == question
        if answer["answer"]:
            start = answer["answer_start"]
            assert context[start : start + len(answer["answer"])] == answer["answer"]
            assert answer["line"] == " ".join(answer["answer"].split())
            (alone,) = read((context, question))
            assert alone["answer"] == answer["answer"]
            assert alone["probability"] == pytest.approx(answer["probability"], abs=1e-5)


def test_lines_are_refused():
    task = make()
    for record in ({"text": "Where?"}, {"context": "In Rome."}, {"context": 1, "question": "Where?"}):
        with pytest.raises(UserError, match=r"line 3: 'context' and 'question' must be strings.*jsonl"):
            task.encode([{**record, "where": "line 3"}], {})
