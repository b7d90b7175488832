"""How large a model is, and what one example costs."""

import math

import jax
from flax import nnx
from rich.table import Table


def parameter_counts(params: nnx.State) -> dict[str, int]:
    """Parameters of each top-level part of a model, in order of name."""
    counts: dict[str, int] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        part = str(getattr(path[0], "key", path[0]))
        counts[part] = counts.get(part, 0) + math.prod(leaf.shape)
    return counts


def flops_per_example(task, structure: nnx.GraphDef, params, statistics, example) -> float:
    """Floating-point operations of one example's forward pass, by XLA's count of the lowered program.

    That is `task.forward(model, batch)` of a task which does more when it evaluates, such as making
    sequences in a loop that nobody knows the length of; of any other `task.evaluate`.
    """
    forward = getattr(task, "forward", task.evaluate)

    def once(params, statistics, batch):
        return forward(nnx.merge(structure, params, statistics), batch)

    analysis = jax.jit(once).lower(params, statistics, example).cost_analysis()
    return float((analysis or {}).get("flops", math.nan))


def table(title: str, counts: dict[str, int], flops: float) -> Table:
    """Both as a table for the console."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("part")
    shown.add_column("parameters", justify="right")
    for part, count in counts.items():
        shown.add_row(part, f"{count:,}")
    shown.add_row("all", f"{sum(counts.values()):,}", style="bold")
    shown.add_row("forward FLOPs per example", f"{flops:,.0f}")
    return shown
