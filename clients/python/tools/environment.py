"""Makes a virtual environment in .venv with pinned packages:
python3 tools/environment.py requirements.txt ...

It needs only the standard library, and does nothing if everything is installed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def main() -> None:
    venv = HERE / ".venv"
    venv.mkdir(exist_ok=True)
    python = venv / "bin" / "python"
    with (venv / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests and a build may start at the same time
        wanted = sys.version + "".join((HERE / name).read_text("utf-8") for name in sys.argv[1:])
        stamp = venv / ("+".join(sys.argv[1:]) + ".installed")
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            subprocess.run([sys.executable, "-m", "venv", venv], check=True, stdout=sys.stderr)
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            for name in sys.argv[1:]:
                install += ["-r", str(HERE / name)]
            subprocess.run(install, check=True, stdout=sys.stderr)
            stamp.write_text(wanted, "utf-8")


if __name__ == "__main__":
    main()
