"""Builds the package: python tools/build.py OUT

OUT/source gets the sources with the version, and OUT the wheel and the source
archive. The same commit gives the same bytes if SOURCE_DATE_EPOCH is set."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from flit_core import buildapi  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent


def prepare(source: Path, version: str) -> None:
    """Makes a directory with everything that goes into the source archive."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copyfile(HERE / name, source / name)
    package = source / "src" / "animalstore"
    shutil.copytree(HERE / "src" / "animalstore", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "_version.py").write_text(f'__version__ = "{version}"\n', "utf-8")


def pep440(version: str) -> str:
    """Returns a version of the product in the form of Python: 1.0.0-dev becomes
    1.0.0.dev0, with the commit as a local version."""
    number, _, commit = version.partition("+")
    number = number.replace("-dev", ".dev0")
    return f"{number}+{commit}" if commit else number


def main() -> None:
    parser = argparse.ArgumentParser(description="build the package")
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", default=(ROOT / "VERSION").read_text("utf-8").strip())
    args = parser.parse_args()
    out = args.out.resolve()
    source = out / "source"
    prepare(source, pep440(args.version))
    os.chdir(source)
    os.umask(0o022)
    print(out / buildapi.build_sdist(str(out)))
    print(out / buildapi.build_wheel(str(out)))


if __name__ == "__main__":
    main()
