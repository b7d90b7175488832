"""Zachary's karate club: 34 members, 78 friendships, and which of two men each followed when it split.

A club at an American university, observed from 1970 to 1972. It split over the price of lessons: half of it
went with the instructor, "Mr. Hi" (member 1), the others stayed with the officers around the president
(member 34). Facts, from Zachary (1977), "An information flow model for conflict and fission in small groups",
Journal of Anthropological Research 33; member 9, of the officers' faction but on the eve of his black belt,
is counted with Mr. Hi, whom he followed.

The two leaders and one friend of each are labelled to train on, eight members to validate on, the others are
asked for in the test. Nothing is known of a member but his name, so features are one-hot.
"""

from collections.abc import Collection

import numpy as np

from data.graph.types import Example, Graph, undirected
from data.splits import Splits

CLASSES = ("Mr. Hi", "Officer")
MEMBERS = {"train": (1, 2, 33, 34), "validation": (4, 8, 11, 18, 15, 24, 27, 30)}  # from 1
_MR_HI = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22)

# The friends of each member that have a higher number.
_FRIENDS = {
    1: (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32),
    2: (3, 4, 8, 14, 18, 20, 22, 31),
    3: (4, 8, 9, 10, 14, 28, 29, 33),
    4: (8, 13, 14),
    5: (7, 11),
    6: (7, 11, 17),
    7: (17,),
    9: (31, 33, 34),
    10: (34,),
    14: (34,),
    15: (33, 34),
    16: (33, 34),
    19: (33, 34),
    20: (34,),
    21: (33, 34),
    23: (33, 34),
    24: (26, 28, 30, 33, 34),
    25: (26, 28, 32),
    26: (32,),
    27: (30, 34),
    28: (34,),
    29: (32, 34),
    30: (33, 34),
    31: (33, 34),
    32: (33, 34),
    33: (34,),
}
_SIZE = 34


def splits() -> Splits[list[Example]]:
    """The club, with the labels of each split; node i is member i + 1."""
    pairs = [(member - 1, friend - 1) for member, friends in _FRIENDS.items() for friend in friends]
    senders, receivers = undirected(np.array(pairs))
    rest = set(range(1, _SIZE + 1)) - {member for split in MEMBERS.values() for member in split}

    def labelled(members: Collection[int]) -> list[Example]:
        return [
            Graph(
                features=np.eye(_SIZE, dtype=np.float32),
                senders=senders,
                receivers=receivers,
                edges=np.zeros((len(senders), 0), np.float32),
                labels=[
                    CLASSES[member not in _MR_HI] if member in members else None
                    for member in range(1, _SIZE + 1)
                ],
            )
        ]

    return Splits(labelled(MEMBERS["train"]), labelled(MEMBERS["validation"]), labelled(rest))
