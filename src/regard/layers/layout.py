"""Memory layout of parameters."""

from typing import TypeVar

import torch
from torch import nn

Model = TypeVar("Model", bound=nn.Module)


@torch.no_grad()
def by_columns(model: Model) -> Model:
    """Store the matrices of a model's linear layers column by column, on the CPU; return the model.

    Products with few rows, as in decoding, are then up to 1.8 times as fast, since the matrix need not be transposed
    first. Products with many rows, embeddings that share a matrix, and training are not slower.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear) and layer.weight.device.type == "cpu":
            layer.weight.data = layer.weight.mT.contiguous().mT
    return model


@torch.no_grad()
def by_rows(model: Model) -> Model:
    """Store all parameters in torch's default layout, as a new model has them; return the model.

    A product can round differently in another layout, so that trainings of equal parameters would differ.
    """
    for parameter in model.parameters():
        parameter.data = parameter.data.contiguous()
    return model
