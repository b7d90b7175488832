"""A text in one language to the text in another: four generations of encoder and decoder.

    python train.py --config=configs/translation.py --workdir=runs/dates
    python train.py --config=configs/translation.py:dataset=multi30k --workdir=runs/m30k
    python train.py --config=configs/translation.py:dataset=multi30k,model=rnn --workdir=runs/rnn
    python train.py --config=configs/translation.py:dataset=folder:x,source=fi,target=sv --workdir=runs/own
    python predict.py --run=runs/m30k --beam=5 < text.de > text.en

Arguments: `model` (rnn, convolution, transformer), `attention` of an rnn (none, bahdanau, dot, general,
concat, location, local_m, local_p), `size` (tiny, small, base), `norm` of a transformer (pre, post),
`dataset` (dates, multi30k, tatoeba_en_zh, a prepared TFDS translation set, folder:DIR; single files by
--config.dataset.name=file:TRAIN,VALIDATION,TEST), `source` and `target` languages, `smoke`.

Expected on two CPU cores: dates, a minute; Multi30k, see the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks

# How long to train, and how large a model is, on Multi30k; other sets are taken to be as large.
DURATIONS = {"rnn": "8 epochs", "convolution": "8 epochs", "transformer": "18 epochs"}
DROPOUT = {"rnn": 0.3, "convolution": 0.3, "transformer": 0.2}
SIZES = {"rnn": "small", "convolution": "small", "transformer": "tiny"}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(
        argument,
        model="transformer",
        attention="",
        size="",
        norm="pre",
        dataset="dates",
        source="de",
        target="en",
        smoke=False,
    )
    smoke, kind, name = chosen["smoke"], chosen["model"], chosen["dataset"]
    dates = name == "dates"

    config = ConfigDict()
    config.task = "translation"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    duration = "10 epochs" if dates else DURATIONS.get(kind, "")
    config.duration = "20 steps" if smoke else duration  # "N steps", "N epochs" or "N examples"
    config.label_smoothing = 0.1  # probability spread over all tokens in training targets
    blocks.sequences(config, batch_vectors=2048)
    config.buckets = 6  # see above

    config.dataset = ConfigDict()
    config.dataset.name = name  # see the arguments above
    config.dataset.source = chosen["source"]  # language, or the ending of the files
    config.dataset.target = chosen["target"]  # likewise
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.validation_fraction = 0.1  # held out to choose on, where the set has no such split
    config.dataset.test = ""  # which test split is reported, where there are several; "": the first
    config.dataset.encoding = "utf-8"  # of files of your own; or latin-1
    config.dataset.unit = "char" if dates else "bpe"  # what a token is: bpe, unigram, word or char
    config.dataset.vocabulary = 4000  # tokens to know at most
    config.dataset.joint_vocabulary = True  # one vocabulary for both languages
    config.dataset.lower = False  # read and write lower case alone
    config.dataset.max_length = 0  # tokens of the longest pair to train on; 0: all

    config.model = blocks.encoder_decoder(
        kind,
        size=chosen["size"] or ("tiny" if dates else SIZES.get(kind, "small")),
        dropout_rate=0.1 if dates else DROPOUT.get(kind, 0.3),
        attention=chosen["attention"],
        norm=chosen["norm"],
    )
    config.model.share_embeddings = True  # see above
    config.decoding = blocks.decoding()
    config.optimizer = blocks.optimizer(
        learning_rate=3e-3 if kind == "transformer" else 2e-3, second_momentum=0.98
    )
    blocks.loop(config, smoke=smoke, every="1 epoch" if dates else "2 epochs")
    return config
