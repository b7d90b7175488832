"""The configs of version 1 as those of version 2.

Version 1 had blocks of some fields of what they stood for, one block for a model and its encoder, one seed,
and 0, "", () or -1 where something else decided.
"""

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]


def updated(old: Fields) -> Fields:
    """The fields of version 2."""
    return {"task": old["task"], **_loop(old), **_TASKS[old["task"]](old)}


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
            **({"accumulation": optimizer["accumulation"]} if "accumulation" in optimizer else {}),
            **momentum,
        },
        "log_every": old["log_every"],
        "evaluate_every": old["evaluate_every"] or None,
        "checkpoint_every": old["checkpoint_every"] or None,
        "keep_checkpoints": old["keep_checkpoints"],
        **({"patience": old["patience"] or None} if "patience" in old else {}),
        **({"final": old["final"]} if "final" in old else {}),
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


def _mechanisms(old: Any, head_dim: int) -> Any:
    """The block of a mechanism, or one for each layer, that gave widths of its own as 0 or not at all."""
    if isinstance(old, list | tuple):
        return tuple(_mechanisms(each, head_dim) for each in old)
    new = dict(old)
    if new["kind"] == "truncated":
        new["kind"] = "banded"
    for name, kinds in _AS_WIDE_AS_A_HEAD.items():
        if new["kind"] in kinds:
            new[name] = new.get(name) or head_dim
    if "features" in new and not new["features"]:
        del new["features"]  # which follows from the width of a head
    return new


_AS_WIDE_AS_A_HEAD = {
    "hidden_dim": (
        "additive",
        "concat",
        "synthesizer_dense",
        "localness_fixed_window",
        "localness_layer_window",
        "localness_query_window",
        "local_p",
    ),
    "rank": ("synthesizer_factorized", "linformer"),
}

_RELATIVE = ("rotary", "alibi", "t5", "shaw")


def _set_model(old: Fields, inputs: str) -> Fields:
    """Inputs, positions, encoder and head, of a model whose block was that of its encoder too."""
    model = dict(old["model"])
    dim, rate = model.pop("dim"), model.pop("dropout_rate")
    head = dict(model.pop("head", {}))
    positions, own = _positions(model.pop("positions", {"kind": "none"}))
    given = {"kind": inputs, "dropout_rate": rate, **model.pop("inputs", {})}
    encoder = _encoder({**model, **own}, dim, rate)
    return {
        "dim": dim,
        "inputs": given,
        "positions": positions,
        "encoder": encoder,
        "head": {"dropout_rate": rate, **head},
    }


def _positions(old: Fields) -> tuple[Fields, Fields]:
    """Absolute positions, and what relative ones were to the encoder."""
    if old["kind"] not in _RELATIVE:
        return dict(old), {}
    if old["kind"] == "shaw":  # a mechanism
        return {"kind": "none"}, {"attention": {"max_distance": 16, **old}}
    return {"kind": "none"}, {"positions": dict(old)}


