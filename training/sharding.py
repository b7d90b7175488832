"""Data parallelism: every device holds the whole state and a slice of each batch."""

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from errors import UserError


class DataParallel:
    """Placement of state and batches on devices.

    Under one `jax.jit` over a mesh, sums over the batch are sums over all devices, so losses, gradients
    and BatchNorm's statistics are those of the whole batch, whatever the number of devices.

    Args:
        num_devices: how many to use; None: as many as divide every batch evenly, at best all.
        batch_sizes: the numbers of examples that batches have.

    Raises:
        UserError: if there are fewer devices than asked for, or they do not divide a batch.
    """

    def __init__(self, num_devices: int | None, batch_sizes: Sequence[int]):
        devices = jax.devices()
        if num_devices is not None and not 1 <= num_devices <= len(devices):
            raise UserError(
                f"config.num_devices is {num_devices}, but there are {len(devices)} "
                f"{devices[0].platform} device(s); None uses what there is"
            )
        whole = math.gcd(*batch_sizes)
        if num_devices is not None and whole % num_devices:
            odd = next(size for size in batch_sizes if size % num_devices)
            raise UserError(f"a batch of {odd} examples is not divisible by config.num_devices {num_devices}")
        if num_devices is None:
            num_devices = max(n for n in range(1, len(devices) + 1) if whole % n == 0)
        mesh = Mesh(np.asarray(devices[:num_devices]), ("data",))
        self.num_devices = num_devices
        self._replicated = NamedSharding(mesh, PartitionSpec())
        self._split = NamedSharding(mesh, PartitionSpec("data"))

    def replicate(self, tree):
        """A copy of each array on every device."""
        return jax.device_put(tree, self._replicated)

    def split(self, batch):
        """Each array cut along its first axis, a slice per device; whole where it can't be cut evenly."""
        size = next(iter(batch.values())).shape[0]
        return jax.device_put(batch, self._split if size % self.num_devices == 0 else self._replicated)
