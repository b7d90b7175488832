import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import attention
from attention import masks, relative_positions

rng = np.random.default_rng(0)


def draw(*shapes):
    return [rng.normal(size=shape).astype(jnp.float32) for shape in shapes]


def test_shaw_scores_by_hand():
    # The keys hold nothing, so that a score is the number of the clipped distance, times the query.
    query, table = jnp.array([1.0, 10.0, 100.0, 1.0]).reshape(4, 1, 1), jnp.array([[-2.0], [3.0], [5.0]])
    scores = relative_positions.shaw_scores(query, np.zeros((4, 1, 1)), table)
    behind, here, ahead = -2, 3, 5
    expected = [
        [here, ahead, ahead, ahead],
        [10 * behind, 10 * here, 10 * ahead, 10 * ahead],
        [100 * behind, 100 * behind, 100 * here, 100 * ahead],
        [behind, behind, behind, here],
    ]
    np.testing.assert_array_equal(scores, [expected])


def test_shaw_values_by_hand():
    # All scores are equal and all values 0: the output is the mean of the clipped distances.
    zeros = np.zeros((4, 1, 1))
    table = jnp.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    out = relative_positions.shaw_attention(
        zeros, zeros, zeros, key_table=np.zeros((1, 1)), value_table=table
    )
    # 0 1 2 2; -1 0 1 2; -2 -1 0 1; -2 -2 -1 0
    np.testing.assert_allclose(out[:, 0, 0], [5 / 4, 2 / 4, -2 / 4, -5 / 4], rtol=1e-6)


def test_shaw_keys_are_a_score():
    query, key, value, table = draw((2, 5, 4, 6), (2, 5, 2, 6), (2, 5, 2, 8), (7, 6))
    score = Partial(relative_positions.shaw_scores, key_table=table)
    np.testing.assert_allclose(
        attention.attend(query, key, value, score=score, mask=masks.causal(5)),
        relative_positions.shaw_attention(query, key, value, key_table=table, mask=masks.causal(5)),
        rtol=1e-5,
    )


def test_shaw_without_distances_is_plain_attention():
    # One vector for all distances is a constant: on scores it cancels, on the output it is added.
    query, key, value, a, b = draw((2, 5, 4, 6), (2, 5, 2, 6), (2, 5, 2, 8), (1, 6), (1, 8))
    out = relative_positions.shaw_attention(query, key, value, key_table=a, value_table=b)
    expected = attention.attend(query, key, value) + b.reshape(1, 1, 1, 8)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_shaw_does_not_depend_on_where_all_stand():
    # Steps of decoding, by an offset that is traced and one that differs in the batch.
    query, key, value, a, b = draw((2, 6, 4, 6), (2, 6, 2, 6), (2, 6, 2, 8), (5, 6), (3, 8))
    tables = {"key_table": a, "value_table": b}
    whole = relative_positions.shaw_attention(query, key, value, mask=masks.causal(6), **tables)

    @jax.jit
    def steps(query, offset):
        mask = masks.causal(2, 6, offset)
        return relative_positions.shaw_attention(query, key, value, mask=mask, query_offset=offset, **tables)

    np.testing.assert_allclose(steps(query[:, 3:5], 3), whole[:, 3:5], rtol=1e-5, atol=1e-6)
    at = jnp.array([1, 4])
    picked = np.stack([query[0, 1:3], query[1, 4:6]])
    expected = np.stack([whole[0, 1:3], whole[1, 4:6]])
    np.testing.assert_allclose(steps(picked, at), expected, rtol=1e-5, atol=1e-6)


def test_shaw_makes_no_vector_for_every_query_and_key():
    T, H = 256, 64
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in [(1, T, 1, H)] * 3 + [(9, H)] * 2]

    def loss(query, key, value, a, b):
        return jnp.sum(relative_positions.shaw_attention(query, key, value, key_table=a, value_table=b) ** 2)

    memory = jax.jit(jax.grad(loss, (0, 1, 2, 3, 4))).lower(*arrays).compile().memory_analysis()
    assert memory.temp_size_in_bytes < T * T * H * 4 / 2