def _encoder(old: Fields, dim: int, rate: float) -> Fields:
    """An encoder's own fields, its dropout rate among them."""
    kind = old["kind"]
    rates = {} if kind in ("none", "multi_width_cnn") else {"dropout_rate": rate}
    new = {**old, **rates}
    if kind == "window_fc":
        new["hidden_dim"] = old.get("hidden_dim") or 4 * dim
    elif kind == "gated_cnn":
        new["hidden_dim"] = old.get("hidden_dim") or dim
    elif kind == "rnn":
        both = old.get("bidirectional", True)
        new["hidden_dim"] = old.get("hidden_dim") or (dim // 2 if both else dim)
    elif kind == "transformer":
        new = _transformer(new, dim)
    return new


def _vocabulary(old: Fields) -> Fields:
    data = old["dataset"]
    kept = ("min_count", "lower", "fold_digits", "affixes", "affix_min_count")
    return {**{name: data[name] for name in kept}, "max_size": data["max_size"] or None}


def _sequences(old: Fields) -> Fields:
    """Batches of sequences, and how labels are smoothed."""
    return {
        **({"label_smoothing": old["label_smoothing"]} if "label_smoothing" in old else {}),
        "batch_tokens": old["batch_vectors"],
        "evaluation_batch_tokens": old["evaluation_batch_vectors"],
        "buckets": old["buckets"],
    }


def _labels(old: Fields) -> Fields:
    """Labelling and classification."""
    data = old["dataset"]
    classifies = old["task"] == "sequence_classification"
    if data["kind"] == "speech":
        inputs = "frames"
        dataset = _dataset(old, "validation_fraction", target=data["target"] or None)
        encoding = {"kind": "frames", **_frames(old)}
    else:
        columns = (
            ("text_column", "label_column", "tokenisation") if classifies else ("token_column", "tag_column")
        )
        dataset = _dataset(
            old,
            "validation_fraction",
            "encoding",
            fold=None if data["fold"] < 0 else data["fold"],
            **{name: data[name] or None for name in columns},
        )
        unit = data.get("unit", "words")
        inputs = unit
        encoding = {
            "kind": "words",
            "unit": unit,
            "max_length": data.get("max_length", 0) or None,
            **_vocabulary(old),
        }
    model = _set_model(old, inputs)
    if classifies:
        head = model["head"]
        pool = {"kind": head.pop("pool", "mean")}
        own = {name: head.pop(name) for name in ("hops", "attention_dim", "penalty_weight") if name in head}
        head["pool"] = {**pool, **own} if pool["kind"] == "self_attentive" else pool
    return {
        **_sequences(old),
        "dataset": {"kind": data["kind"], **dataset},
        "encoding": encoding,
        "model": model,
    }


def _frames(old: Fields) -> Fields:
    data = old["dataset"]
    return {
        "num_mels": data["num_mels"],
        "deltas": data["deltas"],
        "normalize": data["normalize"],
        "rate": data["rate"] or None,
    }


def _graph(old: Fields) -> Fields:
    data, model = old["dataset"], dict(old["model"])
    pool, rate = model.pop("pool"), model["dropout_rate"]
    if model["kind"] == "transformer":
        model["hidden_dim"] = model.get("hidden_dim") or 2 * model["dim"]
    return {
        "l2": old["l2"],
        # Where it was left open, it was the first metric that the data has; "accuracy" is that of labels.
        "choose_by": old["best_metric"] or "accuracy",
        "batch_nodes": old["batch_nodes"],
        "evaluation_batch_nodes": old["evaluation_batch_nodes"],
        "buckets": old["buckets"],
        "dataset": _dataset(
            old,
            "validation_fraction",
            "is_directed",
            "smiles_column",
            fold=data["fold"] or None,  # the first; sets that come with their split have none
            folds=data["folds"] or None,
            split_seed=data["fold_seed"],
            target_column=data["target_column"] or None,
            targets=None if data["targets"] == "auto" else data["targets"],
        ),
        "encoding": {"scaling": data["scaling"]},
        "model": {
            "encoder": model,
            "pool": {"kind": pool or "none", **_HOPS.get(pool, {})},
            "dropout_rate": rate,
        },
    }


_HOPS: Mapping[str, Fields] = {"self_attentive": {"hops": 4}}


def _reading(old: Fields) -> Fields:
    model = _set_model(
        {**old, "model": {k: v for k, v in old["model"].items() if k != "self_matching"}}, "words"
    )
    rate = old["model"]["dropout_rate"]
    head = {name: value for name, value in model["head"].items() if name != "dropout_rate"}
    matching = _mechanisms(old["model"].get("self_matching", {"kind": "none"}), model["dim"])
    return {
        **_sequences(old),
        "max_answer_length": old["max_answer_length"],
        "dataset": _dataset(old, "validation_fraction"),
        "vocabulary": _vocabulary(old),
        "model": {**model, "head": head, "self_matching": matching, "dropout_rate": rate},
    }


def _encoder_decoder(old: Fields, inputs: str) -> Fields:
    model = old["model"]
    dim, rate = model["dim"], model["dropout_rate"]
    positions, relative = _positions(model.get("positions", {"kind": "none"}))
    decoder = {**model["decoder"], "dropout_rate": rate}
    if decoder["kind"] == "transformer":
        decoder = _transformer({**decoder, **relative}, dim)
    else:
        decoder["hidden_dim"] = decoder.get("hidden_dim") or dim
    if decoder["kind"] == "rnn":
        attention = _mechanisms(decoder.get("attention", {"kind": "additive"}), dim)
        decoder["map_keys"] = attention.pop("score", "dot") == "general"
        decoder["attention"] = attention
    return {
        "dim": dim,
        "inputs": {"kind": inputs, "dropout_rate": rate, **model["inputs"]},
        "positions": positions,
        "encoder": _encoder({**model["encoder"], **relative}, dim, rate),
        "tokens": {
            "positions": positions,
            "tie_output": model["tie_output"],
            "dropout_rate": rate,
            "output_dropout_rate": model["output_dropout_rate"],
        },
        "decoder": decoder,
        "share_embeddings": model["share_embeddings"],
    }


def _translation(old: Fields) -> Fields:
    data = old["dataset"]
    return {
        **_sequences(old),
        "dataset": _dataset(
            old, "source", "target", "validation_fraction", "encoding", test=data["test"] or None
        ),
        "subwords": {"unit": data["unit"], "vocab_size": data["vocabulary"], "lower": data["lower"]},
        "joint_vocabulary": data["joint_vocabulary"],
        "max_length": data["max_length"] or None,
        "model": _encoder_decoder(old, "words"),
        "decoding": old["decoding"],
    }


def _transcription(old: Fields) -> Fields:
    data = old["dataset"]
    return {
        **_sequences(old),
        "dataset": _dataset(
            old,
            "lower",
            "validation_fraction",
            num_strings=data["num_strings"] or None,
            speaker_out=data["speaker_out"] or None,
            splits=data["splits"] or None,
        ),
        "frames": _frames(old),
        "subwords": {"unit": data["unit"], "vocab_size": data["vocabulary"]},
        "model": _encoder_decoder(old, "frames"),
        "decoding": old["decoding"],
    }


def _captioning(old: Fields) -> Fields:
    data = old["dataset"]
    return {
        **_sequences(old),
        **{name: old[name] for name in ("doubly_stochastic", "reward_weight", "entropy_weight")},
        "dataset": _dataset(
            old,
            "validation_fraction",
            image_size=data["image_size"] or None,
            train_size=data["train_size"] or None,
        ),
        "subwords": {"unit": "word", "vocab_size": data["vocabulary"], "min_count": data["min_count"]},
        "model": _encoder_decoder(old, "image"),
        "decoding": old["decoding"],
    }


_TASKS: Mapping[str, Callable[[Fields], Fields]] = {
    "captioning": _captioning,
    "graph": _graph,
    "image_classification": _images,
    "reading": _reading,
    "sequence_classification": _labels,
    "sequence_labeling": _labels,
    "transcription": _transcription,
    "translation": _translation,
}
