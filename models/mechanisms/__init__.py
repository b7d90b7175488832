"""The attention mechanisms a config can name: `attention={"kind": "banded", "window": (15, 15)}`.

One table of words and classes. A class takes the options of a function of attention/, holds the arrays that
this needs besides query, key and value, and is called like `attention.attend`.
"""

from models.mechanisms import base
from models.mechanisms.attention_free import AttentionFreeFull, AttentionFreeLocal
from models.mechanisms.base import BROUGHT, Drawn, Mechanism
from models.mechanisms.kernels import Cosformer, Linear, Performer
from models.mechanisms.learned_patterns import Reformer, Sinkhorn
from models.mechanisms.locality import (
    LocalM,
    Localness,
    LocalnessFixedWindow,
    LocalnessLayerWindow,
    LocalnessQueryWindow,
    LocalP,
)
from models.mechanisms.low_rank import Linformer, Nystromformer
from models.mechanisms.normalizers import NORMALIZERS, Normalizer
from models.mechanisms.patterns import Banded, BigBird, Blockwise, Dilated, Longformer, Strided
from models.mechanisms.relative import Shaw
from models.mechanisms.scores import (
    Additive,
    Concat,
    Cosine,
    Dot,
    DotProduct,
    General,
    Location,
    NegativeSquaredDistance,
    SynthesizerDense,
    SynthesizerFactorized,
    SynthesizerRandom,
)
from spec import Registry, nothing

__all__ = ["BROUGHT", "MECHANISMS", "NORMALIZERS", "Drawn", "Mechanism", "Normalizer", "those_that_can"]

MECHANISMS = Registry(
    "attention",
    {
        # Scores with any normaliser
        "dot_product": DotProduct,
        "dot": Dot,
        "cosine": Cosine,
        "general": General,
        "additive": Additive,
        "concat": Concat,
        "negative_squared_distance": NegativeSquaredDistance,
        "location": Location,
        "synthesizer_dense": SynthesizerDense,
        "synthesizer_random": SynthesizerRandom,
        "synthesizer_factorized": SynthesizerFactorized,
        # A softmax that favours keys near a centre
        "localness": Localness,
        "localness_fixed_window": LocalnessFixedWindow,
        "localness_layer_window": LocalnessLayerWindow,
        "localness_query_window": LocalnessQueryWindow,
        "local_m": LocalM,
        "local_p": LocalP,
        # Relative keys and values
        "shaw": Shaw,
        # A softmax over a pattern of keys, at less cost
        "blockwise": Blockwise,
        "banded": Banded,
        "dilated": Dilated,
        "strided": Strided,
        "longformer": Longformer,
        "bigbird": BigBird,
        "reformer": Reformer,
        "sinkhorn": Sinkhorn,
        "linformer": Linformer,
        "nystromformer": Nystromformer,
        # In place of a softmax
        "linear": Linear,
        "performer": Performer,
        "cosformer": Cosformer,
        "attention_free_full": AttentionFreeFull,
        "attention_free_local": AttentionFreeLocal,
        "none": nothing,
    },
    given=("num_heads", "num_kv_heads", "head_dim", "rngs"),
    aliases={"truncated": "banded"},
)


def those_that_can(argument: str) -> str:
    """The end of an error: which mechanisms can honour an argument of a call, one of `BROUGHT`."""
    return base.those_that_can(argument, MECHANISMS)
