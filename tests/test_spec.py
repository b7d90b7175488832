"""Config blocks: what is read off signatures and docstrings, what follows from what, mistakes of one line."""

import dataclasses
from typing import Annotated, Any, Literal

import pytest

import spec
from errors import UserError
from spec import Block, Fraction, Natural, NonNegative, Positive, Range, Rate, Registry, Share, call, derived

BOILED = Annotated[float, Range(0, 100, "least")]


class Plain:
    """A leaf.

    Args:
        size: how large it is,
            in two lines.
        width: follows from the width around.
    """

    def __init__(self, *, size: int = 2, width: Annotated[int, derived(lambda dim: 2 * dim)]):
        self.size, self.width = size, width


class Striped(Plain):
    """Another leaf.

    Args:
        stripes: how many on each side.
        width: follows from the width around.
        rngs: is given.
    """

    def __init__(
        self,
        *,
        stripes: tuple[int, int] = (1, 2),
        width: Annotated[int, derived(lambda dim: 2 * dim)],
        rngs: int = 0,
    ):
        self.stripes, self.width, self.rngs = stripes, width, rngs


class Same(Plain):
    """One made as its parent is."""


LEAVES = Registry(
    "leaf",
    {"plain": Plain, "striped": Striped, "same": Same, "none": spec.nothing},
    given=("rngs",),
    aliases={"banded": "striped"},
)
ONE = call(Same)


@dataclasses.dataclass(frozen=True)
class Record:
    """A record.

    Attributes:
        first, second: numbers.
    """

    first: int = 1
    second: float = 2


