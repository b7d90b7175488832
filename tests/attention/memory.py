"""How much temporary memory a mechanism needs, by the compiler's own account; nothing is run."""

import jax
import jax.numpy as jnp
import numpy as np


def memory_slope(attention, lengths=(512, 8192)):
    """How fast temporary memory grows with the length: 1 is linear, 2 is quadratic."""
    found = []
    for T in lengths:
        arrays = [jax.ShapeDtypeStruct((1, T, 2, 16), jnp.float32)] * 3
        program = jax.jit(attention).lower(*arrays).compile()
        found.append(program.memory_analysis().temp_size_in_bytes)
    return np.polyfit(np.log(lengths), np.log(found), 1)[0]
