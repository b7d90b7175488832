"""MUTAG, PTC, PROTEINS and NCI1 of the TU Dortmund collection, in the text format of GIN's authors.

A file begins with the number of graphs; each graph is a line `nodes label` and then a line per node,
`tag degree neighbour ...`. Ten lists of graphs beside it are the test sets of the ten folds; what is in
none of them is always trained on (8 graphs of MUTAG, 4 of PTC, 3 of PROTEINS).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import raw_files
from data.builder import Builder, Record

FOLDS = 10


class TUBuilder(Builder):
    """A TFDS builder of labelled graphs whose nodes have a tag each.

    A record is a graph: its tags, its edges in both directions as published, its label, and the fold
    that tests it, -1 where none does.

    Attributes:
        STEM: the name of its folder and file.
        CLASSES: the labels, as the file has them.
    """

    STEM: ClassVar[str]
    CLASSES: ClassVar[tuple[str, ...]] = ("0", "1")
    CONTENT: ClassVar[tuple[tuple[int, str], ...]]
    SUPERVISED = ("tags", "label")
    HOMEPAGE = "https://github.com/weihua916/powerful-gnns"
    LICENSE = "MIT (the repository of GIN)."
    CITATION = """@misc{morris2020tudataset,
  title  = {TUDataset: A collection of benchmark datasets for learning with graphs},
  author = {Morris, Christopher and Kriege, Nils M. and Bause, Franka and Kersting, Kristian and
            Mutzel, Petra and Neumann, Marion},
  note   = {ICML 2020 Workshop on Graph Representation Learning and Beyond},
  year   = {2020}
}"""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.METADATA = {"folds": FOLDS}
        names = [cls.file(), *(cls.fold_file(fold) for fold in range(FOLDS))]
        cls.RAW_FILES = tuple(
            raw_files.RawFile(name, *about) for name, about in zip(names, cls.CONTENT, strict=True)
        )

    @classmethod
    def file(cls) -> str:
        """The name of the file of graphs."""
        return f"{cls.STEM}/{cls.STEM}.txt"

    @classmethod
    def fold_file(cls, fold: int) -> str:
        """The name of a list of test graphs; they count from 1."""
        return f"{cls.STEM}/10fold_idx/test_idx-{fold + 1}.txt"

    @classmethod
    def features(cls) -> dict[str, Any]:
        """A graph."""
        return {
            "tags": tfds.features.Sequence(np.int32),
            "senders": tfds.features.Sequence(np.int32),
            "receivers": tfds.features.Sequence(np.int32),
            "label": tfds.features.ClassLabel(names=cls.CLASSES),
            "fold": np.int32,
        }

    @classmethod
    def what(cls) -> str:
        """Graphs."""
        return "labelled graphs"

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, list[Record]]:
        """The graphs, each with its fold."""
        graphs = parse(contents[cls.file()], cls.file(), cls.CLASSES)
        fold_of = np.full(len(graphs), -1)
        for fold in range(FOLDS):
            name = cls.fold_file(fold)
            indices = [_whole(word, name, 1) for word in contents[name].split()]
            if any(index >= len(graphs) or fold_of[index] >= 0 for index in indices):
                raise errors.RunError(f"{name}: a graph that is not there, or in another fold too")
            fold_of[indices] = fold
        return {"train": [{**graph, "fold": int(fold)} for graph, fold in zip(graphs, fold_of, strict=True)]}


def parse(content: bytes, name: str, classes: Sequence[str]) -> list[dict[str, Any]]:
    """The graphs of a file.

    Args:
        content: the file.
        name: what to call it in an error.
        classes: the labels there are.

    Raises:
        errors.RunError: it is cut short, or a line is not as the format has it.
    """
    lines = [line.split() for line in content.split(b"\n")]
    number = 0

    def numbers(at_least: int) -> list[int]:
        nonlocal number
        number += 1
        fields = lines[number - 1] if number <= len(lines) else []
        if len(fields) < at_least:
            raise errors.RunError(f"{name}:{number}: truncated, {len(fields)} fields, expected {at_least}")
        return [_whole(field, name, number) for field in fields]

    graphs = []
    for _ in range(numbers(1)[0]):
        size, label = numbers(2)[:2]
        if str(label) not in classes:
            raise errors.RunError(f"{name}:{number}: label {label}, allowed are {', '.join(classes)}")
        tags, senders, receivers = [], [], []
        for node in range(size):
            tag, degree, *neighbours = numbers(2)
            if len(neighbours) != degree or any(other >= size for other in neighbours):
                raise errors.RunError(
                    f"{name}:{number}: {degree} neighbours below {size} expected, got {neighbours}"
                )
            tags.append(tag)
            senders += neighbours
            receivers += [node] * degree
        graphs.append({"tags": tags, "senders": senders, "receivers": receivers, "label": str(label)})
    return graphs


def _whole(field: bytes, name: str, number: int) -> int:
    if not field.isdigit():
        raise errors.RunError(f"{name}:{number}: {field.decode(errors='replace')!r} is no whole number >= 0")
    return int(field)


class Mutag(TUBuilder):
    """TFDS builder of MUTAG: 188 nitroaromatic compounds."""

    STEM = "MUTAG"
    CLASSES = ("0", "2")
    SPLITS: ClassVar = {"train": 188}
    CONTENT = (
        (32_377, "5897dae243f6c773aab54ec99e86551c3b1e8601acef254714073042c632d30e"),
        (63, "52a082efad97dbff2220023632ef36009025489cad04ee40d027758cdc2525c4"),
        (58, "356bc8b8d00c2da11596ac0589981fcefec6cc2a888c015d9e35f17001e16b20"),
        (61, "f485c4e7341e78d08a8450e61861c53406ef7beb86ae2dac16062cf8214eb448"),
        (61, "7b8db256fafc179a2bd3c4a7114f0ae3905dd13fb318f34f3281a5a5066161c0"),
        (62, "992858c1122d9f9e99c4fe975742632bbcc4dc9cc651c6513c4accf526fbb4b7"),
        (62, "eaf2e57b545766e558dd393ee428ac1561bcc07a42908eb8644835ccb4bc3062"),
        (63, "eda25cebd772a6935d4b780a4f58d8aa947df43c14463a6ed0aeb2e555462f5c"),
        (64, "9da7a48b329f17c16bc15939bafb14bababde6d948aff83583e32cdb1dc2c4d6"),
        (65, "274119935ba895fa3d8829a463243800c1982704f9f179bb4ef290af1019c092"),
        (55, "adaf574e4804a4c6849a8213121b1a18bd45101a1ca2e83e90b2c0917abee5df"),
    )
    DESCRIPTION = "Compounds and whether they are mutagenic to Salmonella; tags are kinds of atoms."


class Ptc(TUBuilder):
    """TFDS builder of PTC: 344 compounds."""

    STEM = "PTC"
    SPLITS: ClassVar = {"train": 344}
    CONTENT = (
        (89_912, "711729eaf2a5308752aa7c11062dd99f645f978afc400909a5927051b314ec55"),
        (127, "e0bf6d8dde6e3875543ecd182c6523e0cc5f265bd7dd0c145c230639448c3eda"),
        (126, "87a75dd0aa283b01e44e508f7021782b1377a5fec6ff75d8bb11b185147b5a87"),
        (120, "cba9d9214de24607b05de18ed0cd8af504d382cd019311c16a89bfb749dbf7f4"),
        (122, "d350edd63db050f97f105c923975aca9e229bd8c3fcce7f1b2cc466fb7e7bdfe"),
        (129, "1c875c76259e19e4738ac8b9830f2a0e3c5c61d56aa11fe7dbec2ad2659d36c4"),
        (123, "d5522e562260bc2f1c4df0237cff04df6a78ef57ee69bf484d6ea7336b14ddff"),
        (125, "d082e7e75f592047942a35412c5c7e1c017a6a9a5c6953792ca47fd98bf664ac"),
        (126, "39dec1e744884fdea30204bfbbbcc4e024a822cb2f24c4dbafdcc647313b4d39"),
        (130, "a2f3130eb330895b6f1f4afff37e512fbb7672e8cf52966b34e2048495dd8167"),
        (123, "972b4a4ebcb1e72836f58ac28de8243e22c5c986e466683330fe8b2a4bdb1e23"),
    )
    DESCRIPTION = "Compounds and whether they are carcinogenic to male rats; tags are kinds of atoms."


class Proteins(TUBuilder):
    """TFDS builder of PROTEINS: 1,113 proteins."""

    STEM = "PROTEINS"
    SPLITS: ClassVar = {"train": 1_113}
    CONTENT = (
        (642_021, "ed0730f9bf9da68aa6a8c80f2f2b6ecea5d05791ca254c709f3efab3b45d937b"),
        (436, "41c02c84ef8cba8a781b32f51c6622c2a5ea6c6911a3c3232a4707b8c1bf0ec9"),
        (441, "d2886161063807351509512948351a5ecaa549fb7074ce89c42b72ad7d5db035"),
        (444, "3c85ff214e3d208396e706281304e5eee5ddb7f95ac3a10e37785c68a564c979"),
        (442, "f0e6908b9b56aa830da2588c5617a427e66c60e6477fef56c17b41b52f9f4e8c"),
        (446, "80661f7ae120fddfaed17bdd9a73195f3fadbd6849b8534662aeb2b7b86efe32"),
        (451, "3a2be0743b8148b37dcfe627f364e97da595b4efc50424ec295ee572be3d85cd"),
        (442, "b1006f84c83fa23249d3d7dfe97ca82d341fb8051c322934665164364403312f"),
        (441, "098735673ba5d542e6b96e026015455f27b9e2deeed765b1b4a977fd8f95bcef"),
        (450, "376c4d7ca5df6d72d5bfe7afe37b7004dd94ff828842ebedfd1080012e36cce7"),
        (451, "b274252b1e25f07be0b20171b15e7c813c06cb8060bd1a0b1898d86fb748a8c2"),
    )
    DESCRIPTION = "Proteins and whether they are enzymes; tags are helix, sheet or turn."


class Nci1(TUBuilder):
    """TFDS builder of NCI1: 4,110 compounds."""

    STEM = "NCI1"
    SPLITS: ClassVar = {"train": 4_110}
    CONTENT = (
        (1_228_668, "415d2e0861484c2baef1e40ee3ca62dd13c06d6b99549fb25774f43533e9321d"),
        (1_950, "69ba41507198321186a9698c5e259015ecb827b523404e1cd9b52fecd3315cfe"),
        (1_929, "c90d73b4da1ac591ab4c0928b629d24b08d81f39ce3301f294cb5b21821b73b8"),
        (1_942, "c30ab61114a58f700da36f2462090bf5d445df9b8bb7e3eb0337a832e4f3956e"),
        (1_941, "b440e3d772724d6d5944edbd77464c12b167f781420cdd63de5160b1e8e864b4"),
        (1_953, "32914d0ce569e1adef34e876fff00af160b7ed57336bc9a935ae515ba1043c71"),
        (1_955, "88a00599d2e9420adefa8336d0f0faa6b2cb32a1466e35d5744e54ed270c00db"),
        (1_937, "1726d3cb29343c56e645b6fe58642e604b6d3db52544f05da3049e4669bbef19"),
        (1_949, "b7f1b92f5976476c06a16f632b0cb715816a87bb6b3ae218dbdd2e198881f260"),
        (1_946, "5be6bdb3897e7c3cc678708a1e7df6acb90c1fc2972c20a44cdc544fd7b26de7"),
        (1_938, "b714e73b9f04cb36130247447943f7109243095ac1a29dc684cbd245e2f774b4"),
    )
    DESCRIPTION = "Compounds and whether they act against lung cancer cells; tags are kinds of atoms."
