import ast
import subprocess
import sys
from pathlib import Path

import attention

FILES = sorted(Path(attention.__file__).parent.rglob("*.py"))


def test_imports_jax_numpy_and_jaxtyping_only():
    allowed = {"attention", "jax", "jaxtyping", "numpy"} | sys.stdlib_module_names
    assert len(FILES) > 5
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path.name}:{node.lineno}: relative import"
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in allowed, f"{path.name}:{node.lineno}: {name}"


def test_adds_little_to_importing_jax():
    # Processor time, which other programs on the machine hardly touch.
    code = "import time, jax; t = time.process_time(); import attention; print(time.process_time() - t)"
    root = Path(attention.__file__).parent.parent
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert float(run.stdout) < 0.3


def test_annotations_are_checked_in_these_tests():
    import jax.numpy as jnp
    import jaxtyping
    import pytest

    with pytest.raises(jaxtyping.TypeCheckError, match=r"scores\.dot"):
        attention.scores.dot(jnp.ones((2, 3, 4)), jnp.ones((2, 3, 5)))
