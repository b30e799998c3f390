"""Maximum or mean? And what does a convolution save? MNIST with one small network in five forms.

    python benchmarks/pooling.py FOLDER results.jsonl                             # of `regard data get mnist`
    python benchmarks/pooling.py FOLDER results.jsonl --images 5000 --epochs 8    # fewer training images
    python benchmarks/pooling.py - results.jsonl                                  # only print the table

The network is that of the ConvNetJS page: 8 and 16 filters of 5 x 5, each followed by ReLU and a pooling window of 2
and 3. `average` takes the mean of each window instead of its maximum, `stride` no pooling but convolutions that skip as
many pixels. `connected` is a network of two linear layers with as many parameters, `wide` one with 256 units. All have
the same training: Adam, one cycle of the learning rate, batches of 64, no augmentation. Test images are also shifted
by two pixels in each direction: how much does each form lose?
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from regard.data.labelled_images import read_mnist
from regard.encoders.image_networks import make_net

FORMS = ("max", "average", "stride", "connected", "wide")
SHIFTS = ((2, 0), (-2, 0), (0, 2), (0, -2))
BATCH, SIZE, CLASSES = 64, 28, 10


def build(form: str) -> nn.Module:
    """The network in one of its forms."""
    net = make_net("convnetjs_mnist", CLASSES, channels=1, size=SIZE)
    if form == "max":
        return net
    if form == "average":
        net.features = nn.Sequential(
            *(nn.AvgPool2d(each.kernel_size) if isinstance(each, nn.MaxPool2d) else each for each in net.features)
        )
        return net
    if form == "stride":
        first, second = (each for each in net.features if isinstance(each, nn.Conv2d))
        # With these paddings the maps have the sizes of the pooled ones: 14 and 4.
        first.stride, second.stride, second.padding = (2, 2), (3, 3), (1, 1)
        net.features = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        return net
    budget = sum(each.numel() for each in net.parameters())
    units = 256 if form == "wide" else round((budget - CLASSES) / (SIZE * SIZE + 1 + CLASSES))
    return nn.Sequential(nn.Flatten(), nn.Linear(SIZE * SIZE, units), nn.ReLU(), nn.Linear(units, CLASSES))


def pixels(images: Tensor) -> Tensor:
    """Images as numbers around 0."""
    return images.float() / 127.5 - 1


def shifted(images: Tensor, down: int, right: int) -> Tensor:
    """Images moved by some pixels, with background where they were."""
    moved = torch.full_like(images, -1.0)
    target = (slice(max(0, down), SIZE + min(0, down)), slice(max(0, right), SIZE + min(0, right)))
    source = (slice(max(0, -down), SIZE + min(0, -down)), slice(max(0, -right), SIZE + min(0, -right)))
    moved[..., *target] = images[..., *source]
    return moved


@torch.inference_mode()
def accuracy(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images whose class is right, in percent."""
    net.eval()
    right = [net(part).argmax(-1).eq(truth) for part, truth in zip(images.split(1000), labels.split(1000), strict=True)]
    return 100 * torch.cat(right).float().mean().item()


def measure(form: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train one form with one seed and measure it."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    train, test = read_mnist(options.folder)
    chosen = torch.randperm(len(train.images))[: options.images or None]
    images, labels = (part[chosen].to(options.device) for part in (train.images, train.labels))
    net = build(form).to(options.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.003, options.epochs * -(-len(labels) // BATCH))
    for _ in range(options.epochs):
        net.train()
        for rows in torch.randperm(len(labels), device=labels.device).split(BATCH):
            loss = functional.cross_entropy(net(pixels(images[rows])), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    judged, truth = pixels(test.images).to(options.device), test.labels.to(options.device)
    moved = [accuracy(net, shifted(judged, *shift), truth) for shift in SHIFTS]
    return {
        "form": form,
        "seed": seed,
        "images": len(labels),
        "epochs": options.epochs,
        "parameters": sum(each.numel() for each in net.parameters()),
        "accuracy": accuracy(net, judged, truth),
        "shifted": statistics.mean(moved),
        "seconds": round(time.perf_counter() - started, 1),
    }


def print_table(results: Path) -> None:
    """Mean and standard deviation over the seeds of each form."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    table = Table("form", "parameters", "accuracy, %", "shifted by 2 pixels", "seeds")
    for form in dict.fromkeys(row["form"] for row in rows):
        own = [row for row in rows if row["form"] == form]
        cells = [
            f"{statistics.mean(values):.2f} ± {statistics.pstdev(values):.2f}"
            for values in ([row[name] for row in own] for name in ("accuracy", "shifted"))
        ]
        table.add_row(form, f"{own[0]['parameters']:,}", *cells, str(len(own)))
    Console().print(table)


def main() -> None:
    """Train every form with every seed, append each result to a file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the folder of MNIST, or - to print the table alone")
    parser.add_argument("results", type=Path, help="file to append a line of JSON to for each training")
    parser.add_argument("--forms", nargs="*", choices=FORMS, default=FORMS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--images", type=int, default=0, help="training images; 0 for all")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.folder != "-":
        for form in options.forms:
            for seed in range(1, options.seeds + 1):
                result = measure(form, seed, options)
                print(json.dumps(result), flush=True)
                with options.results.open("a") as file:
                    file.write(json.dumps(result) + "\n")
    print_table(options.results)


if __name__ == "__main__":
    main()
