"""A molecule written in SMILES as a graph of atoms and bonds, with the usual features, through RDKit."""

import functools
from types import ModuleType
from typing import Any

import numpy as np

import errors
from data.graph.types import Graph, Molecule

# Each list ends in whatever is none of the others.
_ELEMENTS = ("C", "N", "O", "S", "F", "Cl", "Br", "I", "P", "B", "Si", "Se", "Na", "H")
_CHARGES = (-1, 0, 1)
_DEGREES = (0, 1, 2, 3, 4)
_HYDROGENS = (0, 1, 2, 3, 4)
_HYBRIDISATIONS = ("SP", "SP2", "SP3")
_CHIRALITIES = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW")
_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_STEREO = ("STEREONONE", "STEREOZ", "STEREOE")

_LISTS = (_ELEMENTS, _DEGREES, _CHARGES, _HYDROGENS, _HYBRIDISATIONS, _CHIRALITIES)
ATOM_FEATURES = sum(len(known) + 1 for known in _LISTS) + 3
BOND_FEATURES = len(_BONDS) + 1 + len(_STEREO) + 1 + 2


def graph(molecule: Molecule) -> Graph:
    """Atoms as nodes and bonds as edges in both directions, hydrogens counted but left out.

    Features of an atom: element, degree, charge, hydrogens, hybridisation and chirality, one-hot; aromatic,
    in a ring, and mass / 100. Of a bond: order and stereochemistry, one-hot; conjugated, and in a ring.
    After Gilmer et al. (2017), "Neural message passing for quantum chemistry", and Yang et al. (2019),
    "Analyzing learned molecular representations for property prediction".

    Args:
        molecule: one that RDKit can read.

    Returns:
        `ATOM_FEATURES` for each node, `BOND_FEATURES` for each edge, and the molecule's target.

    Raises:
        errors.UserError: RDKit is not installed, or cannot read it.
    """
    parsed = _chemistry().MolFromSmiles(molecule.smiles) if molecule.smiles.strip() else None
    if parsed is None or not parsed.GetNumAtoms():
        raise errors.UserError(
            f"{molecule.where}: {molecule.smiles!r} is no SMILES of a molecule (RDKit cannot read it)"
        )
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _bond(bond)) for bond in parsed.GetBonds()]
    senders = [end for begin, other, _ in bonds for end in (begin, other)]
    receivers = [end for begin, other, _ in bonds for end in (other, begin)]
    features = [row for _, _, row in bonds for _ in range(2)]
    return Graph(
        features=np.array([_atom(atom) for atom in parsed.GetAtoms()], np.float32),
        senders=np.array(senders, np.int32),
        receivers=np.array(receivers, np.int32),
        edges=np.array(features, np.float32).reshape(-1, BOND_FEATURES),
        target=molecule.target,
        where=molecule.where,
    )


def _atom(atom: Any) -> list[float]:
    values = (
        atom.GetSymbol(),
        atom.GetDegree(),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(),
        str(atom.GetHybridization()),
        str(atom.GetChiralTag()),
    )
    row: list[float] = []
    for value, known in zip(values, _LISTS, strict=True):
        row += _one_hot(value, known)
    return [*row, float(atom.GetIsAromatic()), float(atom.IsInRing()), atom.GetMass() / 100]


def _bond(bond: Any) -> list[float]:
    return [
        *_one_hot(str(bond.GetBondType()), _BONDS),
        *_one_hot(str(bond.GetStereo()), _STEREO),
        float(bond.GetIsConjugated()),
        float(bond.IsInRing()),
    ]


def _one_hot(value: Any, known: tuple) -> list[float]:
    place = known.index(value) if value in known else len(known)
    return [float(place == other) for other in range(len(known) + 1)]


@functools.cache
def _chemistry() -> ModuleType:
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise errors.UserError(
            "molecules need RDKit, which is not installed: pip install 'attention[molecules]'"
        ) from None
    RDLogger.DisableLog("rdApp.*")  # what cannot be read is told in one line of ours
    return Chem
