import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import positions


def test_sinusoidal_by_hand():
    # Wavelengths 2 pi and 2 pi * 100.
    expected = [[0, 1, 0, 1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]]
    np.testing.assert_allclose(positions.sinusoidal(2, 4), expected, rtol=1e-6)


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_sinusoidal_shift_is_a_fixed_linear_map(dim, x64):
    table = np.asarray(positions.sinusoidal(40, dim, dtype=jnp.float64))
    assert table.shape == (40, dim)
    for k in (1, 7):
        # Fitted on the first few positions, the map must hold at all the others.
        shift = np.linalg.lstsq(table[:12], table[k : 12 + k], rcond=None)[0]
        np.testing.assert_allclose(table[:-k] @ shift, table[k:], atol=1e-9)


def test_sinusoidal_of_given_positions():
    table = positions.sinusoidal(9, 6)
    picked = jnp.array([[3, 0], [8, 2]])
    np.testing.assert_allclose(positions.sinusoidal(picked, 6), table[picked], rtol=1e-6)
    assert positions.sinusoidal(jnp.array([0.5]), 6).shape == (1, 6)
    assert positions.sinusoidal(3, 4, dtype=jnp.bfloat16).dtype == jnp.bfloat16
    assert positions.sinusoidal(0, 4).shape == (0, 4)


@pytest.mark.parametrize("dim", [1, 6, 9])
def test_sinusoidal_2d_is_rows_beside_columns(dim):
    half = (dim + 2) // 4 * 2
    grid, rows = np.asarray(positions.sinusoidal_2d(3, 5, dim)), np.asarray(positions.sinusoidal(3, half))
    columns = np.asarray(positions.sinusoidal(5, dim - half))
    assert grid.shape == (3, 5, dim)
    for i in range(3):
        for j in range(5):
            row, column = rows[i], columns[j]
            np.testing.assert_allclose(grid[i, j], np.concatenate([row, column]), rtol=1e-6)


def test_sinusoidal_2d_tells_all_patches_apart():
    flat = positions.sinusoidal_2d(4, 4, 8).reshape(16, 8)
    distance = jnp.linalg.norm(flat[:, None] - flat[None], axis=-1)
    assert (distance + 10 * np.eye(16)).min() > 0.1


def test_rotary_turns_pairs():
    x = jnp.array([[[1.0, 2.0, 3.0, 4.0]]])
    at = jnp.array([np.pi / 2])
    # A quarter turn takes (a, b) to (-b, a); with base 1 all pairs turn alike.
    half = positions.rotary(x, at, base=1.0, pairing="half_split")
    inter = positions.rotary(x, at, base=1.0, pairing="interleaved")
    np.testing.assert_allclose(half, [[[-3, -4, 1, 2]]], atol=1e-6)
    np.testing.assert_allclose(inter, [[[-2, 1, -4, 3]]], atol=1e-6)


@pytest.mark.parametrize("pairing", positions.PAIRINGS)
def test_rotary_products_depend_on_distance_alone(pairing, x64):
    rng = np.random.default_rng(0)
    q, k = (jnp.asarray(np.repeat(rng.normal(size=(1, 1, 1, 6)), 7, axis=1)) for _ in range(2))
    turned = [positions.rotary(x, np.arange(7), pairing=pairing) for x in (q, k)]
    table = np.asarray(jnp.einsum("btnh,bsnh->ts", *turned))
    for distance in range(-6, 7):
        diagonal = np.diagonal(table, distance)
        np.testing.assert_allclose(diagonal, np.full_like(diagonal, diagonal[0]), rtol=1e-12)
    assert np.ptp(table) > 0.1
    np.testing.assert_allclose(jnp.linalg.norm(turned[0], axis=-1), jnp.linalg.norm(q, axis=-1))


def test_rotary_pairings_are_permutations_of_each_other():
    x = np.random.default_rng(0).normal(size=(2, 5, 3, 8))
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    inter = positions.rotary(x, np.arange(5), pairing="interleaved")
    half = positions.rotary(x[..., order], np.arange(5), pairing="half_split")
    np.testing.assert_allclose(inter[..., order], half, rtol=1e-6)


def test_rotary_positions_may_differ_in_the_batch():
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
    at = jnp.array([[0, 1, 2], [5, 6, 9]])
    whole = positions.rotary(x, at)
    for b in range(2):
        np.testing.assert_allclose(whole[b], positions.rotary(x[b], at[b]), rtol=1e-6)
    shared = positions.rotary(x, at[0])
    np.testing.assert_array_equal(shared, positions.rotary(x, at[:1]))


