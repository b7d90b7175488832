"""The front door, by each of its implementations that run on any backend."""

from functools import partial

import attention
from tests.attention.mechanism import Mechanism

MECHANISMS = [
    Mechanism(
        "dot_product-dense",
        partial(attention.dot_product_attention, implementation="dense"),
        shift_invariant=True,
    ),
]
