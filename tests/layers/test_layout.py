"""The memory layout of parameters."""

import torch
from torch import nn

import regard
from regard.layers.layout import by_columns


def test_parameters_are_stored_by_columns_and_give_the_same_output():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 7, bias=False))
    inputs = torch.randn(5, 20)
    weights, before = [weight.clone() for weight in model.parameters()], model(inputs)
    assert by_columns(model) is model
    assert model[0].weight.stride() == (1, 30)
    assert model[2].weight.stride() == (1, 7)
    torch.testing.assert_close(list(model.parameters()), weights, rtol=0, atol=0)
    torch.testing.assert_close(model(inputs), before)


def test_a_parameter_that_two_layers_share_stays_shared():
    embedding, output = nn.Embedding(30, 8), nn.Linear(8, 30)
    output.weight = embedding.weight
    model = by_columns(nn.ModuleList([embedding, output]))
    assert model[1].weight is model[0].weight
    tokens = torch.tensor([3, 29, 3])
    torch.testing.assert_close(model[0](tokens), model[1].weight[tokens])


def test_a_loaded_model_is_stored_by_columns_and_can_be_trained_and_saved(tmp_path):
    model = regard.load("en-fr", device="cpu")
    assert model.decoder.word_layer.weight.stride(0) == 1
    source = torch.tensor([[5, 6, 2]])
    model.train().decoder(model.encode(source, torch.tensor([3])), source).features.sum().backward()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    optimizer.step()
    model.eval().save(tmp_path)
    again = regard.load(tmp_path, device="cpu")
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert again.translate("Good morning.").score == model.translate("Good morning.").score