class Tree:
    """A tree.

    Args:
        dim: its width.
        count: of branches, from 0 on.
        rate: of loss.
        share: that is kept.
        fraction: of light.
        heat: of boiling.
        norm: before or after.
        level: one of some numbers.
        wide: whether it is.
        name: of it.
        limit: or none.
        widths: as many as wanted.
        side: follows from the width, unless it is given.
        leaf: what is on it.
        leaves: one for all or one for each.
        total: follows from a leaf.
        root: always the same.
        planted: who did it, which is for no block to say.

    Raises:
        ValueError: it is too wide.
    """

    def __init__(
        self,
        *,
        dim: int = 3,
        count: Natural = 0,
        rate: Rate = 0.0,
        share: Share = 0.5,
        fraction: Fraction = 1.0,
        heat: BOILED = 1.0,
        norm: Literal["pre", "post"] = "pre",
        level: Literal[1, 2, 4] = 1,
        wide: bool = False,
        name: str = "oak",
        limit: float | None = None,
        widths: tuple[int, ...] = (3, 4),
        side: Annotated[int | None, derived(lambda dim: dim // 2)] = None,
        leaf: Annotated[Block, LEAVES] | str = "plain",
        leaves: Annotated[Block | tuple[Block, ...], LEAVES] | str = "none",
        total: Annotated[int, derived(lambda leaf, dim: leaf["width"] + dim)],
        root: Annotated[Block, ONE],
        planted: str,
    ):
        if dim > 100:
            raise ValueError(f"dim is {dim}; it must be at most 100")
        self.made = {name: value for name, value in locals().items() if name != "self"}


TREES = Registry("tree", {"tree": Tree, "record": Record}, given=("planted",))


def tree(**fields: Any) -> dict[str, Any]:
    return TREES.build({"kind": "tree", **fields}, "config.tree", planted="by hand").made


def test_fields_are_read_off_signature_and_docstring():
    found = TREES.fields("tree")
    assert "planted" not in found
    assert "planted" in spec.fields(Tree)
    assert list(found)[:3] == ["dim", "count", "rate"]
    count, limit, leaf, leaves = (found[name] for name in ("count", "limit", "leaf", "leaves"))
    assert (count.type, count.default, count.optional, count.comment) == (
        int,
        0,
        False,
        "of branches, from 0 on.",
    )
    assert (limit.type, limit.default, limit.optional) == (float, None, True)
    assert (leaf.part, leaf.is_list, leaf.default) == (LEAVES, False, "plain")
    assert leaves.is_list
    assert found["root"].default is spec.REQUIRED
    assert found["total"].derived.names == ("leaf", "dim")
    assert spec.fields(Plain)["size"].comment == "how large it is, in two lines."
    assert list(spec.fields(Same)) == ["size", "width"]  # with the comments of its parent
    assert spec.fields(Same)["size"].comment == "how large it is, in two lines."
    assert [(f.name, f.comment) for f in spec.fields(Record).values()] == [
        ("first", "numbers."),
        ("second", "numbers."),
    ]
    assert not spec.fields(spec.nothing)


@pytest.mark.parametrize(
    "name, allowed",
    [
        ("dim", "an integer, at least 1"),
        ("count", "an integer, at least 0"),
        ("rate", "a number, in [0, 1)"),
        ("share", "a number, in (0, 1)"),
        ("fraction", "a number, in [0, 1]"),
        ("heat", "a number, in (0, 100]"),
        ("norm", "one of pre, post"),
        ("level", "one of 1, 2, 4"),
        ("wide", "True or False"),
        ("name", "a word"),
        ("limit", "a number, or None"),
        ("widths", "a tuple, each of it an integer, at least 0"),
        ("leaf", "one of plain, striped, same, none"),
        ("root", "a block"),
    ],
)
def test_what_is_allowed_in_words(name, allowed):
    assert TREES.fields("tree")[name].allowed == allowed


def test_a_block_holds_every_argument_in_order_and_nothing_that_is_given():
    block = spec.spec(Tree, dim=5)
    assert list(block) == ["kind", *TREES.fields("tree")]
    assert (block.kind, block.dim, block.side, block.total) == ("tree", 5, 2, 15)
    assert block.leaf.to_dict() == {"kind": "plain", "size": 2, "width": 10}
    assert block.leaves.to_dict() == {"kind": "none"}
    assert block.root.to_dict() == {"size": 2, "width": 10}  # always the same call, so without a word
    assert spec.row_of(Tree) == (TREES, "tree")
    with pytest.raises(AttributeError, match="dimm"):
        block.dimm = 3
    assert TREES.block().kind == "tree"
    assert TREES.block("record", first=3).to_dict() == {"kind": "record", "first": 3, "second": 2.0}


def test_what_follows_is_computed_from_beside_and_around_unless_it_is_given():
    """The innermost block around counts; a number of a nested block may count too."""
    assert (tree()["side"], tree()["total"]) == (1, 9)
    assert tree(side=7)["side"] == 7
    assert tree(leaf={"kind": "plain", "width": 1})["total"] == 4
    assert "width" not in spec.spec(Striped)  # until there is something around it
    inside = LEAVES.where(lambda make: True, "", dim=lambda height: 10 * height)
    around = ({"height": 2},)
    assert spec.complete(inside, {"kind": "plain"}, around=around)["width"] == 40
    assert spec.complete(inside, {"kind": "plain"}, around=({"dim": 1}, *around))["width"] == 40
    assert spec.complete(LEAVES, {"kind": "plain"}, around=({"dim": 1}, {"dim": 2}))["width"] == 2
    with pytest.raises(UserError, match=r"^leaf.width is missing; it must be an integer, at least 1$"):
        LEAVES.build("plain", "leaf")


def test_a_nested_block_may_be_a_word_a_list_or_a_block_that_was_read_back():
    made = tree(leaf="banded", leaves=[{"kind": "plain", "size": 5}, "none"])
    assert made["leaf"].to_dict() == {"kind": "striped", "stripes": (1, 2), "width": 6}
    assert [each.to_dict() for each in made["leaves"]] == [
        {"kind": "plain", "size": 5, "width": 6},
        {"kind": "none"},
    ]
    assert tree(leaf={"kind": "striped", "stripes": [4, 0]})["leaf"].stripes == (4, 0)
    block = spec.spec(Tree, leaf="striped").to_dict()
    assert TREES.build(block, planted="x").made == TREES.build("tree", planted="x").made | {
        "leaf": spec.spec(Striped, width=6),
        "planted": "x",
    }


def test_given_arguments_go_to_the_rows_that_take_them():
    assert LEAVES.build({"kind": "striped", "width": 1}, rngs=8).rngs == 8
    assert LEAVES.build({"kind": "plain", "width": 1}, rngs=8).width == 1
    assert LEAVES.build("none", rngs=8) is None


def test_rows_where_they_can_be_used():
    part = LEAVES.where(lambda make: make is not Plain, "of a hedge")
    assert list(part) == ["striped", "same", "none"]
    assert part.word("banded") == "striped"
    assert part.given == LEAVES.given
    assert (len(part), part["banded"]) == (3, Striped)
    with pytest.raises(
        UserError, match=r"unknown leaf of a hedge in config.leaf 'plain'. Allowed: banded, none"
    ):
        part.build("plain", "config.leaf")
    assert not LEAVES.where(lambda make: make is Plain, "").aliases


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"dim": 0}, "config.tree.dim is 0; it must be an integer, at least 1"),
        ({"dim": "3"}, "config.tree.dim is '3'; it must be an integer"),
        ({"dim": True}, "config.tree.dim is True; it must be an integer"),
        ({"dim": 3.0}, "config.tree.dim is 3.0; it must be an integer"),
        ({"dim": None}, "config.tree.dim is None; it must be an integer"),
        ({"count": -1}, "config.tree.count is -1; it must be an integer, at least 0"),
        ({"rate": 1.0}, "config.tree.rate is 1.0; it must be a number, in [0, 1)"),
        ({"rate": "no"}, "config.tree.rate is 'no'; it must be a number"),
        ({"share": 0.0}, "config.tree.share is 0.0; it must be a number, in (0, 1)"),
        ({"fraction": 1.1}, "config.tree.fraction is 1.1; it must be a number, in [0, 1]"),
        ({"heat": 0}, "config.tree.heat is 0; it must be a number, in (0, 100]"),
        ({"limit": float("nan")}, "config.tree.limit is nan; it must be a number, or None"),
        ({"norm": "both"}, "config.tree.norm is 'both'; it must be one of pre, post"),
        ({"level": 3}, "config.tree.level is 3; it must be one of 1, 2, 4"),
        ({"level": True}, "config.tree.level is True; it must be one of 1, 2, 4"),
        ({"wide": 1}, "config.tree.wide is 1; it must be True or False"),
        ({"name": 1}, "config.tree.name is 1; it must be a word"),
        ({"widths": 3}, "config.tree.widths is 3; it must be a tuple, each of it an integer, at least 0"),
        ({"widths": (3, -1)}, "config.tree.widths is (3, -1)"),
        (
            {"leaf": {"kind": "striped", "stripes": (1, 2, 3)}},
            "config.tree.leaf.stripes is (1, 2, 3); it must be (an int",
        ),
        ({"leaf": 3}, "config.tree.leaf is 3; it must be one of plain, striped, same, none"),
        ({"leaf": ["plain"]}, "config.tree.leaf is ['plain']; it must be one of plain"),
        ({"leaf": None}, "config.tree.leaf is None; it must be one of plain"),
        ({"leaf": {"size": 3}}, "config.tree.leaf: kind is missing; allowed: plain, striped, same, none"),
        ({"leaf": "plane"}, "unknown leaf in config.tree.leaf 'plane'. Did you mean 'plain'?"),
        ({"leaves": ["plain", {"kind": "plain", "size": 0}]}, "config.tree.leaves.1.size is 0"),
        (
            {"leaf": {"kind": "striped", "size": 3}},
            "config.tree.leaf with kind 'striped' has no field 'size', which is of plain, same; it ",
        ),
        (
            {"leaf": {"kind": "none", "size": 3}},
            "config.tree.leaf with kind 'none' has no field 'size', which is of plain, same; it has none",
        ),
        (
            {"leaf": {"kind": "plain", "siz": 3}},
            "unknown field of config.tree.leaf with kind 'plain' 'siz'. Did you",
        ),
        (
            {"leaf": {"kind": "striped", "rngs": 3}},
            "unknown field of config.tree.leaf with kind 'striped' 'rngs'",
        ),
        ({"root": {"kind": "plain"}}, "unknown field of config.tree.root 'kind'. Allowed: size, width"),
        ({"planted": "x"}, "unknown field of config.tree with kind 'tree' 'planted'"),
        ({"dim": 101}, "config.tree: dim is 101; it must be at most 100"),
    ],
)
def test_a_mistake_is_one_line(fields, message):
    with pytest.raises(UserError) as error:
        tree(**fields)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_whole_numbers_are_numbers_and_ends_count_as_they_are_said_to():
    made = tree(rate=0, fraction=0, heat=100, limit=-3, share=0.001)
    assert (made["rate"], made["heat"], made["limit"]) == (0.0, 100.0, -3.0)
    assert all(type(made[name]) is float for name in ("rate", "fraction", "heat", "limit"))


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("dim", "7", 7),
        ("rate", "1e-3", 0.001),
        ("rate", "0", 0.0),
        ("limit", "None", None),
        ("limit", "none", None),
        ("wide", "true", True),
        ("wide", "0", False),
        ("name", "None", "None"),
        ("name", "7", "7"),
        ("norm", "post", "post"),
        ("level", "4", 4),
        ("widths", "(1, 2)", (1, 2)),
        ("widths", "[1]", (1,)),
        ("side", "7", 7),
    ],
)
def test_what_a_command_line_means(name, text, value):
    found = TREES.fields("tree")[name].parse(f"config.{name}", text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("dim", "many", "config.dim is 'many'; it must be an integer, at least 1"),
        ("dim", "1.5", "config.dim is 1.5; it must be"),
        ("dim", "None", "config.dim is None; it must be an integer"),
        ("limit", "inf", "config.limit is inf; it must be a number, or None"),
        ("wide", "perhaps", "config.wide is 'perhaps'; it must be True or False"),
        ("norm", "both", "config.norm is 'both'; it must be one of pre, post"),
        ("widths", "(1,", "config.widths is '(1,'; it must be a tuple"),
    ],
)
def test_what_a_command_line_cannot_mean_is_one_line(name, text, message):
    with pytest.raises(UserError) as error:
        TREES.fields("tree")[name].parse(f"config.{name}", text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "kind, inside, outside",
    [
        (Natural, [0, 5], [-1]),
        (Rate, [0, 0.99], [1, -0.1]),
        (Share, [0.5], [0, 1]),
        (Fraction, [0, 1], [1.01]),
        (NonNegative, [0, 1e9], [-1]),
        (Positive, [1e-9], [0]),
    ],
)
def test_ranges_and_their_ends(kind, inside, outside):
    (limits,) = kind.__metadata__
    assert all(value in limits for value in inside)
    assert not any(value in limits for value in outside)
