"""Configs from the command line and from a run's folder; every mistake is one line."""

import json

import pytest
from ml_collections import ConfigDict

from configs import EXPERIMENT
from errors import UserError
from tests.command import ROOT
from training import config as configs

IMAGE = "--config=configs/image.py"
LABELING = "--config=configs/labeling.py"
LAYERS = LABELING + ":model=transformer,attention=additive+none"
DATES = "--config=configs/translation.py:model=rnn"


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def parse(*arguments):
    return configs.parse(["train.py", *arguments], ("workdir", "resume", "show?"), EXPERIMENT)


def config(given, *overrides):
    return parse(given, *(f"--config.{override}" for override in overrides))[0]


def at(given, path):
    """What stands at a dotted path."""
    return configs._flat(given).get(path, "nothing")


def error(*arguments):
    with pytest.raises(UserError) as caught:
        parse(*arguments)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_flags_and_overrides():
    made, flags = parse(
        IMAGE + ":model=cnn,smoke",
        "--config.optimizer.learning_rate=1e-2",
        "--config.model.widths=(4,8,12)",
        "--config.encoding.mean=(0.5,)",
        "--config.test=false",
        "--config.duration=3 epochs",
        "--config.evaluate_every=None",
        "--config.optimizer.schedule",
        "linear",
        "--workdir=runs/a",
        "--show",
    )
    assert flags == {"workdir": "runs/a", "show": ""}
    assert made.model.kind == "cnn"
    assert made.optimizer.learning_rate == 0.01
    assert made.model.widths == (4, 8, 12)
    assert made.encoding.mean == (0.5,)
    assert made.test is False
    assert made.duration == "3 epochs"
    assert made.evaluate_every is None
    assert made.optimizer.schedule == "linear"
    assert made.log_every == "20 steps"


def test_the_last_of_two_overrides_wins():
    assert config(IMAGE, "seed=1", "seed=2").seed == 2


def test_no_config_is_none():
    assert parse("--resume=runs/a") == (None, {"resume": "runs/a"})


def test_the_argument_is_read_and_not_the_process():
    """One after the other: nothing of a config stays behind for the next."""
    assert config(IMAGE + ":model=vit", "seed=1", "optimizer.momentum=0.5").seed == 1
    made = config(IMAGE + ":model=cnn", "model.norm=group")
    assert (made.seed, made.model.norm, made.optimizer.momentum) == (0, "group", 0.9)
    changed = config(LAYERS, "model.encoder.attention.0.hidden_dim=3")
    again = configs.override(changed, {"model.encoder.attention.0.hidden_dim": "5"}, EXPERIMENT)
    assert [at(one, "model.encoder.attention.0.hidden_dim") for one in (changed, again)] == [3, 5]


# Another kind of a part: the block is refilled, and a field of the new kind can be set beside it.
REFILLED = {
    "mechanism": (IMAGE, "model.attention.kind=dilated", "model.attention.window=(1, 2)", (1, 2)),
    "word alone": (IMAGE, "model.attention=performer", "model.attention.features=12", 12),
    "normaliser": (
        IMAGE,
        "model.attention.normalize.kind=top_k",
        "model.attention.normalize.k=3",
        3,
    ),
    "positions": (LABELING, "model.positions.kind=learned", "model.positions.max_length=70", 70),
    "relative": (LAYERS, "model.encoder.positions=t5", "model.encoder.positions.num_buckets=6", 6),
    "encoder": (LABELING, "model.encoder.kind=window_fc", "model.encoder.window=(0, 3)", (0, 3)),
    "encoder with a part": (
        LABELING,
        "model.encoder=transformer",
        "model.encoder.attention=banded",
        "banded",
    ),
    "decoder": (DATES, "model.decoder.kind=transformer", "model.decoder.num_heads=2", 2),
    "decoder's attention": (
        DATES,
        "model.decoder.attention.kind=local_m",
        "model.decoder.attention.radius=3",
        3,
    ),
    "pool": (
        "--config=configs/speech.py",
        "model.head.pool.kind=self_attentive",
        "model.head.pool.hops=3",
        3,
    ),
    "graphs": ("--config=configs/graph.py", "model.encoder.kind=transformer", "model.encoder.dim=12", 12),
    "inputs": (LABELING, "model.inputs.kind=frames", "model.inputs.stack=3", 3),
    "data set": (LABELING, "dataset.kind=speech", "dataset.name=tones", "tones"),
    "optimiser": (IMAGE, "optimizer.kind=lion", "optimizer.second_momentum=0.5", 0.5),
    "image model": (IMAGE, "model.kind=cnn", "model.widths=(4, 6)", (4, 6)),
    "one of several": (
        LAYERS,
        "model.encoder.attention.1.kind=banded",
        "model.encoder.attention.1.window=(2, 0)",
        (2, 0),
    ),
    "one for each layer": (
        LAYERS,
        "model.encoder.attention=banded+cosine",
        "model.encoder.attention.0.window=(2, 0)",
        (2, 0),
    ),
}


