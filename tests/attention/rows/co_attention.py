"""What the passage reads of the question; the other direction has tests of its own."""

from attention.co_attention import co_attention
from tests.attention.mechanism import Mechanism


def passage(query, key, value, **options):
    return co_attention(query, key, value, **options).passage


MECHANISMS = [Mechanism("co_attention", passage, shift_invariant=True)]
