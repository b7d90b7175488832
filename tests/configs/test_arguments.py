"""The typed argument string after a config's name."""

import pytest

from configs import arguments
from errors import UserError

DEFAULTS = {"model": "vit", "layers": 2, "rate": 0.1, "smoke": False}


@pytest.mark.parametrize(
    "text, changed",
    [
        (None, {}),
        ("", {}),
        ("smoke", {"smoke": True}),
        ("model=cnn,layers=3", {"model": "cnn", "layers": 3}),
        ("rate=1e-3,smoke=true", {"rate": 0.001, "smoke": True}),
        ("smoke=false,model=", {"model": ""}),
        ("model=folder:/a=b", {"model": "folder:/a=b"}),
        ("smoke,", {"smoke": True}),
    ],
)
def test_values_take_the_type_of_the_default(text, changed):
    assert arguments.parse(text, **DEFAULTS) == DEFAULTS | changed


@pytest.mark.parametrize(
    "text, said",
    [
        ("modle=cnn", "unknown config argument 'modle'. Did you mean 'model'? Allowed: layers, model,"),
        ("smokes", "unknown config argument 'smokes'. Did you mean 'smoke'?"),
        ("layers=two", "config argument 'layers=two': layers needs a int"),
        ("layers=2.5", "config argument 'layers=2.5': layers needs a int"),
        ("smoke=maybe", "config argument 'smoke=maybe': smoke needs a bool"),
        ("model", "config argument 'model': model needs a str"),
    ],
)
def test_anything_else_is_one_line(text, said):
    with pytest.raises(UserError) as caught:
        arguments.parse(text, **DEFAULTS)
    assert str(caught.value).startswith(said)