@pytest.mark.parametrize("given", REFILLED.values(), ids=REFILLED)
def test_another_kind_refills_its_block_whatever_is_said_first(given):
    file, refill, field, value = given
    path, _, word = refill.partition("=")
    path, name = path.removesuffix(".kind"), field.partition("=")[0]
    found = [configs._flat(config(file, *order)) for order in ((refill, field), (field, refill))]
    assert found[0] == found[1]
    word = word.partition("+")[0]
    assert word in (found[0].get(f"{path}.kind"), found[0].get(f"{path}.0.kind"))
    assert value in (found[0].get(name), found[0].get(f"{name}.kind"))
    before = configs._flat(config(file))
    assert {key: kept for key, kept in before.items() if not key.startswith(path + ".")} == {
        key: kept for key, kept in found[0].items() if not key.startswith(path + ".")
    }


def test_a_mechanism_for_each_layer():
    made = config(LABELING + ":model=transformer", "model.encoder.attention=banded+none+linear")
    assert [each.kind for each in made.model.encoder.attention] == ["banded", "none", "linear"]
    assert config(LAYERS, "model.encoder.attention=cosine").model.encoder.attention.kind == "cosine"


# What follows from other numbers, unless it was set to another.
DERIVED = [
    (IMAGE, ["model.num_heads=2"], {"num_heads": 2, "num_kv_heads": 2, "head_dim": 16, "hidden_dim": 128}),
    (IMAGE, ["model.dim=48"], {"dim": 48, "head_dim": 12, "hidden_dim": 192}),
    (IMAGE, ["model.num_heads=2", "model.head_dim=4"], {"num_kv_heads": 2, "head_dim": 4}),
    (IMAGE, ["model.num_kv_heads=1", "model.num_heads=2"], {"num_kv_heads": 1, "head_dim": 16}),
    (IMAGE, ["model.hidden_dim=7", "model.dim=48"], {"hidden_dim": 7, "head_dim": 12}),
    (IMAGE, ["model.attention=synthesizer_dense", "model.num_heads=2"], {"attention.hidden_dim": 16}),
    (
        IMAGE,
        ["model.attention=synthesizer_dense", "model.attention.hidden_dim=5"],
        {"attention.hidden_dim": 5},
    ),
    (LABELING, ["model.dim=6"], {"encoder.hidden_dim": 3}),
    (LABELING, ["model.dim=6", "model.encoder.bidirectional=false"], {"encoder.hidden_dim": 6}),
    (LABELING, ["model.dim=6", "model.encoder.hidden_dim=5"], {"encoder.hidden_dim": 5}),
    (
        LAYERS,
        ["model.encoder.num_heads=8", "model.encoder.attention.1.kind=synthesizer_dense"],
        {"encoder.attention.1.hidden_dim": 8, "encoder.head_dim": 8},
    ),
    (
        DATES,
        ["model.decoder.attention=local_p", "model.dim=10"],
        {"decoder.attention.hidden_dim": 10},
    ),
]


