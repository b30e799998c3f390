"""The command that evaluates any system."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.io import Flag, SafeConsole, as_json, check_outputs, print_error, print_line
from regard.errors import OptionError


def evaluate(
    model: str,
    *,
    compare: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=True)] = (),
    mean: bool = False,
    plot: Path | None = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    overwrite: Flag = False,
    json: bool = False,
    device: str | None = None,
    trust: bool = False,
    options: Flag = False,
    **test_set: str,
) -> None:
    """Evaluate a model on a test set.

    The test set depends on the model. Translators: --source and --reference, or --world babel:en-fr; --gold adds the
    alignment error rate. Captioners: --captions and --images, or --world scenes. Image classifiers: --folder and
    --format. Document classifiers: --documents, or --world reviews. Readers: --file, or --world stories. Glimpse
    models: --folder with MNIST, or nothing. Memory machines: --lengths, or nothing. `regard evaluate MODEL --options`
    lists all options for a model.

    Parameters
    ----------
    model
        A shipped model (`regard models` lists them) or a model folder.
    compare
        More models of the same system to show side by side; for translators, with a significance test.
    mean
        Add the mean and standard deviation over the compared models, for runs that differ only in their seed.
    plot
        Save a plot of the score by input length to this file (.png, .svg, .pdf), for systems that measure it.
    output
        Save the outputs of the model to this file, one JSON object per example.
    overwrite
        Replace files that exist.
    json
        Print the report as JSON.
    device
        cpu, cuda or cuda:N; by default the GPU when there is one.
    trust
        Allow models that import custom code (package.module:Name).
    options
        List the options for this model instead of evaluating it.
    test_set
        The test set, and search options.
    """
    from regard.config import parse_values
    from regard.systems import registry
    from regard.systems.folder import find_model, kind_of
    from regard.systems.report import side_by_side
    from regard.systems.run import evaluate as run

    kind = kind_of(find_model(model))
    for name in compare:
        if (other := kind_of(find_model(name))) != kind:
            raise OptionError(f"--compare takes models of one system; {model} is of {kind!r}, and {name} of {other!r}.")
    found = registry.entry(kind)
    console = SafeConsole()
    if options:
        from regard.cli.listings import print_fields

        print_fields(found.test_set, prefix="--", title=f"Options of regard evaluate {model}")
        return
    if output is not None and compare:
        raise OptionError("--output keeps the answers of one model; leave out --compare.")
    values = parse_values(found.test_set, test_set, "--")
    check_outputs({"--output": output, "--plot": plot}, inputs=test_set.values(), overwrite=overwrite)
    reports = [run(name, device=device, trust=trust, **values) for name in (model, *compare)]
    if json:
        print_line(as_json([report.to_dict() for report in reports] if compare else reports[0].to_dict()))
    else:
        for report in reports:
            console.print(report)
    if compare and not json:
        console.print(side_by_side(reports, mean=mean))
        if found.compare:
            console.print(found.compare(reports))
    if output is not None and not reports[0].outputs:
        raise OptionError(f"{model} is scored without answers line by line, so that --output has nothing to keep.")
    if output is not None:
        print_error(f"Wrote {reports[0].save_outputs(output)}")
    if plot is not None:
        _plot(reports, plot)


def _plot(reports: "list", plot: Path) -> None:  # type: ignore[type-arg]
    from regard.viewing import length_curve, save

    curves = {report.model: getattr(report, "by_length", ()) for report in reports}
    curves = {name: curve for name, curve in curves.items() if curve}
    if not curves:
        raise OptionError("--plot draws a score by input length, which is not measured here.")
    print_error(f"Wrote {save(length_curve(curves), plot)}")