def test_shaw_reports_weights_and_drops_them():
    query, key, value, a, b = draw((2, 5, 4, 6), (2, 5, 2, 6), (2, 5, 2, 8), (5, 6), (3, 8))
    tables = {"key_table": a, "value_table": b}
    out, weights = relative_positions.shaw_attention(query, key, value, return_weights=True, **tables)
    np.testing.assert_allclose(weights.sum(-1), np.ones((2, 4, 5)), rtol=1e-6)
    dropped, same = relative_positions.shaw_attention(
        query,
        key,
        value,
        dropout_rate=0.5,
        dropout_key=jax.random.key(0),
        return_weights=True,
        **tables,
    )
    np.testing.assert_array_equal(weights, same)
    assert np.abs(out - dropped).max() > 0.1


def test_t5_buckets_by_hand():
    # 8 buckets a direction: 0 1 2 3 alone, then from 4, 4 * 2, 4 * 4 and 4 * 8 on.
    buckets = relative_positions.t5_buckets(1, 71, 35, num_buckets=16, max_distance=64)[0, 0, 0]
    far = [0, 1, 2, 3, *[4] * 4, *[5] * 8, *[6] * 16, *[7] * 4]
    np.testing.assert_array_equal(buckets[35::-1], far)
    np.testing.assert_array_equal(buckets[36:], [8 + bucket for bucket in far[1:]])
    # The same, for keys behind only; all that is ahead is in bucket 0.
    causal = relative_positions.t5_buckets(1, 71, 35, num_buckets=8, max_distance=64, bidirectional=False)[
        0, 0, 0
    ]
    np.testing.assert_array_equal(causal[35::-1], far)
    assert (causal[36:] == 0).all()