@pytest.mark.parametrize(("file", "overrides", "found"), DERIVED)
def test_numbers_that_follow_from_others_follow_them(file, overrides, found):
    for order in (overrides, overrides[::-1]):
        made = config(file, *order)
        assert {name: at(made, f"model.{name}") for name in found} == found
    # Once more, by a later override of the config that was made.
    one_by_one = config(file)
    for override in overrides:
        path, _, value = override.partition("=")
        one_by_one = configs.override(one_by_one, {path: value}, EXPERIMENT)
    assert {name: at(one_by_one, f"model.{name}") for name in found} == found


def test_evaluation_batches_follow_training_batches():
    assert config(LABELING, "batch_tokens=100").evaluation_batch_tokens == 400
    assert config(LABELING, "batch_tokens=100", "evaluation_batch_tokens=5").evaluation_batch_tokens == 5
    before = configs.override(config(LABELING), {"evaluation_batch_tokens": 7}, EXPERIMENT, parsed=True)
    assert configs.override(before, {"batch_tokens": "9"}, EXPERIMENT).evaluation_batch_tokens == 7


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            (IMAGE, "model.attention.block_size=4"),
            ("config.model.attention with kind 'dot_product' has no", "bigbird"),
        ),
        (
            (LABELING, "model.encoder.num_heads=2"),
            ("config.model.encoder with kind 'rnn' has no", " transformer"),
        ),
        (
            (LABELING, "model.encoder.kind=gated_cnn", "model.encoder.cell=gru"),
            ("kind 'gated_cnn'", "of rnn;"),
        ),
        ((IMAGE, "model.positions.max_length=3"), ("unknown config field 'model.positions.max_length'",)),
        (
            (IMAGE, "optimizer=sgd", "optimizer.second_momentum=0.5"),
            ("'sgd' has no field", "of adamw, lion; it has"),
        ),
        (
            (LABELING, "encoding.num_mels=3"),
            ("config.encoding with kind 'words' has no", "of frames;", "min_count"),
        ),
        ((LABELING, "model.encoder.kind=rnm"), ("unknown encoder", "Did you mean 'rnn'?")),
        (
            (LABELING, "model.encoder=rnn", "model.encoder.foo.bar=1"),
            ("unknown config field 'model.encoder.foo",),
        ),
        ((LABELING, "model.encoder.dim=3"), ("'dim'", "bidirectional, cell", "config.model.dim is a field")),
        ((LAYERS, "model.encoder.attention.2.kind=banded"), ("has 2 blocks; '2' is not the number of one",)),
        ((LAYERS, "model.encoder.attention.window=(1, 1)"), ("name one by its number", "attention.0")),
        ((IMAGE, "task=graph"), ("config.task is what the config file is for",)),
    ],
)
def test_a_field_of_another_kind_is_one_line_with_the_kinds_that_have_it(given, said):
    file, *overrides = given
    message = error(file, *(f"--config.{override}" for override in overrides))
    assert [part for part in said if part not in message] == [], message
    if "sgd" in message:
        assert "is a field" not in message  # of the block that was there before


