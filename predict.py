"""Apply a trained run to new input: one line of output for every line of input, always.

    python predict.py --run=runs/pos < sentences.txt > tags.txt
    python predict.py --run=runs/trec --format=jsonl < questions.jsonl
    python predict.py --run=runs/sst2 --format=csv --column=review < reviews.csv > with_labels.csv
    python predict.py --run=runs/digits one.wav two.wav
    python predict.py --run=runs/m30k --beam=5 --align=looks < text.de > text.en

Lines may hold anything; an empty one has an empty answer. `jsonl` takes an object per line and gives one
with the answer and how sure it is; `csv` gives the table with a column "prediction" more. Files named on the
command line are recordings, images or graphs, whatever the run was trained on. The run's folder is all that
is needed: its config, what it knows of its data, and its checkpoint, all checked for damage.
"""

from training import launch

if __name__ == "__main__":
    launch.with_allocator()  # before JAX is imported

import csv
import functools
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import tasks
from configs import EXPERIMENT, loop_of
from errors import ArgumentParser, RunError, UserError, unknown
from tasks.task import Record, answers
from training import config as configs
from training import final, randomness
from training import inputs as run_inputs
from training.checkpoints import Checkpoints
from training.optimizer import OPTIMIZERS
from training.state import create, prediction_step

FORMATS = ("lines", "jsonl", "csv")
CHUNK = 1024  # records read before the first of them is answered

Answering = Callable[[Sequence[Record]], list[dict[str, Any]]]


