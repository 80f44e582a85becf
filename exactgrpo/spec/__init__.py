"""Files and problems: read a TOML or JSON file, validate it, and build the update that it describes."""

from exactgrpo.spec.build import load_problem, problem
from exactgrpo.spec.loading import load, loaded, loads
from exactgrpo.spec.reading import located
from exactgrpo.spec.schema import UpdateFile, json_schema

__all__ = ["UpdateFile", "json_schema", "load", "load_problem", "loaded", "loads", "located", "problem"]