@pytest.mark.parametrize(
    "argument, parts",
    [
        (
            "--config.optimizer.learning_rat=1",
            ("'learning_rat'", "Did you mean 'learning_rate'?", "momentum"),
        ),
        ("--config.optimiser.learning_rate=1", ("Did you mean 'optimizer.learning_rate'?",)),
        ("--config.sede=1", ("'sede'", "Did you mean 'seed'?")),
        ("--config.optimizer={}", ("unknown optimizer", "'{}'", "adamw, lion, sgd")),
        ("--config.dataset=digits", ("config.dataset is a block of fields", "--config.dataset.name=")),
        ("--config.model.attention.1.kind=cosine", ("unknown config field 'model.attention.1.kind'",)),
        ("--config.seed=abc", ("config.seed is 'abc'", "an integer, at least 0")),
        ("--config.seed=1.5", ("config.seed is 1.5", "an integer")),
        ("--config.seed=-1", ("config.seed is -1", "at least 0")),
        ("--config.seed=true", ("config.seed is", "an integer")),
        ("--config.batch_size=0", ("config.batch_size is 0", "at least 1")),
        ("--config.optimizer.learning_rate=fast", ("config.optimizer.learning_rate is 'fast'", "a number")),
        ("--config.optimizer.clip_norm=inf", ("config.optimizer.clip_norm is inf", "or None")),
        ("--config.model.dropout_rate=1.0", ("config.model.dropout_rate is 1.0", "in [0, 1)")),
        ("--config.model.pool=meen", ("config.model.pool is 'meen'", "one of mean, class")),
        ("--config.encoding.mean=0.5", ("config.encoding.mean is 0.5", "a tuple")),
        ("--config.test=maybe", ("config.test is 'maybe'", "True or False")),
        ("--config.seed", ("--config.seed needs a value",)),
        ("--wrokdir=x", ("'--wrokdir'", "Did you mean '--workdir'?")),
        ("--workdir", ("--workdir needs a value",)),
        ("extra", ("'extra' is not a flag",)),
    ],
)
def test_a_wrong_argument_is_one_line(argument, parts):
    message = error(IMAGE, argument)
    assert [part for part in parts if part not in message] == [], message


@pytest.mark.parametrize(
    "given, parts",
    [
        (IMAGE + ":modle=vit", ("unknown config argument 'modle'. Did you mean 'model'?", "smoke")),
        (IMAGE + ":model=vti", ("unknown model 'vti'. Did you mean 'vit'? Allowed: cnn, vit",)),
        (IMAGE + ":model", ("'model'", "str")),
        (IMAGE + ":smoke=maybe", ("smoke", "bool")),
        ("--config=configs/imag.py", ("'configs/imag.py'", "Did you mean 'configs/image.py'?")),
        ("--config=configs", ("configs",)),
        ("--config=", ("config",)),
        ("--config=README.md", ("README.md",)),
        ("--config=configs/arguments.py", ("configs/arguments.py",)),
    ],
)
def test_a_wrong_config_is_one_line(given, parts):
    message = error(given)
    assert [part for part in parts if part not in message] == [], message


@pytest.mark.parametrize(
    "source",
    ["def get_config(", "import no_such_module\ndef get_config(): pass"],
    ids=["syntax", "import"],
)
def test_a_config_file_that_does_not_run_is_one_line(source, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(source)
    assert "broken.py" in error(f"--config={path}")


def test_a_config_file_of_ones_own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "from configs import graph\n\n"
        "def get_config(argument=None):\n"
        "    config = graph.get_config(argument)\n"
        "    config.seed = 7\n"
        "    return config\n"
    )
    made = config(f"--config={path}:model=mlp", "model.encoder.dim=12")
    assert (made.seed, made.model.encoder.kind, made.model.encoder.dim) == (7, "mlp", 12)
    path.write_text(path.read_text().replace("config.seed = 7", "config.sede = 7"))
    with pytest.raises(AttributeError, match="sede"):  # it is Python, and says where
        parse(f"--config={path}")


def test_an_override_without_a_config_is_one_line():
    assert "--config.seed overrides" in error("--config.seed=1")


def test_help_lists_each_config_file_with_its_purpose():
    page = configs.help_page().splitlines()
    assert [line.split()[0] for line in page] == [str(path) for path in configs.files()]
    assert len(page) >= 9
    for line, path in zip(page, configs.files(), strict=True):
        purpose = line.split(maxsplit=1)[1]
        assert purpose in path.read_text().splitlines()[0]
        assert len(purpose) > 20


@pytest.fixture
def saved(tmp_path):
    """A config with everything in it that JSON does not have as such, and its folder."""
    made = config(LAYERS + ",smoke", "seed=3", "dataset.fold=0", "model.encoder.attention.0.hidden_dim=9")
    configs.save(made, tmp_path)
    return made, tmp_path


