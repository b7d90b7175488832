"""Every mechanism of the catalogue, for the identities: one module per family, each with `MECHANISMS`."""

import importlib
import pkgutil

MECHANISMS = [
    mechanism
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__))
    for mechanism in importlib.import_module(f"{__name__}.{module}").MECHANISMS
]
