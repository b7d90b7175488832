"""SMILES as graphs, where RDKit is installed; and one line where it is not."""

import sys

import numpy as np
import pytest

import errors
from data.graph import smiles
from data.graph.types import Molecule


@pytest.fixture
def rdkit():
    pytest.importorskip("rdkit", reason="needs RDKit, extra 'molecules'")


def test_without_rdkit_the_extra_is_named(monkeypatch, one_line):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    smiles._chemistry.cache_clear()
    with pytest.raises(errors.UserError) as raised:
        smiles.graph(Molecule("C"))
    one_line(raised, "attention[molecules]")


def test_acetaldehyde(rdkit):
    graph = smiles.graph(Molecule("CC=O", target=(1.5,)))
    assert list(zip(graph.senders, graph.receivers, strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert graph.features.shape == (3, smiles.ATOM_FEATURES)
    assert graph.edges.shape == (4, smiles.BOND_FEATURES)
    # Elements C, C, O; one neighbour, two, one; no charge, which is the second of -1, 0, 1, other.
    assert graph.features[:, :3].tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert graph.features[:, 15:21].argmax(1).tolist() == [1, 2, 1]
    assert graph.features[:, 21:25].argmax(1).tolist() == [1, 1, 1]
    assert graph.features[:, 25:31].argmax(1).tolist() == [3, 1, 0]  # hydrogens
    np.testing.assert_allclose(graph.features[:, -1], [0.12011, 0.12011, 0.15999], rtol=1e-4)
    assert graph.edges[:, :2].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]  # single, double
    assert graph.target == (1.5,)


def test_benzene_is_aromatic_and_methane_has_no_bonds(rdkit):
    benzene = smiles.graph(Molecule("c1ccccc1"))
    assert benzene.features[:, -3:-1].tolist() == [[1, 1]] * 6  # aromatic, in a ring
    assert benzene.edges[:, 3].tolist() == [1] * 12
    methane = smiles.graph(Molecule("C"))
    assert methane.features.shape == (1, smiles.ATOM_FEATURES)
    assert methane.edges.shape == (0, smiles.BOND_FEATURES)


@pytest.mark.parametrize("text", ["", "C(", "CN(C)(C)(C)C", "Xx"])
def test_what_is_no_molecule(rdkit, one_line, text):
    with pytest.raises(errors.UserError) as raised:
        smiles.graph(Molecule(text, where="X.csv:7"))
    one_line(raised, "X.csv:7", repr(text))