def test_a_saved_config_comes_back_with_its_tuples(saved):
    made, folder = saved
    loaded = configs.load(folder, EXPERIMENT)
    assert loaded.to_dict() == made.to_dict()
    assert isinstance(loaded.model.encoder, ConfigDict)
    assert isinstance(loaded.model.encoder.attention, tuple)
    assert configs.difference(made, loaded) is None
    assert [path.name for path in folder.iterdir()] == [configs.FILE]


def test_a_file_holds_every_field_and_its_version(saved):
    made, folder = saved
    kept = json.loads((folder / configs.FILE).read_text())
    assert kept.pop("version") == configs.versions.NEWEST
    assert configs._flat(kept).keys() == set(configs.paths(made, EXPERIMENT))
    assert kept["model"]["encoder"]["attention"][0]["hidden_dim"] == 9
    assert kept["model"]["encoder"]["head_dim"] == 16  # what follows from others, as the number
    assert kept["evaluation_batch_tokens"] == 2048


def test_two_files_are_equal_if_and_only_if_the_configs_are(tmp_path):
    files = []
    for number, overrides in enumerate(([], ["model.num_heads=4"], ["model.num_heads=2"])):
        (tmp_path / str(number)).mkdir()
        configs.save(config(IMAGE, *overrides), tmp_path / str(number))
        files.append((tmp_path / str(number) / configs.FILE).read_text())
    assert files[0] == files[1] != files[2]


def test_a_default_of_today_stands_for_nothing_in_a_file(saved):
    """Each field is missed, whichever is taken out; no default is put in its place."""
    made, folder = saved
    whole = json.loads((folder / configs.FILE).read_text())

    def without(block, path):
        name, _, rest = path.partition(".")
        if isinstance(block, list):
            return [without(each, rest) if str(at) == name else each for at, each in enumerate(block)]
        if not rest:
            return {key: value for key, value in block.items() if key != name}
        return {**block, name: without(block[name], rest)}

    for path in configs.paths(made, EXPERIMENT):
        (folder / configs.FILE).write_text(json.dumps(without(whole, path)))
        with pytest.raises(UserError, match=f"{path.rpartition('.')[2]} is missing") as caught:
            configs.load(folder, EXPERIMENT)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "overrides, said",
    [
        (["seed=4"], "seed was 3, is now 4"),
        (["dataset.fold=None"], "dataset.fold was 0, is now None"),
        (["model.encoder.attention.0.hidden_dim=2"], "model.encoder.attention.0.hidden_dim was 9, is now 2"),
        (["optimizer.kind=sgd"], "optimizer.kind was 'adamw', is now 'sgd'"),
        (
            ["model.encoder.attention.1.kind=banded"],
            "model.encoder.attention.1.kind was 'none', is now 'banded'",
        ),
    ],
)
def test_a_difference_is_named_with_both_values(saved, overrides, said):
    changes = dict(override.split("=") for override in overrides)
    assert configs.difference(saved[0], configs.override(saved[0], changes, EXPERIMENT)) == said


@pytest.mark.parametrize(
    "text, said",
    [
        (None, "holds no run: there is no config.json"),
        ("{", "is not a config"),
        ("[1]", "is not a config"),
        ("{}", "is not a config: 'task' is missing"),
        ('{"task": "chess"}', "is not a config: '.*' is missing or unknown"),
        ('{"version": 2}', "task is missing"),
        ('{"version": 2, "task": "chess"}', "unknown task in config 'chess'"),
        ('{"version": 99, "task": "graph"}', "of version 99; this code knows versions 1 to"),
    ],
)
def test_a_folder_without_a_config_is_one_line(tmp_path, text, said):
    if text is not None:
        (tmp_path / configs.FILE).write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        configs.load(tmp_path, EXPERIMENT)
    assert "\n" not in str(caught.value)
