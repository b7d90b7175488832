import pytest

import errors
from data import catalogue

STEMS = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")


def test_the_raw_formats(monkeypatch, one_line):
    multi30k, tatoeba = map(catalogue.builder, ("multi30k", "tatoeba_en_zh"))
    contents = {
        f"{stem}.{language}.gz": f"{language} {stem} \x85\n".encode()
        for stem in STEMS
        for language in ("de", "en", "fr")
    }
    monkeypatch.setattr(multi30k, "SPLITS", dict.fromkeys(multi30k.SPLITS, 1))
    found = multi30k.decode(contents)
    assert found["test"] == [
        {language: f"{language} test_2016_flickr \x85" for language in ("de", "en", "fr")}
    ]
    contents["val.fr.gz"] += b"\n"
    with pytest.raises(errors.RunError) as raised:
        multi30k.decode(contents)
    one_line(raised, "val.fr.gz: 2 lines, expected 1")
    assert tatoeba.decode({"cmn.txt": "Hi.\t嗨。\n".encode()}) == {"train": [{"en": "Hi.", "zh": "嗨。"}]}
    with pytest.raises(errors.RunError) as raised:
        tatoeba.decode({"cmn.txt": b"Hi.\ta\nHo.\n"})
    one_line(raised, "cmn.txt:2", "expected 2")


def test_multi30k_as_published(real_data):
    found = catalogue.builder("multi30k").read(real_data("multi30k"))
    assert {split: len(examples) for split, examples in found.items()} == {
        "train": 29_000,
        "validation": 1_014,
        "test": 1_000,
        "test_2017_flickr": 1_000,
        "test_2017_mscoco": 461,
        "test_2018_flickr": 1_071,
    }
    assert found["train"][0] == {
        "de": "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
        "en": "Two young, White males are outside near many bushes.",
        "fr": "Deux jeunes hommes blancs sont dehors près de buissons.",
    }
    assert found["test"][0]["en"] == "A man in an orange hat starring at something."


def test_tatoeba_as_published(real_data):
    (found,) = catalogue.builder("tatoeba_en_zh").read(real_data("tatoeba")).values()
    assert len(found) == 32_028
    assert len({record["en"] for record in found}) == 30_193
    assert found[0] == {"en": "Hi.", "zh": "嗨。"}