def published_buckets(distance, num_buckets, max_distance, bidirectional):
    """The published formula, whose logarithms are nudged up by an epsilon in its JAX edition."""
    bucket, n = 0, num_buckets
    if bidirectional:
        n //= 2
        bucket, distance = (n if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    if distance < n // 2:
        return bucket + distance
    position = np.log(distance / (n // 2) + 1e-12) / np.log(max_distance / (n // 2))
    return bucket + min(n // 2 + int(position * (n - n // 2)), n - 1)


@pytest.mark.parametrize(
    "num_buckets, max_distance, bidirectional",
    [(32, 128, True), (32, 128, False), (64, 256, True), (6, 4, True), (7, 20, False), (2, 2, False)],
)
def test_t5_buckets_are_the_published_ones(num_buckets, max_distance, bidirectional):
    buckets = relative_positions.t5_buckets(
        1,
        601,
        300,
        num_buckets=num_buckets,
        max_distance=max_distance,
        bidirectional=bidirectional,
        batch_dims=0,
    )
    expected = [published_buckets(s - 300, num_buckets, max_distance, bidirectional) for s in range(601)]
    np.testing.assert_array_equal(buckets, [[expected]])


def test_t5_default_buckets():
    # Of the pretrained models: 32 buckets, distances up to 128.
    buckets = relative_positions.t5_buckets(1, 201, 200)[0, 0, 0, ::-1]
    starts = [int(np.argmax(buckets == bucket)) for bucket in range(16)]
    assert starts == [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    causal = relative_positions.t5_buckets(1, 201, 200, bidirectional=False)[0, 0, 0, ::-1]
    starts = [int(np.argmax(causal == bucket)) for bucket in range(16, 32)]
    assert starts == [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


@pytest.mark.parametrize("offset", [0, 3, -2, [1, 4]])
def test_t5_bias_looks_up_the_buckets(offset):
    table, offset = draw((8, 4))[0], jnp.array(offset)
    bias = jax.jit(lambda offset: relative_positions.t5_bias(table, 3, 7, offset, max_distance=9))(offset)
    buckets = relative_positions.t5_buckets(3, 7, offset, num_buckets=8, max_distance=9)
    np.testing.assert_array_equal(bias, np.moveaxis(np.asarray(table)[buckets[:, 0]], -1, 1))


def test_t5_bias_counts_its_uses_in_the_gradient():
    counts = jax.grad(lambda table: relative_positions.t5_bias(table, 5, max_distance=4).sum())
    # Of the 25 distances 5 are 0, 4 are -1 (then 3, 2, 1 further behind), and as many ahead.
    np.testing.assert_array_equal(counts(np.zeros((8, 1)))[:, 0], [5, 4, 3, 3, 0, 4, 3, 3])


def test_alibi_slopes():
    np.testing.assert_array_equal(relative_positions.alibi_slopes(8), 0.5 ** np.arange(1, 9))
    np.testing.assert_array_equal(relative_positions.alibi_slopes(1), [2.0**-8])
    # Of 4 heads 1/4 to 1/256, and of 8 heads every second one: 1/2, 1/8.
    four = [1 / 4, 1 / 16, 1 / 64, 1 / 256]
    np.testing.assert_array_equal(relative_positions.alibi_slopes(6), [*four, 1 / 2, 1 / 8])
    for heads in range(1, 40):
        slopes = relative_positions.alibi_slopes(heads)
        assert slopes.shape == (heads,)
        assert len(set(slopes)) == heads


def test_alibi_by_hand():
    bias = relative_positions.alibi(2, 2, 4, 2)
    first, second = [[-2, -1, 0, -1], [-3, -2, -1, 0]], [[0, -1, -2, -3], [-1, 0, -1, -2]]
    np.testing.assert_array_equal(bias, [[np.array(first) / 16, np.array(first) / 256]])
    rows = relative_positions.alibi(1, 2, 4, jnp.array([2, 0]))
    np.testing.assert_array_equal(rows, np.array([[first], [second]]) / 256)
    assert relative_positions.alibi(3, 5, batch_dims=0, dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_lengths_of_zero():
    table = np.ones((8, 3))
    for T, S in [(0, 0), (0, 4), (4, 0)]:
        assert relative_positions.t5_bias(table, T, S, 0).shape == (1, 3, T, S)
        assert relative_positions.alibi(3, T, S, 0).shape == (1, 3, T, S)


def test_errors(untyped):
    query, key, value = np.ones((2, 3, 4, 6)), np.ones((2, 5, 2, 6)), np.ones((2, 5, 2, 8))
    table = np.ones((5, 6))

    def shaw(key_table=table, query_offset=0, **options):
        return relative_positions.shaw_attention(
            query, key, value, key_table=key_table, query_offset=query_offset, **options
        )

    with pytest.raises(ValueError, match=r"query_offset=0 .* query_offset=2"):
        shaw(query_offset=None)
    for wrong in (np.ones((4, 6)), np.ones((5, 8)), np.ones((5, 6, 1))):
        with pytest.raises(ValueError, match=r"key_table must be \[2k\+1 6\]"):
            shaw(wrong)
    with pytest.raises(ValueError, match=r"value_table must be \[2k\+1 8\].*got \(5, 6\)"):
        shaw(value_table=table)
    with pytest.raises(TypeError, match="key_table bfloat16"):
        shaw(table.astype(jnp.bfloat16))
    with pytest.raises(ValueError, match=r"one per batch element \(2,\), got \(3,\)"):
        shaw(query_offset=np.zeros(3, int))
    with pytest.raises(TypeError, match=r"query_offset .* float32"):
        shaw(query_offset=np.zeros(2))
    for buckets, both in ((7, True), (2, True), (1, False)):
        with pytest.raises(ValueError, match=f"num_buckets must be .*got {buckets}"):
            relative_positions.t5_buckets(3, num_buckets=buckets, bidirectional=both)
    with pytest.raises(ValueError, match=r"max_distance must be above 8, .*got 8"):
        relative_positions.t5_buckets(3, max_distance=8)
