"""What the documents say is so: commands parse, files and links are there, no data set is left out."""

import importlib
import re
import shlex
from collections.abc import Iterator

import pytest

from configs import EXPERIMENT
from data import catalogue
from tests.command import ROOT
from training import config as configs

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"{x}/README.md" for x in ("attention", "data", "results")),
)
TEXTS = {page: (ROOT / page).read_text() for page in PAGES}
HELP = {f"configs/{path.name}": path.read_text() for path in sorted((ROOT / "configs").glob("[!_]*.py"))}

# What the recipes make, by what is there and of the same kind.
MADE = {
    "laplace": "cosine",
    "context_mean": "cnn",
    "summary_lstm": "rnn",
    "sums": "trec",
    "counts": "grammar",
}
PLACES = {"NAME", "KIND", "DIR", "PRESET", "TRAIN", "CLASS"}  # for the reader to fill in


def commands(text: str) -> Iterator[list[str]]:
    """The commands of code blocks and of code in the text, as words, without comments and redirections."""
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", rest)]
    lines += re.findall(r"^    (python (?:.*\\\n)*.*)", text, re.MULTILINE)  # of docstrings
    for line in lines:
        words = shlex.split(line.replace("\\\n", " ").replace("\\", ""), comments=True)
        cut = next((place for place, word in enumerate(words) if word in ("<", ">", "|")), len(words))
        if words and words[0] in ("python", "make"):
            yield words[:cut]


def told(start: str, texts: dict[str, str]) -> list:
    """The commands that begin so, each once, with where it stands."""
    found = {
        " ".join(words): pytest.param(words, id=f"{page}: {' '.join(words)}")
        for page, text in texts.items()
        for words in commands(text)
        if " ".join(words).startswith(start)
    }
    assert found
    return list(found.values())


@pytest.mark.parametrize("words", told("python train.py", TEXTS | HELP))
def test_a_command_that_trains_is_understood(words):
    """A field, word or argument that has another name by now."""
    for made, there in MADE.items():
        words = [re.sub(rf"\b{made}\b", there, word) for word in words]
    if "--help" not in words:
        config, flags = configs.parse(words[1:], ("workdir", "resume", "show?"), EXPERIMENT)
        assert flags
        assert (config is None) == ("resume" in flags)


@pytest.mark.parametrize("words", told("python -m", TEXTS))
def test_a_module_that_is_run_is_there(words):
    """A study, an option or a preset that has another name by now."""
    _, _, name, *options = words
    if PLACES & set(name.split(".")):
        return
    assert (ROOT / f"{name.replace('.', '/')}.py").is_file()
    if name == "data.prepare" and options[0] != "--help":
        assert MADE.get(options[0], options[0]) in {*catalogue.preparable(), "NAME"}
    if name.startswith("experiments."):
        from experiments.framework import command

        module = importlib.import_module(name)
        given = command.parser(module.STUDY).parse_args(options)
        assert given.preset in module.STUDY.presets


def test_every_target_of_make_is_there():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {words[1] for text in TEXTS.values() for words in commands(text) if words[0] == "make"}
    assert {"curves", "test", "setup"} <= named <= targets


def test_the_tests_that_make_names_are_there():
    named = re.findall(r"tests/[\w/]+\.py", (ROOT / "Makefile").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def anchors(text: str) -> set[str]:
    """What a link may point to in a page."""
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", TEXTS[page]):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            place = (ROOT / page).parent / path if path else ROOT / page
            assert place.exists(), link
            assert not anchor or anchor in anchors(place.read_text()), link


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_files_that_are_named_are_there(page):
    """A recipe that names what has moved."""
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", TEXTS[page])
    mine = {path for path in named if not (PLACES | {"runs"}) & set(re.split(r"[/._]", path))}
    assert [path for path in sorted(mine) if not (ROOT / path).exists()] == []


def test_the_readme_is_short():
    assert len(TEXTS["README.md"].splitlines()) <= 150


def test_every_data_set_is_in_the_table():
    names = {*catalogue.preparable(), *(name for sets in catalogue.GENERATED.values() for name in sets)}
    assert {name for name in names if f"`{name}`" not in TEXTS["data/README.md"]} == set()


def test_every_result_is_in_the_page_of_results():
    """A study whose figure or table nobody finds."""
    folders = {path.parent.relative_to(ROOT / "results") for path in (ROOT / "results").rglob("*.csv")}
    page = TEXTS["results/README.md"]
    assert {
        str(folder) for folder in folders if f"({folder}" not in page and f"({folder.parent})" not in page
    } == set()


@pytest.mark.parametrize("page", ["README.md", "attention/README.md"])
def test_code_runs(page):
    import jax.numpy as jnp

    (code,) = re.findall(r"^```python\n(.*?)^```", TEXTS[page], re.MULTILINE | re.DOTALL)
    T = S = 4
    q = k = v = jnp.ones((1, T, 2, 8))
    names = {"q": q, "k": k, "v": v, "T": T, "S": S}
    exec(code, names)
    assert names["out"].shape == (*names["q"].shape[:3], names["v"].shape[-1])