class Predictor:
    """A trained run, ready to answer.

    Args:
        workdir: the run's folder.
        decoding: fields of `config.decoding` to change, of a run that makes sequences.

    Raises:
        UserError: the folder holds no run, or none with a checkpoint; or its answers are no sequences.
        RunError: what it holds is damaged, or does not belong together.
    """

    def __init__(self, workdir: str | Path, decoding: Mapping[str, Any] | None = None):
        workdir = Path(workdir)
        config = configs.load(workdir, EXPERIMENT)
        if decoding and "decoding" not in config:
            raise UserError(
                f"{workdir} makes no sequences, task {config.task}; not for it: {', '.join(decoding)}"
            )
        changes = {f"decoding.{name}": value for name, value in (decoding or {}).items()}
        config = configs.override(config, changes, EXPERIMENT, parsed=True)
        settings = loop_of(config)
        self.task = tasks.build(config)
        self.inputs = run_inputs.load(workdir)
        structure, template = create(
            functools.partial(self.task.make_model, self.inputs),
            randomness.key(settings.seed, "init"),
            OPTIMIZERS.build(settings.optimizer, "config.optimizer"),
        )
        folder = workdir / "checkpoints"
        if not folder.is_dir():
            raise UserError(f"{workdir} holds no checkpoint; train with --config.checkpoint_every set")
        checkpoints = Checkpoints(folder, max(2, settings.keep_checkpoints))
        found = checkpoints.restore(template, _warn)
        if found is None:
            raise UserError(f"{workdir} holds no checkpoint; train with --config.checkpoint_every set")
        state, about, best = found
        kept, trained = run_inputs.digest(self.inputs), str(about.get("inputs"))
        if kept != trained:
            raise RunError(
                f"{workdir / run_inputs.FILE} has the SHA-256 {kept[:12]}..., but the checkpoint was trained "
                f"with {trained[:12]}...; they do not belong together"
            )
        state = final.choose(settings.final, state, best, checkpoints, _warn)
        self._step = prediction_step(self.task, structure)
        self._arrays = state.params, state.statistics

    def __call__(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """The answer to each record, in order.

        Raises:
            UserError: a record can't be taken; it is named by its "where".
        """
        return answers(self.task, lambda batch: self._step(*self._arrays, batch), records, self.inputs)


def _warn(line: str) -> None:
    print(line, file=sys.stderr)


def lines(file: BinaryIO) -> Iterator[tuple[str, str]]:
    """Lines as they are counted everywhere, each with where it stands.

    Only a line feed ends a line: text may hold other characters that Python takes for line ends.

    Raises:
        UserError: a line is not UTF-8.
    """
    for number, raw in enumerate(file, 1):
        where = f"line {number} of the input"
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{where} is not UTF-8; convert it first, such as with iconv") from None
        yield where, text.removesuffix("\n").removesuffix("\r")


def objects(file: BinaryIO) -> Iterator[Record]:
    """The JSON objects of a file, one per line."""
    for where, text in lines(file):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise UserError(f"{where} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise UserError(f"{where} is {type(value).__name__}; a JSON object is needed")
        yield {**value, "where": where}


def answered(predictor: Answering, records: Iterable[Record]) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Records with their answers, some at a time."""
    waiting = iter(records)
    while chunk := list(islice(waiting, CHUNK)):
        yield from zip(chunk, predictor(chunk), strict=True)


class Drawn:
    """A predictor that writes the alignment of each answer into a folder, and leaves it out of the answer.

    Args:
        predictor: of a run whose `config.decoding.align` is set.
        folder: files are named by the number of the record, from 1.
    """

    def __init__(self, predictor: Answering, folder: Path):
        self._predictor, self._folder, self._before = predictor, folder, 0

    def __call__(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """The answer to each record, in order."""
        found = self._predictor(records)
        for number, answer in enumerate(found, self._before + 1):
            if "alignment" in answer:
                answer.pop("alignment").save(self._folder, f"{number:04}")
        self._before += len(records)
        return found


def table(predictor: Answering, file: BinaryIO, column: str) -> Iterator[str]:
    """The lines of a CSV table with a column "prediction" more."""
    text = io.StringIO("".join(line + "\n" for _, line in lines(file)), newline="")
    rows = csv.DictReader(text)
    names = list(rows.fieldnames or ())
    if column not in names:
        raise unknown("column", column, names)
    if "prediction" in names:
        raise UserError("the table already has a column 'prediction'; rename it first")
    records = ({"text": row[column] or "", "row": row, "where": f"row {i}"} for i, row in enumerate(rows, 2))
    yield _row([*names, "prediction"])
    for record, answer in answered(predictor, records):
        yield _row([*(record["row"][name] for name in names), answer["line"]])


def _row(values: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def output(predictor: Answering, kind: str, files: Sequence[str], column: str) -> Iterator[str]:
    """Every line to print."""
    if files:
        records: Iterable[Record] = ({"path": path, "where": path} for path in files)
        for record, answer in answered(predictor, records):
            said = {"path": record["path"], **_without_line(answer)}
            yield (
                json.dumps(said, ensure_ascii=False)
                if kind == "jsonl"
                else f"{record['path']}\t{answer['line']}"
            )
    elif kind == "csv":
        yield from table(predictor, sys.stdin.buffer, column)
    elif kind == "jsonl":
        for _, answer in answered(predictor, objects(sys.stdin.buffer)):
            yield json.dumps(_without_line(answer), ensure_ascii=False)
    else:
        records = ({"text": text, "where": where} for where, text in lines(sys.stdin.buffer))
        for _, answer in answered(predictor, records):
            yield answer["line"]


def _without_line(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "line"}


# Options that change a field of config.decoding.
DECODING = {
    "--beam": ("beam", int, "hypotheses kept; 1 is greedy"),
    "--length-penalty": ("length_penalty", float, "by how much longer ones are favoured"),
    "--best": ("num_best", int, "hypotheses given with --format=jsonl, beam at most"),
    "--temperature": ("temperature", float, "of sampling; 0: the likeliest"),
    "--seed": ("seed", int, "of sampling"),
}


def main() -> None:
    """The command."""
    parser = ArgumentParser(prog="predict.py", description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, metavar="DIR", help="the folder of a trained run")
    parser.add_argument("--format", default="lines", help=f"of the input: one of {', '.join(FORMATS)}")
    parser.add_argument("--column", default="text", help="the column of a csv table to answer")
    for option, (name, kind, text) in DECODING.items():
        parser.add_argument(option, dest=name, type=kind, help=f"of a run that makes sequences: {text}")
    parser.add_argument("--align", metavar="DIR", help="likewise: draw there what it attended to")
    parser.add_argument("files", nargs="*", metavar="FILE", help="recordings, images or graphs")
    given = parser.parse_args()
    if given.format not in FORMATS:
        raise unknown("format", given.format, FORMATS)
    if given.files and given.format == "csv":
        raise UserError("--format=csv reads a table from standard input and takes no files")
    decoding = {
        name: getattr(given, name) for name, *_ in DECODING.values() if getattr(given, name) is not None
    }
    launch.compilation_cache()
    predictor: Answering = Predictor(given.run, {**decoding, **({"align": True} if given.align else {})})
    if given.align:
        predictor = Drawn(predictor, Path(given.align))
    for line in output(predictor, given.format, given.files, given.column):
        print(line)


if __name__ == "__main__":
    launch.run(main)
