"""ESOL, FreeSolv, Lipophilicity, BBBP and BACE of MoleculeNet: a SMILES and what was measured, from CSV.

Stored as published; how a SMILES becomes a graph is a matter of the model (data/graph/smiles.py).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow_datasets as tfds

import errors
from data import raw_files
from data.builder import Builder, Record
from data.graph.readers import table


class MoleculeBuilder(Builder):
    """A TFDS builder of molecules with a number or a class each.

    Attributes:
        FILE: name, size and SHA-256 of the raw file.
        SMILES: the column of the molecule.
        TARGET: the column of what is asked.
        CLASSES: the word for each class, which the column counts from 0; none where it holds numbers.
        UNREADABLE: molecules whose SMILES breaks the rules of valence; nobody trains on them.
    """

    FILE: ClassVar[tuple[str, int, str]]
    SMILES: ClassVar[str] = "smiles"
    TARGET: ClassVar[str]
    CLASSES: ClassVar[tuple[str, ...]] = ()
    UNREADABLE: ClassVar[tuple[int, ...]] = ()
    SUPERVISED = ("smiles", "target")
    HOMEPAGE = "https://moleculenet.org"
    LICENSE = "MIT (the repository of MoleculeNet)."

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.RAW_FILES = (raw_files.RawFile(*cls.FILE),)
        cls.METADATA = {"unreadable": list(cls.UNREADABLE)}

    @classmethod
    def features(cls) -> dict[str, Any]:
        """A molecule and what is asked of it."""
        target = tfds.features.ClassLabel(names=cls.CLASSES) if cls.CLASSES else np.float32
        return {"smiles": tfds.features.Text(), "target": target}

    @classmethod
    def what(cls) -> str:
        """Molecules."""
        return "molecules"

    @classmethod
    def decode(cls, contents: Mapping[str, bytes]) -> dict[str, list[Record]]:
        """One record per row."""
        name = cls.FILE[0]
        records: list[Record] = []
        try:
            for row in table.rows(contents[name], name, (cls.SMILES, cls.TARGET)):
                smiles, value = row.values[cls.SMILES].strip(), table.number(row, cls.TARGET)
                if cls.CLASSES and value not in range(len(cls.CLASSES)):
                    allowed = f"0 to {len(cls.CLASSES) - 1}"
                    raise errors.RunError(f"{row.where}: class {value:g}, allowed are {allowed}")
                records.append({"smiles": smiles, "target": int(value) if cls.CLASSES else np.float32(value)})
        except errors.RunError:
            raise
        except errors.UserError as error:  # it is not the user who wrote this file
            raise errors.RunError(str(error)) from error
        return {"train": records}


class Esol(MoleculeBuilder):
    """TFDS builder of ESOL: solubility in water."""

    FILE = (
        "ESOL_delaney-processed.csv",
        96_699,
        "8c06a76f0c6487d29ab0f903e6a7a7139f189ab3c1178f159c8be8964602f189",
    )
    TARGET = "measured log solubility in mols per litre"
    SPLITS: ClassVar = {"train": 1_128}
    DESCRIPTION = "Small molecules and the logarithm of their solubility in water, mol per litre."
    CITATION = """@article{delaney2004esol,
  title   = {{ESOL}: Estimating Aqueous Solubility Directly from Molecular Structure},
  author  = {Delaney, John S.},
  journal = {Journal of Chemical Information and Computer Sciences},
  volume  = {44},
  year    = {2004}
}"""


class Freesolv(MoleculeBuilder):
    """TFDS builder of FreeSolv: free energy of hydration."""

    FILE = (
        "FreeSolv_SAMPL.csv",
        32_060,
        "ab5895d914ee87cb563bd7b9611e869527bba45bec6b014d34dc495a0f9dcb72",
    )
    TARGET = "expt"
    SPLITS: ClassVar = {"train": 642}
    DESCRIPTION = "Small molecules and their measured free energy of hydration, kcal per mol."
    CITATION = """@article{mobley2014freesolv,
  title   = {{FreeSolv}: a database of experimental and calculated hydration free energies},
  author  = {Mobley, David L. and Guthrie, J. Peter},
  journal = {Journal of Computer-Aided Molecular Design},
  volume  = {28},
  year    = {2014}
}"""


class Lipophilicity(MoleculeBuilder):
    """TFDS builder of Lipophilicity: how a molecule divides between octanol and water."""

    FILE = (
        "Lipophilicity.csv",
        282_606,
        "aed41590cb30609d51d8e08ad3ff06495a76e80e211358801f596b10da69bacd",
    )
    TARGET = "exp"
    SPLITS: ClassVar = {"train": 4_200}
    DESCRIPTION = "Drug-like molecules and log D between octanol and water at pH 7.4."
    CITATION = """@misc{hersey2015chembl,
  title  = {{ChEMBL} Deposited Data Set - {AZ} dataset},
  author = {Hersey, Anne},
  doi    = {10.6019/CHEMBL3301361},
  year   = {2015}
}"""


class Bbbp(MoleculeBuilder):
    """TFDS builder of BBBP: which molecules pass the blood-brain barrier."""

    FILE = ("BBBP.csv", 148_743, "d07a38487aeac5cee5508413e468043ef3097451d2a112701c2d60be9ec6b662")
    TARGET = "p_np"
    CLASSES = ("no", "yes")
    # A neutral nitrogen with four bonds: RDKit cannot read them.
    UNREADABLE = (59, 61, 391, 614, 642, 645, 646, 647, 648, 649, 685)
    SPLITS: ClassVar = {"train": 2_050}
    DESCRIPTION = "Molecules and whether they pass the blood-brain barrier."
    CITATION = """@article{martins2012bayesian,
  title   = {A Bayesian approach to in silico blood-brain barrier penetration modeling},
  author  = {Martins, Ines Filipa and Teixeira, Ana L. and Pinheiro, Luis and Falcao, Andre O.},
  journal = {Journal of Chemical Information and Modeling},
  volume  = {52},
  year    = {2012}
}"""


class Bace(MoleculeBuilder):
    """TFDS builder of BACE: which molecules inhibit human beta-secretase 1."""

    FILE = ("bace.csv", 3_897_770, "d36f089649984f7bfaa4589ccc3ae907b831780a01ccfd065a5b604939e1a5df")
    TARGET = "Class"
    CLASSES = ("no", "yes")
    SPLITS: ClassVar = {"train": 1_513}
    DESCRIPTION = "Molecules and whether they inhibit human beta-secretase 1."
    CITATION = """@article{subramanian2016computational,
  title   = {Computational Modeling of beta-Secretase 1 ({BACE-1}) Inhibitors Using Ligand Based Approaches},
  author  = {Subramanian, Govindan and Ramsundar, Bharath and Pande, Vijay and Denny, Rajiah Aldrin},
  journal = {Journal of Chemical Information and Modeling},
  volume  = {56},
  year    = {2016}
}"""
