"""Recordings to frames that a model takes, by what was measured on the training recordings alone."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

import errors
from data.examples import Examples
from data.ragged import Ragged
from data.speech.mel import LogMel, with_deltas
from data.speech.types import Recording, Wave

Normalize = Literal["train", "recording", "none"]


@dataclasses.dataclass(frozen=True)
class FrameEncoder:
    """Recordings to `data.examples.Examples`; made by `fit`, kept as JSON in a run's folder.

    Waves are brought to one rate and become log-mel frames (`data.speech.mel`); frames stay as they are. Then
    slopes are added, and every channel gets mean 0 and deviation 1.

    Attributes:
        rate: samples per second; None where recordings are frames.
        channels: mel bands, or the width of the frames.
        deltas: 0, 1 or 2: slopes, and slopes of slopes, as further channels.
        normalize: "train" by statistics of the training frames, "recording" by those of each recording
            itself, or "none".
        mean: of each channel of the training frames; empty unless normalize is "train".
        std: likewise.
        label_names: the label of each class.
        tag_names: the label of each class of frames; empty where frames have none.
    """

    rate: int | None
    channels: int
    deltas: int
    normalize: Normalize
    mean: tuple[float, ...]
    std: tuple[float, ...]
    label_names: tuple[str, ...]
    tag_names: tuple[str, ...]

    @classmethod
    def fit(
        cls,
        train: Sequence[Recording],
        *,
        num_mels: int = 40,
        deltas: Literal[0, 1, 2] = 0,
        normalize: Normalize = "train",
        rate: int | None = None,
    ) -> "FrameEncoder":
        """The encoder for these training recordings.

        Args:
            train: all of waves, or all of frames of one width.
            num_mels: mel bands of the frames of waves.
            deltas: further channels: 1 for slopes, 2 for slopes of slopes besides.
            normalize: channels by statistics of the training frames, of each recording itself, or not at all.
            rate: samples per second to bring waves to; None: the lowest of the training recordings.

        Raises:
            errors.UserError: an argument is not allowed, or recordings are not alike.
        """
        if rate is not None and rate < 1:
            raise errors.UserError(f"rate {rate!r} is not allowed: at least 1 is needed")
        if deltas not in (0, 1, 2):
            raise errors.UserError(f"deltas {deltas!r} is not allowed; 0, 1 or 2 is")
        if normalize not in get_args(Normalize):
            raise errors.unknown("normalize", normalize, get_args(Normalize))
        if not train:
            raise errors.UserError("there are no training recordings")
        rates = [recording.sound.rate for recording in train if isinstance(recording.sound, Wave)]
        first = train[0].sound
        channels = num_mels if isinstance(first, Wave) else first.shape[-1]
        labels = {recording.label for recording in train if recording.label is not None}
        tags = {tag for recording in train for tag in recording.tags or () if tag}
        encoder = cls(
            rate=(rate or min(rates)) if rates else None,
            channels=channels,
            deltas=deltas,
            normalize="none",
            mean=(),
            std=(),
            label_names=tuple(sorted(labels)),
            tag_names=tuple(sorted(tags)),
        )
        mean, std = _statistics(encoder.frames(train)) if normalize == "train" else ((), ())
        return dataclasses.replace(encoder, normalize=normalize, mean=mean, std=std)

    @property
    def width(self) -> int:
        """Channels C of the frames a model gets."""
        return self.channels * (self.deltas + 1)

    def encode(self, recordings: Sequence[Recording]) -> Examples:
        """Frames and, where they are known, labels.

        Returns:
            `frames` float32 `[T, C]` of each recording; `label` int32, unless all are None; `tags` int32
            `[T]`, -1 for frames without one, unless all are None.

        Raises:
            errors.UserError: a recording is unlike those of train, has a label that is none of theirs, or not
                as many tags as frames; it is named.
        """
        frames = self.frames(recordings)
        fields: dict[str, np.ndarray] = {}
        vectors = {"frames": Ragged.of(frames, np.float32, (self.width,))}
        if any(recording.label is not None for recording in recordings):
            labels = [
                _index("label", recording.label, self.label_names, recording) for recording in recordings
            ]
            fields["label"] = np.array(labels, np.int32)
        if any(recording.tags is not None for recording in recordings):
            tags = [
                self._tags(recording, len(of_it)) for recording, of_it in zip(recordings, frames, strict=True)
            ]
            vectors["tags"] = Ragged.of(tags, np.int32)
        return Examples(fields, vectors)

    def frames(self, recordings: Iterable[Recording]) -> list[np.ndarray]:
        """The frames of each recording, float32 `[T, C]`."""
        mel = LogMel(self.rate, self.channels) if self.rate else None
        return [self._normalized(with_deltas(self._raw(each, mel), self.deltas)) for each in recordings]

    def _raw(self, recording: Recording, mel: LogMel | None) -> np.ndarray:
        sound = recording.sound
        if mel is not None and isinstance(sound, Wave):
            return mel(sound.at(mel.rate).samples)
        needed = f"frames of {self.channels}" if mel is None else "a wave"
        if mel is not None or isinstance(sound, Wave):
            given = "a wave" if isinstance(sound, Wave) else "frames"
            raise errors.UserError(f"{recording.where} is {given}, but {needed} is what the others are")
        if sound.ndim != 2 or sound.shape[1] != self.channels:
            raise errors.UserError(
                f"{recording.where} has the shape {list(sound.shape)}, but {needed} are needed"
            )
        if not np.isfinite(sound).all():
            raise errors.UserError(f"{recording.where} has values that are no numbers (nan or infinite)")
        return sound.astype(np.float32)

    def _normalized(self, frames: np.ndarray) -> np.ndarray:
        if self.normalize == "none" or not len(frames):
            return frames
        mean, std = (self.mean, self.std) if self.normalize == "train" else _statistics([frames])
        return ((frames - np.asarray(mean)) / np.asarray(std)).astype(np.float32)

    def _tags(self, recording: Recording, length: int) -> list[int]:
        tags = [""] * length if recording.tags is None else recording.tags
        if len(tags) != length:
            raise errors.UserError(f"{recording.where} has {len(tags)} tags for {length} frames")
        return [_index("tag", tag, self.tag_names, recording) if tag else -1 for tag in tags]

    def to_json(self) -> dict[str, Any]:
        """As JSON can write it, in the form of the first runs, which are resumed by it."""
        fields = {**dataclasses.asdict(self), "rate": self.rate or 0}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "FrameEncoder":
        """What `to_json` has written."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
        }
        return cls(**{**values, "rate": values["rate"] or None})


def _index(what: str, word: str | None, names: tuple[str, ...], recording: Recording) -> int:
    if word is None:
        raise errors.UserError(f"{recording.where} has no {what}, but others have one")
    if word not in names:
        raise errors.UserError(f"{recording.where}: {errors.unknown(what, word, names)}, as in train")
    return names.index(word)


def _statistics(frames: Sequence[np.ndarray]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel over all frames, summed in float64; a constant channel has 1."""
    count = max(sum(map(len, frames)), 1)
    mean = sum(each.sum(axis=0, dtype=np.float64) for each in frames) / count
    variance = sum(np.square(each - mean).sum(axis=0) for each in frames) / count
    std = np.sqrt(variance)
    constant = std <= 1e-6 * np.abs(mean)
    return tuple(mean.tolist()), tuple(np.where(constant, 1.0, std).tolist())
