"""Speech to text: frames in, characters or words out.

    python train.py --config=configs/transcription.py --workdir=runs/tones
    python train.py --config=configs/transcription.py:dataset=fsdd_strings --workdir=runs/a
    python train.py --config=configs/transcription.py:dataset=fsdd_strings,speaker_out=theo --workdir=runs/b
    python train.py --config=configs/transcription.py:dataset=folder:recordings --workdir=runs/own
    python predict.py --run=runs/a --align=DIR one.wav two.wav

Arguments: `model` (rnn, convolution, transformer), `attention` (of an rnn what its decoder attends by, see
configs/translation.py; of a transformer what its encoder does, full or truncated), `size` (tiny, small,
base), `dataset` (tone_strings, fsdd_strings, librispeech or another prepared TFDS set of recordings and text,
folder:DIR with wavs of your own), `speaker_out` (of fsdd_strings, tested on alone), `unit` (char, word, bpe),
`smoke`.

Expected on one CPU core: strings of tones or digits by an rnn, 3 minutes each; figures in results/README.md.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks, experiment
from data.speech.load import transcribed
from errors import unknown
from models.inputs import FrameInputs
from models.mechanisms import Banded
from spec import spec
from tasks.transcription import Transcription
from training.optimizer import AdamW

# Of a transformer's encoder: each frame attends to all, or to a second on either side.
ENCODER_ATTENTION = {"full": "dot_product", "truncated": spec(Banded, window=(25, 25))}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="rnn",
        attention=None,
        size="tiny",
        dataset="tone_strings",
        speaker_out=None,
        unit="char",
        smoke=False,
    )
    smoke, kind, name, attention = chosen["smoke"], chosen["model"], chosen["dataset"], chosen["attention"]
    in_encoder = kind == "transformer"
    if in_encoder and attention not in (None, *ENCODER_ATTENTION):
        raise unknown("attention of a transformer's encoder", attention, ENCODER_ATTENTION)

    return experiment(
        Transcription,
        seed=0,
        duration="10 steps" if smoke else "6 epochs",
        batch_tokens=8192,
        buckets=1 if smoke else 4,
        label_smoothing=0.1,
        dataset=spec(
            transcribed,
            name=name,
            num_strings=40 if smoke and name.endswith("_strings") else None,
            speaker_out=chosen["speaker_out"],
            validation_fraction=0.1,
            split_seed=0,
        ),
        frames={"num_mels": 40, "deltas": 0, "normalize": "train"},
        subwords={"unit": chosen["unit"], "vocab_size": 1000},
        model=blocks.encoder_decoder(
            kind,
            size=chosen["size"],
            dropout_rate=0.2,
            attention=None if in_encoder else attention,
            inputs=spec(FrameInputs, stack=1, subsampling=4, dropout_rate=0.2),
            encoder_attention=ENCODER_ATTENTION[attention or "full"] if in_encoder else "dot_product",
        ),
        decoding={"beam": 1, "max_ratio": 1.0, "max_extra": 10},
        optimizer=spec(AdamW, learning_rate=2e-3, second_momentum=0.98),
        **blocks.every("1 epoch", smoke=smoke),
    )
