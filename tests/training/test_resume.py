"""A run that is stopped, in whatever way, and goes on, ends where it would have ended."""

import io
import os
import re
import shutil
import signal
import time
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from rich.console import Console

import train
from configs import EXPERIMENT, image
from errors import RunError, UserError
from tests import command
from training import config as configs
from training import launch

OVERRIDES = {
    "duration": "60 steps",
    "checkpoint_every": "15 steps",
    "num_devices": "1",
    "model.patch_size": "4",
    "model.dim": "16",
    "model.num_layers": "1",
    "model.dropout_rate": "0.1",
    "encoding.augmentation": "shift",
}
SMOKE = (
    "train.py",
    "--config=configs/image.py:smoke",
    *(f"--config.{path}={value}" for path, value in OVERRIDES.items()),
)


def config():
    return configs.override(image.get_config("smoke"), OVERRIDES, EXPERIMENT)


def state(workdir: Path) -> dict:
    """All arrays of the newest checkpoint."""
    shelf = workdir.absolute() / "checkpoints" / "latest"
    step = max(int(folder.name) for folder in shelf.iterdir())
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(shelf / str(step) / "state")


def assert_same(one: Path, two: Path) -> None:
    """Equal to the last bit: parameters, statistics, moments, metrics and results."""
    first, second = state(one), state(two)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    for name in ("result.json", "metrics.jsonl", "metrics.csv"):
        assert (one / name).read_text() == (two / name).read_text(), name


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    """A run in this process, with which those that go on in it share their compiled steps."""
    workdir = tmp_path_factory.mktemp("runs") / "undisturbed"
    train.train(config(), workdir)
    return workdir


def refused(*arguments: str, error: type[Exception] = UserError) -> str:
    """What the command says that it does not carry out, tried in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(command.ROOT)
        patch.setattr("sys.argv", ["train.py", *arguments])
        patch.setattr(train.launch, "compilation_cache", lambda: None)
        with pytest.raises(error) as caught:
            train.main()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def resume(workdir: Path) -> str:
    """What a run that goes on in this process says."""
    shown = io.StringIO()
    train.train(configs.load(workdir, EXPERIMENT), workdir, console=Console(file=shown, width=500))
    return shown.getvalue()


def test_killed_run_resumes_bit_for_bit(undisturbed, tmp_path):
    """It is another process, whose programs are those of this one."""
    workdir = tmp_path / "killed"
    process = command.start(*SMOKE, f"--workdir={workdir}", flags=os.environ["XLA_FLAGS"])
    # Once its second checkpoint, amid an epoch, is there.
    seal = workdir / "checkpoints" / "latest" / "30" / "SHA256.json"
    deadline = time.monotonic() + 120
    while not seal.exists():
        assert time.monotonic() < deadline, process.communicate()
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert process.returncode == -signal.SIGKILL
    assert re.search(r"continuing from step (30|45) of 60", resume(workdir))
    assert_same(undisturbed, workdir)


def test_sigterm_writes_a_checkpoint_from_which_it_goes_on(undisturbed, tmp_path):
    workdir = tmp_path / "terminated"

    def stop(step):
        if step == 30:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(launch.Terminated) as caught:
        train.train(config(), workdir, listener=stop)
    assert caught.value.exit_code == 143
    stopped = re.match(
        r"stopped by SIGTERM at step (\d+); continue with: python train.py --re", str(caught.value)
    )
    assert stopped, caught.value
    assert f"continuing from step {stopped[1]} of 60" in resume(workdir)
    first, second = state(undisturbed), state(workdir)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def unfinished(undisturbed: Path, tmp_path: Path) -> Path:
    """A copy of the run as if it had been killed after its last checkpoint."""
    workdir = tmp_path / "copy"
    shutil.copytree(undisturbed, workdir)
    (workdir / "result.json").unlink()
    return workdir


def flip_a_bit(step: Path) -> Path:
    largest = max((f for f in step.rglob("*") if f.is_file()), key=lambda f: f.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    return largest


def test_a_flipped_bit_is_found_and_the_checkpoint_before_is_used(undisturbed, tmp_path):
    workdir = unfinished(undisturbed, tmp_path)
    file = flip_a_bit(workdir / "checkpoints" / "latest" / "60")
    output = resume(workdir)
    assert "checkpoint latest/60 is damaged" in output
    assert f"{file.name} has changed since it was written" in output
    assert "continuing from step 45 of 60" in output
    assert_same(undisturbed, workdir)


def test_when_every_checkpoint_is_damaged_it_says_so(undisturbed, tmp_path):
    workdir = unfinished(undisturbed, tmp_path)
    for step in (workdir / "checkpoints" / "latest").iterdir():
        flip_a_bit(step)
    assert "every checkpoint in" in refused(f"--resume={workdir}", error=RunError)


def test_changed_data_is_noticed(undisturbed, tmp_path):
    workdir = unfinished(undisturbed, tmp_path)
    config = workdir / "config.json"
    config.write_text(config.read_text().replace('"augmentation": "shift"', '"augmentation": "none"'))
    line = refused(f"--resume={workdir}")
    assert "cannot go on in the middle of other data: augmentation was 'shift' and is 'none'" in line


def test_another_config_in_the_same_folder_is_refused(undisturbed):
    line = refused(*SMOKE[1:], "--config.seed=1", f"--workdir={undisturbed}")
    assert "seed was 0, is now 1" in line


def test_nothing_in_the_run_folder_is_executed(undisturbed, tmp_path):
    workdir = unfinished(undisturbed, tmp_path)
    (workdir / "config.py").write_text("raise SystemExit('executed')")
    (workdir / "config.json").write_text("__import__('os')._exit(7)")
    assert "config.json is not a config" in refused(f"--resume={workdir}")


def test_a_full_disk_is_one_line_and_leaves_the_last_checkpoint(undisturbed, tmp_path):
    workdir = unfinished(undisturbed, tmp_path)
    shutil.rmtree(workdir / "checkpoints" / "latest" / "60")
    line = command.error_line("train.py", f"--resume={workdir}", code=1, prelude=command.NO_ROOM)
    assert "could not write" in line
    assert "continuing from step 45 of 60" in resume(workdir)
    assert state(workdir)["step"] == 60
