"""What a seed holds out, draws and hands to training is pinned: runs of earlier versions resume on it.

Literals were taken from the first version; a change of any of them makes old runs resume on other examples.
"""

import io
import json
import wave

import numpy as np
import pytest

from data.graph import load as graphs
from data.graph.encoder import GraphEncoder
from data.image import load as images
from data.speech import load as speech
from data.speech.frames import FrameEncoder
from data.text import load as text
from data.text.vocabulary import Vocabulary


def sound(number):
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(np.full(300, number, "<i2").tobytes())
    return content.getvalue()


def labelled(folder, seed):
    (folder / "a.tsv").write_text("text\tlabel\n" + "".join(f"{n}\t{'xyz'[n % 3]}\n" for n in range(30)))
    divided = text.labelled(f"file:{folder / 'a.tsv'}", split_seed=seed)
    return [[int(tokens[0]) for tokens in split.tokens] for split in divided]


def tagged(folder, seed):
    (folder / "a.conll").write_text("".join(f"{n} X\n\n" for n in range(30)))
    divided = text.tagged(f"file:{folder / 'a.conll'}", fold=2, split_seed=seed)
    return [[int(tokens[0]) for tokens in split.tokens] for split in divided]


def parallel(folder, seed):
    (folder / "a.de").write_text("".join(f"{n // 2}\n" for n in range(40)))
    (folder / "a.en").write_text("".join(f"{n}\n" for n in range(40)))
    return [list(map(int, split.target)) for split in text.parallel(f"file:{folder / 'a'}", split_seed=seed)]


def questions(folder, seed):
    asked = {"question": "What?", "answers": [{"text": "A", "answer_start": 0}]}
    articles = [{"title": str(n), "paragraphs": [{"context": f"A {n}.", "qas": [asked]}]} for n in range(20)]
    (folder / "a.json").write_text(json.dumps({"data": articles}))
    divided = text.questions(f"file:{folder / 'a.json'}", split_seed=seed)
    return [[int(question.article) for question in split] for split in divided]


def recordings(folder, seed):
    """Whose test, and so all of its recordings, is by the names of the files."""
    for n in range(20):
        (folder / f"{n}.wav").write_bytes(sound(n))
    (folder / "labels.tsv").write_text("".join(f"{n}.wav\t{'xy'[n % 2]}\n" for n in range(20)))
    divided = speech.labelled(f"folder:{folder}", validation_fraction=0.2, split_seed=seed)
    return [[round(float(each.sound.samples[0]) * 2**15) for each in split] for split in divided]


def captions(folder, seed):
    from PIL import Image

    for n in range(20):
        Image.fromarray(np.full((2, 2), n, np.uint8)).save(folder / f"{n}.png")
    (folder / "captions.csv").write_text("file,caption\n" + "".join(f"{n}.png,a thing\n" for n in range(20)))
    divided = images.captioned(f"folder:{folder}", validation_fraction=0.2, train_size=9, split_seed=seed)
    return [split.images[:, 0, 0, 0].tolist() for split in divided]


def molecules(folder, seed):
    rows = "".join(f"{'C' * (n + 1)},{'ab'[n % 3 > 0]}\n" for n in range(20))
    (folder / "a.csv").write_text("smiles,target\n" + rows)
    divided = graphs.graphs(f"file:{folder / 'a.csv'}", split_seed=seed)
    return [[len(molecule.smiles) - 1 for molecule in split] for split in divided]


# The first six of train, all of validation, all of test.
HELD_OUT = {
    (labelled, 0): ([0, 1, 2, 3, 4, 5], [7, 20, 24], [9, 18, 27]),
    (labelled, 1): ([2, 3, 4, 5, 6, 7], [0, 1, 11], [9, 18, 27]),
    (tagged, 0): ([0, 1, 2, 3, 5, 6], [19, 22, 23], [4, 25, 26]),
    (tagged, 1): ([2, 3, 5, 6, 7, 8], [0, 1, 11], [4, 25, 26]),
    (parallel, 0): ([0, 1, 2, 3, 4, 5], [6, 7, 32, 33], [10, 11, 24, 25]),
    (parallel, 1): ([0, 1, 2, 3, 4, 5], [18, 19, 36, 37], [10, 11, 24, 25]),
    (questions, 0): ([0, 1, 2, 4, 5, 6], [8, 9], [3, 14]),
    (questions, 1): ([0, 2, 4, 5, 6, 7], [1, 11], [3, 14]),
    (recordings, 0): ([16, 7, 14, 5, 18, 15], [10, 13, 2], [0, 1, 3, 11, 12, 17]),
    (recordings, 1): ([6, 13, 8, 5, 18, 19], [4, 15, 2], [0, 1, 3, 11, 12, 17]),
    (captions, 0): ([10, 2, 16, 15, 4, 13], [11, 12, 1], [0, 6, 7, 8, 14, 18]),
    (captions, 1): ([12, 16, 4, 17, 10, 3], [2, 15, 1], [0, 6, 7, 8, 14, 18]),
    (molecules, 0): ([15, 8, 6, 13, 18, 4], [0, 7], [9, 12, 17, 19]),
    (molecules, 1): ([3, 14, 18, 19, 9, 10], [0, 1], [5, 6, 12, 13]),
}


@pytest.mark.parametrize(("divided", "seed"), HELD_OUT)
def test_which_examples_are_for_what(divided, seed, tmp_path):
    train, validation, test = divided(tmp_path, seed)
    assert (train[:6], validation, test) == HELD_OUT[divided, seed]
    assert not {*train} & {*validation}
    assert not {*train, *validation} & {*test}


def prints(divided):
    return [split.fingerprint[:16] for split in divided]


def test_numbers_of_embedded_sets():
    """The fingerprints that checkpoints hold."""
    assert prints(images.labelled("digits", train_size=100, split_seed=1)) == [
        "6977d6cfe8a1a85a",
        "62dd021dbe3a8b96",
        "30845c496ef4d896",
    ]
    assert prints(images.labelled("pointed_digits", train_size=10)) == [
        "a5c3f014599efb14",
        "92e35cfd6d417169",
        "e063983608d4fcff",
    ]
    tags = text.tagged("grammar", split_seed=1)
    assert prints(tags.map(Vocabulary.fit(tags.train).encode)) == [
        "69c92e1dee4b81d3",
        "25407aa335ffdaad",
        "ecea950f2bda2655",
    ]
    answers = text.labelled("grammar", split_seed=1)
    assert prints(answers.map(Vocabulary.fit(answers.train).encode)) == [
        "758487dacf879889",
        "034cdbf5038bedcb",
        "09adc74ae1b22510",
    ]
    tones = speech.labelled("tones", split_seed=1)
    assert prints(tones.map(FrameEncoder.fit(tones.train).encode)) == [
        "96557f3c92647ffd",
        "2c2fb316523be9c5",
        "daf3f37d60b2ac67",
    ]
    club = graphs.graphs("karate")
    assert prints(club.map(GraphEncoder.fit(club.train).encode)) == [
        "29800d912d8d39cc",
        "fc07013cbdc595bc",
        "2b92610cd2ca61c4",
    ]
