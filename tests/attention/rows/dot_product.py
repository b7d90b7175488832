"""The front door, and the implementations behind it that run on any backend."""

from functools import partial

import attention
from attention.blockwise import blockwise_attention
from tests.attention.mechanism import Mechanism

BLOCKS_OF_3 = partial(blockwise_attention, block_size=3)

MECHANISMS = [
    Mechanism(
        "dot_product-dense",
        partial(attention.dot_product_attention, implementation="dense"),
        shift_invariant=True,
    ),
    Mechanism(
        "blockwise",
        blockwise_attention,
        with_block_size=lambda size: partial(blockwise_attention, block_size=size),
        with_window=lambda window: partial(blockwise_attention, window=window, query_offset=1),
        shift_invariant=True,
    ),
    Mechanism(
        "blockwise-3",
        BLOCKS_OF_3,
        causal=partial(BLOCKS_OF_3, is_causal=True),
        shift_invariant=True,
    ),
]
