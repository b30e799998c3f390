"""Each folder offers its public names lazily, and they are the ones that its stub lists."""

import subprocess
import sys
from importlib import import_module

import pytest

FOLDERS = ("attention", "layers", "encoders", "decoders", "metrics", "data", "training", "serving")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_name_of_a_folder_is_what_its_module_defines(folder):
    package = import_module(f"regard.{folder}")
    assert package.__all__
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name).__module__.startswith(f"regard.{folder}.")


def test_importing_the_folders_imports_nothing_heavy():
    code = f"import sys; {'; '.join(f'import regard.{folder}' for folder in FOLDERS)}; "
    heavy = "{'torch', 'numpy', 'matplotlib', 'lightning_fabric', 'sacrebleu'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", f"{code}print({heavy})"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
