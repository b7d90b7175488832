"""Tests that share compiled programs run in one process: two would compile each of them twice."""

import pytest

RUN = []


@pytest.mark.parametrize("number", range(4))
def test_some(number):
    RUN.append(number)


def test_all_of_a_file_run_in_one_process(request):
    others = [item for item in request.session.items if item.path == request.node.path]
    assert len(RUN) == len(others) - 1
