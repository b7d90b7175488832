"""The published text data sets, prepared once, where the raw files are at hand."""

import pytest


@pytest.fixture(scope="session")
def prepared_text(real_data, tmp_path_factory):
    """Prepares a data set from a folder of real data and gives the data folder."""
    root = tmp_path_factory.mktemp("text")

    def prepared_text(name, folder):
        from data import prepare

        prepare.prepare(name, raw_dir=real_data(folder), data_dir=root, report=lambda line: None)
        return str(root)

    return prepared_text
