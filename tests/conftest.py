"""Every signature of regard is checked while its tests run: shapes by jaxtyping, types by beartype."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch
from helpers.signatures import check_signatures, without_checks
from hypothesis import HealthCheck, settings

# Workers and the processes that they start share the cores, and the tensors here are small.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test depends on how fast the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if find_spec("triton"):
    # Before the checks: Triton reads the source of what it compiles.
    import regard.kernels.additive_triton
    import regard.kernels.cells_triton
    import regard.kernels.layer_norm_triton
    import regard.kernels.local_triton
    import regard.kernels.lstmn_triton
    import regard.kernels.numerics_triton
    import regard.kernels.steps_triton  # noqa: F401

check_signatures("regard")


@pytest.fixture(params=["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def _same_state_for_every_test() -> Iterator[None]:
    torch.manual_seed(20150519)
    yield
    left = {"threads": torch.get_num_threads(), "gradients": torch.is_grad_enabled()}
    torch.set_num_threads(1)
    torch.set_grad_enabled(True)
    assert left == {"threads": 1, "gradients": True}, "This test changed the state of torch for those after it."


@pytest.fixture
def as_a_user() -> Iterator[None]:
    """Without the signature checks, so that wrong input reaches the errors that users see."""
    with without_checks():
        yield


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without the signature checks, which take most of the time of small tensors: for trainings of many updates."""
    with without_checks():
        yield
