"""Models on a hub of Hugging Face: `push_to_hub` and `from_pretrained`, with a card that the hub can read."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.extras import require
from regard.files import write_text
from regard.systems import registry
from regard.systems.folder import NO_CARD

README = "README.md"
"""The model card of a hub: that of the model, after a header in YAML."""


def push(
    model: Any,
    repo_id: str,
    *,
    private: bool | None = None,
    branch: str | None = None,
    token: str | None = None,
    commit_message: str = "Push a model of regard",
) -> str:
    """Upload a model with its card; returns the address of the commit. See `System.push_to_hub`."""
    hub = require("The hub", "huggingface_hub")
    with tempfile.TemporaryDirectory() as place, _explained(repo_id, "be written to"):
        folder = Path(place) / "model"
        model.save(folder)
        write_text(folder / README, hub_card(model, repo_id.rpartition("/")[2]))
        api = hub.HfApi(token=token)
        created = api.create_repo(repo_id, private=private, exist_ok=True)
        if branch is not None:
            api.create_branch(created.repo_id, branch=branch, exist_ok=True)
        done = api.upload_folder(
            repo_id=created.repo_id, folder_path=folder, commit_message=commit_message, revision=branch
        )
    return str(done.commit_url)


def pull(repo_id: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """Download a model, unless the cache of the hub has it; returns its folder."""
    hub = require("The hub", "huggingface_hub")
    with _explained(repo_id, "be read from"):
        return Path(hub.snapshot_download(repo_id, revision=revision, token=token))


def hub_card(model: Any, name: str) -> str:
    """The card of a model after a YAML header: its library, task and tags, and its scores as a model-index."""
    hub = require("The hub", "huggingface_hub")
    declaration = registry.entry(model.kind).declaration
    measured = declaration.test_of(model.metrics) or "test set"
    results = [
        hub.EvalResult(
            task_type=declaration.task or model.kind,
            dataset_type="test",
            dataset_name=measured,
            metric_type=metric.removeprefix("test_"),
            metric_value=model.metrics[metric],
        )
        for metric in declaration.headline
        if metric in model.metrics
    ]
    header = hub.ModelCardData(
        library_name="regard",
        pipeline_tag=declaration.task or None,
        tags=["regard", "attention", model.kind],
        **({"model_name": name, "eval_results": results} if results else {}),
    )
    return f"---\n{header.to_yaml()}\n---\n\n{model.card or f'# {name}{chr(10)}{chr(10)}{NO_CARD}'}"


@contextmanager
def _explained(repo_id: str, what: str) -> Iterator[None]:
    """Turn what the hub refuses into an error that names the repository."""
    from huggingface_hub import constants, errors

    # The base class of all errors of its library for HTTP, which depends on its version.
    http: Any = next(base for base in errors.HfHubHTTPError.__mro__[1:] if base.__name__ == "HTTPError")
    try:
        yield
    except (http, errors.HFValidationError, errors.HfUriError, OSError) as error:
        raise ModelError(f"{repo_id} cannot {what} the hub, {constants.ENDPOINT}: {error}") from error
