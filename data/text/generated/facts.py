"""Facts: generated passages, and questions that only a comparison with the whole question answers.

    the red key of Anna is in the old garden . in Rome is the red cup of Anna . ...
    where is the red key of Anna ?                   the old garden
    whose red key is in the old garden ?             Anna
    which red thing of Anna is in the old garden ?   key
    which colour has the key of Anna in the old garden ?   red

A fact has four features: the colour of a thing, the thing, its owner and its place. A question gives three
and asks for the fourth, half of the time for the place. How example i is drawn, all choices uniform:

1. the fact that is asked about, and for which feature;
2. for each of the three features given a fact that differs in this one and in the answer alone, so that all
   three must be compared; and up to three facts more that differ in two of them and in the answer;
3. how each fact is said, place first or last, and the order of all.

Answers are one to four tokens long. Example i is a pure function of (seed, split, i). Validation and test are
the same for every seed.
"""

from typing import Any

from data.streams import Stream

NUM_EXAMPLES = {"train": 6_000, "validation": 500, "test": 1_000}
_SHARED_SEED = 0

FEATURES = {
    "colour": ("red", "blue", "green", "white", "black"),
    "thing": ("key", "cup", "hat", "book", "bread knife", "paper bag"),
    "owner": ("Anna", "Tom", "Mary", "Ben", "Mr Brown", "Mrs Hill"),
    "place": (
        *("London", "Paris", "Rome", "Athens"),
        *("the kitchen", "the garden", "the cellar", "the attic"),
        *("the old kitchen", "the old garden", "the new kitchen", "the new garden"),
        *("the room of Anna", "the room of Tom", "the room of Mary", "the room of Ben"),
    ),
}
_SAID = ("the {colour} {thing} of {owner} is in {place} .", "in {place} is the {colour} {thing} of {owner} .")
_ASKED = {
    "place": "where is the {colour} {thing} of {owner} ?",
    "owner": "whose {colour} {thing} is in {place} ?",
    "thing": "which {colour} thing of {owner} is in {place} ?",
    "colour": "which colour has the {thing} of {owner} in {place} ?",
}
_WANTED = ("place", "place", "place", "owner", "thing", "colour")
_MOST_OTHERS = 3
_MOST_DRAWS = 64  # more than any example makes
_RANGE = 1 << 32

Fact = dict[str, str]


def splits(seed: int) -> dict[str, list[dict[str, Any]]]:
    """The three splits, the training examples drawn by `seed`."""
    return {
        split: [example(seed if split == "train" else _SHARED_SEED, split, index) for index in range(size)]
        for split, size in NUM_EXAMPLES.items()
    }


def example(seed: int, split: str, index: int) -> dict[str, Any]:
    """Example `index` of a split, in the fields of `data.text.readers.squad.decode`."""
    stream = Stream(seed, f"facts {split}", index)

    drawn = iter(stream.integers(_RANGE, _MOST_DRAWS).tolist())  # at once: a call for each takes longer

    def below(high: int) -> int:
        return next(drawn) * high // _RANGE

    def other(feature: str, value: str) -> str:
        options = [option for option in FEATURES[feature] if option != value]
        return options[below(len(options))]

    fact = {feature: options[below(len(options))] for feature, options in FEATURES.items()}
    wanted = _WANTED[below(len(_WANTED))]
    given = [feature for feature in FEATURES if feature != wanted]
    changes: list[tuple[str, ...]] = [(feature,) for feature in given]
    for _ in range(below(_MOST_OTHERS + 1)):
        same = below(len(given))
        changes.append((*given[:same], *given[same + 1 :]))
    facts = [fact]
    for changed in changes:
        facts.append(fact | {feature: other(feature, fact[feature]) for feature in (*changed, wanted)})

    said, start = "", 0
    for place in stream.permutation(len(facts)):
        template = _SAID[below(2)]
        if place == 0:
            before = template[: template.index("{" + wanted + "}")]
            start = len(said) + len(before.format_map(fact))
        said += template.format_map(facts[place]) + " "
    return {
        "id": f"{split}-{index}",
        "title": "",
        "context": said.rstrip(),
        "question": _ASKED[wanted].format_map(fact),
        "answers": {"text": [fact[wanted]], "answer_start": [start]},
    }
