"""What is said in a recording: frames in, characters or words out."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from data.examples import Examples
from data.ragged import Ragged
from data.speech.frames import FrameEncoder
from data.speech.load import transcribed
from data.speech.mel import HOP_SECONDS
from data.speech.types import Transcribed
from data.text.subwords import END, Subwords
from spec import Block, call
from tasks import speech
from tasks.error_rate import character_error_rate, word_error_rate
from tasks.generation import SUBWORDS, GenerationTask
from tasks.task import Encoded, Inputs, Record, numbered

TRANSCRIBED = call(transcribed)
FRAMES = call(FrameEncoder.fit, given=("train",))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Transcription(GenerationTask):
    """Recordings and their texts, measured by word and character error rate.

    Recordings of a group that is to be reported apart, such as longer strings than any in training, count in
    metrics of their own, which end in its name; the loss and what the base class measures are of all.

    Attributes:
        dataset: which recordings.
        frames: how recordings become frames.
    """

    dataset: Annotated[Block, TRANSCRIBED] = dataclasses.field(compare=False)
    frames: Annotated[Block, FRAMES] = dataclasses.field(compare=False)

    best_metric = "word_error_rate"
    lower_is_better = True

    def load(self) -> Encoded:
        """The data set, its statistics and its vocabulary from the training part."""
        splits = TRANSCRIBED.build(self.dataset, "config.dataset")
        frames = FRAMES.build(self.frames, "config.frames", train=splits.train)
        texts = [recording.text for recording in splits.train]
        target = SUBWORDS.build(self.subwords, "config.subwords", lines=texts)
        said = [recording for split in vars(splits).values() for recording in split]
        groups = sorted({recording.group for recording in said})
        examples = numbered(splits, lambda part, first: _examples(part, first, groups, frames, target))
        inputs = {"frames": frames.to_json(), "target": target.to_json(), "groups": groups}
        return Encoded(examples, inputs, [[recording.text] for recording in said])

    def columns(self, inputs: Inputs) -> dict[str, Any]:
        """The width of a frame."""
        return speech.columns(inputs)

    def measure(
        self, made: Sequence[str], references: Sequence[Sequence[str]], examples: np.ndarray
    ) -> dict[str, float]:
        """Word and character error rate of each group."""
        inputs, splits = self.encoded.inputs, vars(self.encoded.splits).values()
        group_of = np.concatenate([split.fields["group"] for split in splits])[examples]
        found = {}
        for group in np.unique(group_of):
            rows = np.flatnonzero(group_of == group).tolist()
            texts = [made[row] for row in rows], [references[row][0] for row in rows]
            name = inputs["groups"][group]
            ending = f"_{name}" if name else ""
            found[f"word_error_rate{ending}"] = word_error_rate(*texts)
            found[f"character_error_rate{ending}"] = character_error_rate(*texts)
        return found

    def encode_records(self, records: Sequence[Record], inputs: Inputs) -> tuple[np.ndarray, Examples]:
        """Records with "path", a wav file, or "frames", a list of vectors; without any of these, no text."""
        examples = speech.encode(records, inputs)
        rows = np.flatnonzero(examples.sizes[:, 0])
        return rows, Examples({"example": rows.astype(np.int32)}, examples.take(rows).vectors)

    def source(self, record: Record, inputs: Inputs, length: int) -> Sequence[str]:
        """The second at which each vector begins; of frames that are no log-mel frames, their number."""
        block = self.model["inputs"]
        step = block["stack"] * block["subsampling"]
        if not FrameEncoder.from_json(inputs["frames"]).rate:
            return [str(place * step) for place in range(length)]
        return [f"{place * step * HOP_SECONDS:.2f}" for place in range(length)]


def _examples(
    part: Sequence[Transcribed], first: int, groups: Sequence[str], frames: FrameEncoder, target: Subwords
) -> Examples:
    tokens = [[*tokens, END] for tokens in target.encode([recording.text for recording in part])]
    return Examples(
        fields={
            "example": np.arange(first, first + len(part), dtype=np.int32),
            "group": np.array([groups.index(recording.group) for recording in part], np.int32),
        },
        vectors={"frames": Ragged.of(frames.frames(part), np.float32, (frames.width,))},
        targets={"tokens": Ragged.of(tokens, np.int32)},
    )
