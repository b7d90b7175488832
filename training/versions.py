"""What older versions of this code meant by the `config.json` that they wrote.

A config has the number of the version that wrote it, 1 where it has none. What a version added or changed is
said here once: with the value of each new field that does what was done before there was the field.
"""

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]

NEWEST = 2

# Fields that came later: the path, the version since which it is there, and its value before.
SINCE: tuple[tuple[str, int, Any], ...] = ()


def updated(fields: Mapping[str, Any]) -> Fields:
    """The fields of an older config as this version has them.

    Raises:
        ValueError: the config is of a version that this code does not know.
    """
    fields = dict(fields)
    version = fields.pop("version", 1)
    if not isinstance(version, int) or not 1 <= version <= NEWEST:
        raise ValueError(f"it is of version {version!r}; this code knows versions 1 to {NEWEST}")
    if version == 1:
        fields = _of_version_1(fields)
    for path, since, value in SINCE:
        if version < since:
            _put(fields, path, value)
    return fields


def _put(fields: Fields, path: str, value: Any) -> None:
    *outer, name = path.split(".")
    for block in outer:
        if block not in fields:
            return
        fields = fields[block]
    fields.setdefault(name, value)


def _of_version_1(old: Fields) -> Fields:
    """Version 1 had blocks of some fields, and 0, "", () or -1 where something else decided."""
    old = {name: dict(value) if isinstance(value, dict) else value for name, value in old.items()}
    new = {**_loop(old), "task": old["task"], **_TASKS[old["task"]](old)}
    return new


def _loop(old: Fields) -> Fields:
    optimizer = old["optimizer"]
    momentum = {"momentum": optimizer["momentum"]}
    if optimizer["name"] != "sgd":
        momentum["second_momentum"] = optimizer["second_momentum"]
    return {
        "seed": old["seed"],
        "duration": old["duration"],
        "optimizer": {
            "kind": optimizer["name"],
            "learning_rate": optimizer["learning_rate"],
            "schedule": optimizer["schedule"],
            "warmup": optimizer["warmup"],
            "weight_decay": optimizer["weight_decay"],
            "clip_norm": optimizer["clip_norm"] or None,
            "accumulation": optimizer.get("accumulation", 1),
            **momentum,
        },
        "log_every": old["log_every"],
        "evaluate_every": old["evaluate_every"] or None,
        "checkpoint_every": old["checkpoint_every"] or None,
        "keep_checkpoints": old["keep_checkpoints"],
        "patience": old.get("patience", 0) or None,
        "final": old.get("final", "best"),
        "test": old["test"],
        "num_devices": old["num_devices"] or None,
        "tensorboard": old["tensorboard"],
    }


def _dataset(old: Fields, *names: str, **others: Any) -> Fields:
    """Fields of a data set that are what they were; the seed of a run said what was held out, too."""
    kept = {name: old["dataset"][name] for name in names if name in old["dataset"]}
    return {
        "name": old["dataset"]["name"],
        "data_dir": old["dataset"]["data_dir"] or None,
        "split_seed": old["seed"],
        **kept,
        **others,
    }


def _images(old: Fields) -> Fields:
    data = old["dataset"]
    chosen = data.get("subset_seed", -1)
    return {
        "label_smoothing": old["label_smoothing"],
        "batch_size": old["batch_size"],
        "evaluation_batch_size": old["evaluation_batch_size"],
        "dataset": _dataset(
            old,
            "validation_fraction",
            train_size=data["train_size"] or None,
            split_seed=old["seed"] if chosen < 0 else chosen,
        ),
        "encoding": {
            "image_size": data["image_size"] or None,
            "mean": data["mean"] or None,
            "std": data["std"] or None,
            "augmentation": data["augmentation"],
        },
        "model": _image_model(old["model"]),
    }


# The sizes of version 1.
_VARIANTS: Mapping[str, Mapping[str, Fields]] = {
    "xs": {
        "cnn": {"widths": (8, 20, 25), "blocks": (0, 1, 2)},
        "vit": {"dim": 32, "num_layers": 2, "num_heads": 4},
    },
    "s": {
        "cnn": {"widths": (16, 32, 72, 80), "blocks": (0, 1, 1, 1)},
        "vit": {"dim": 64, "num_layers": 4, "num_heads": 4},
    },
    "m": {
        "cnn": {"widths": (64, 128, 252), "blocks": (2, 2, 2)},
        "vit": {"dim": 192, "num_layers": 6, "num_heads": 3},
    },
}


def _image_model(old: Fields) -> Fields:
    sizes = _VARIANTS[old["variant"]][old["kind"]]
    given = {name: value for name, value in old.items() if name != "variant"}
    model = {**sizes, **{name: value for name, value in given.items() if value or name not in sizes}}
    if model["kind"] == "cnn":
        return model
    dim = model["dim"]
    model["hidden_dim"] = model.get("hidden_dim") or 4 * dim
    return _transformer(model, dim)


def _transformer(block: Fields, dim: int) -> Fields:
    """The fields that a Transformer had no choice about."""
    attention = _mechanisms(block.get("attention") or {"kind": "dot_product"}, dim // block["num_heads"])
    several = attention if isinstance(attention, tuple) else (attention,)
    drops = all(each["kind"] not in _WITHOUT_WEIGHTS for each in several)
    return {
        **block,
        "hidden_dim": block.get("hidden_dim") or 4 * dim,
        "num_kv_heads": block["num_heads"],
        "head_dim": dim // block["num_heads"],
        "activation": "gelu",
        "attention": attention,
        "attention_dropout_rate": block["dropout_rate"] if drops else 0.0,
    }


# Mechanisms that had no weights to drop.
_WITHOUT_WEIGHTS = (
    "blockwise",
    "banded",
    "truncated",
    "dilated",
    "strided",
    "longformer",
    "bigbird",
    "linear",
    "performer",
    "cosformer",
    "linformer",
    "nystromformer",
    "reformer",
    "sinkhorn",
    "attention_free_full",
    "attention_free_local",
)
