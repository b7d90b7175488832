"""One file per experiment family, each with `get_config(argument)`."""
