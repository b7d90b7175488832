"""An image to a sentence: the captioner that shows, attends and tells (Xu et al. 2015).

    python train.py --config=configs/captioning.py --workdir=runs/digit_scenes
    python train.py --config=configs/captioning.py:dataset=fashion_scenes,attention=hard --workdir=runs/hard
    python train.py --config=configs/captioning.py:dataset=coco_captions --workdir=runs/coco
    python train.py --config=configs/captioning.py:dataset=folder:photos --workdir=runs/own
    python predict.py --run=runs/own one.jpg two.jpg

Arguments: `attention` (soft, hard, none), `dataset` (digit_scenes, fashion_scenes, which needs fashion_mnist
prepared, a prepared TFDS set of images with captions such as coco_captions, or folder:DIR with a table
captions.csv of your own), `smoke`.

Expected on one CPU core: scenes, 2 to 7 minutes; figures in the README.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks
from errors import unknown

ATTENTION = ("soft", "hard", "none")


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(argument, attention="soft", dataset="digit_scenes", smoke=False)
    attention, name, smoke = chosen["attention"], chosen["dataset"], chosen["smoke"]
    if attention not in ATTENTION:
        raise unknown("attention", attention, ATTENTION)
    scenes, digits = name.endswith("_scenes"), name == "digit_scenes"

    config = ConfigDict()
    config.task = "captioning"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples, dropout and draws
    config.duration = "20 steps" if smoke else "30 epochs" if digits else "12 epochs"  # or "N examples"
    config.label_smoothing = 0.0  # probability spread over all words in the training targets
    # Weight of the penalty on places looked at too much or too little; most of a scene is worth no look.
    config.doubly_stochastic = 1.0 if attention == "soft" and not scenes else 0.0  # lambda
    config.reward_weight = 1.0  # of what hard attention learns from its draws
    config.entropy_weight = 0.02  # of the entropy of what it draws from
    blocks.sequences(config, batch_vectors=1024)
    config.buckets = 1 if smoke else 2  # lengths that captions are padded to, at most

    config.dataset = ConfigDict()
    config.dataset.name = name  # see the arguments above
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.image_size = 0 if scenes else 128  # side to bring images to, pixels; 0: as they are
    config.dataset.train_size = 200 if smoke and scenes else 0  # training images; 0: all
    config.dataset.validation_fraction = 0.1  # held out to choose on, where the set has no such split
    config.dataset.vocabulary = 10_000  # words to know at most
    config.dataset.min_count = 1 if scenes else 5  # a word seen less often in training counts as unknown

    config.model = ConfigDict()
    config.model.dim = 128 if scenes else 512  # width of the vectors
    config.model.dropout_rate = 0.0 if scenes else 0.5  # in inputs and decoder
    config.model.share_embeddings = False  # there is no other vocabulary
    config.model.tie_output = True  # the logits are products with the embeddings
    config.model.output_dropout_rate = 0.0  # before the logits
    config.model.inputs = ConfigDict()
    # Of scenes, a place must not see much more than it stands for, or one look would tell everything.
    config.model.inputs.widths = (16, 32) if scenes else (64, 128, 256)  # channels of the CNN's stages
    config.model.inputs.blocks = (0, 1) if scenes else (2, 2, 2)  # residual blocks of each
    config.model.inputs.stem_stride = 1 if digits else 2  # 2 halves the image at once
    config.model.inputs.stack = 2 if scenes else 1  # so many places of the map either way make a vector
    config.model.inputs.norm = "batch"  # or group
    config.model.inputs.positions = "sinusoidal"  # so that a vector knows its place; or none
    config.model.encoder = ConfigDict()
    config.model.encoder.kind = "none"  # the places of the map as they are; or transformer and others
    # Of scenes, soft attention looks at the right thing by then; only after that can hard attention learn.
    soft_steps = 10 if smoke else 1500 if scenes else 5000
    config.model.decoder = _decoder(attention, soft_steps)  # an LSTM that attends before each word

    # An image of any size is told in as many words.
    config.decoding = blocks.decoding(max_ratio=0.0, max_extra=24)
    config.optimizer = blocks.optimizer(learning_rate=2e-3)
    blocks.loop(config, smoke=smoke, every="1 epoch")
    return config


def _decoder(attention: str, soft_steps: int) -> ConfigDict:
    block = ConfigDict()
    block.kind = "rnn"  # one of models.decoders
    block.cell = "lstm"  # or gru, plain
    block.num_layers = 1  # layers
    block.hidden_dim = 0  # width of the state; 0: that of the vectors
    block.summary = "mean"  # of all places, the first state
    block.attention = ConfigDict()
    if attention == "none":
        block.attention.kind = "none"  # the mean of all places at every step
    else:
        block.attention.kind = "additive"  # scores by a layer of tanh
        block.attention.hidden_dim = 128  # its width
        block.choice = attention  # the mean of all places under the weights, or one drawn from them
        block.gate = True  # let the decoder look away
    if attention == "hard":
        block.soft_steps = soft_steps  # of training, at the start, with the mean instead of draws
    return block