def test_rotary_angles_are_float32_in_bfloat16():
    # In bfloat16 position 1001 would be 1000.
    x = np.ones((1, 1, 2), jnp.bfloat16)
    turned = positions.rotary(x, jnp.array([1001]))
    assert turned.dtype == jnp.bfloat16
    exact = [np.cos(1001) - np.sin(1001), np.sin(1001) + np.cos(1001)]
    np.testing.assert_allclose(turned[0, 0].astype(jnp.float32), exact, rtol=1e-2)


def test_errors(untyped):
    x = np.ones((2, 3, 4, 6))
    with pytest.raises(ValueError, match=r"even head dim, got x \(2, 3, 4, 5\)"):
        positions.rotary(x[..., :5], np.arange(3))
    with pytest.raises(ValueError, match="unknown pairing 'half'; allowed: half_split, interleaved"):
        positions.rotary(x, np.arange(3), pairing="half")
    for wrong in (np.arange(2), np.ones((3, 3)), np.ones((1, 2, 3)), jnp.array(1)):
        with pytest.raises(ValueError, match=r"\(2, 3, 4, 6\), got"):
            positions.rotary(x, wrong)
    with pytest.raises(TypeError, match="int32"):
        positions.rotary(np.ones((2, 3, 4, 6), jnp.int32), np.arange(3))


def test_learned_by_hand():
    table = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(positions.learned(2, table), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(positions.learned(jnp.array([[2], [0]]), table), [[[5, 6]], [[1, 2]]])
    counts = jax.grad(lambda table: positions.learned(jnp.array([1, 1, 0]), table).sum())(table)
    np.testing.assert_array_equal(counts, [[1, 1], [2, 2], [0, 0]])


@pytest.mark.parametrize("wrong", [-1, 3])
def test_learned_out_of_range(wrong):
    table = jnp.ones((3, 2))
    with pytest.raises(ValueError, match=rf"positions \(2,\) hold {wrong}; .* \(3, 2\) .* 0 to 2"):
        positions.learned(jnp.array([0, wrong]), table)
    # While JAX traces it shows, and only there; indexing would repeat a row.
    lookup = jax.jit(jax.value_and_grad(lambda table, at: positions.learned(at, table)[0].sum()))
    inside, gradient = lookup(table, jnp.array([0, wrong]))
    assert inside == 2
    np.testing.assert_array_equal(gradient, [[1, 1], [0, 0], [0, 0]])
    assert np.isnan(jax.jit(positions.learned)(jnp.array([0, wrong]), table)[1]).all()


def test_a_sequence_longer_than_the_table():
    with pytest.raises(ValueError, match=r"hold 3; a table \(3, 2\)"):
        positions.learned(4, jnp.ones((3, 2)))
    assert positions.learned(0, jnp.ones((0, 2))).shape == (0, 2)


def test_added_or_concatenated():
    x, encodings = np.ones((2, 3, 4)), positions.sinusoidal(3, 4)
    np.testing.assert_array_equal(positions.add(x, encodings)[1], 1 + encodings)
    both = positions.concatenate(x, encodings[:, :2])
    np.testing.assert_array_equal(both[1], np.concatenate([x[1], encodings[:, :2]], axis=-1))
    # Each batch element at positions of its own
    at = jnp.array([[0, 1, 2], [5, 6, 7]])
    np.testing.assert_array_equal(positions.add(x, positions.sinusoidal(at, 4))[0], 1 + encodings)
    assert positions.add(x.astype(jnp.bfloat16), encodings).dtype == jnp.bfloat16
    assert positions.concatenate(x.astype(jnp.bfloat16), encodings).dtype == jnp.bfloat16


def test_encodings_that_do_not_fit(untyped):
    x = np.ones((2, 3, 4))
    for join in (positions.add, positions.concatenate):
        for wrong in ((2, 4), (4,), (3, 3, 4), (1, 2, 3, 4)):
            with pytest.raises(ValueError, match=r"for x .*\(2, 3, 4\), got"):
                join(x, np.ones(wrong))
    with pytest.raises(ValueError, match=r"as many features as x \(2, 3, 4\), got \(1, 3, 5\)"):
        positions.add(x, np.ones((3, 5)))
    with pytest.raises(TypeError, match=r"positions \(2,\) must be integers"):
        positions.learned(np.ones(2), np.ones((3, 2)))
