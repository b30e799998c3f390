"""The signatures of regard are checked while the tests run: a wrong type or shape anywhere fails the test."""

from dataclasses import dataclass

import pytest
import torch
from helpers.signatures import checked, without_checks
from jaxtyping import Float
from torch import Tensor

from regard.attention.memory import Memory
from regard.data.tokenizer import Tokenizer
from regard.metrics.attention import entropy

Rows = Float[Tensor, "b n"] | None


@checked
@dataclass
class Pair:
    rows: Float[Tensor, "b n"]
    sums: Float[Tensor, "b"]


class Shapes:
    @checked
    def add(self, rows: Float[Tensor, "b n"], row: Float[Tensor, "n"]) -> Float[Tensor, "b n"]:
        return rows + row

    @checked
    @classmethod
    def turned(cls, rows: Float[Tensor, "b n"]) -> Float[Tensor, "n b"]:
        return rows

    @checked
    @property
    def name(self) -> str:
        return 1

    @checked
    @staticmethod
    def first(rows: Rows, row: Float[Tensor, "n"]) -> None:
        return None


TWO_BY_THREE, THREE, FIVE = torch.ones(2, 3), torch.ones(3), torch.ones(5)
WRONG = {
    "an argument": lambda: Shapes().add(TWO_BY_THREE, 3),
    "an axis": lambda: Shapes().add(TWO_BY_THREE, FIVE),
    "a dtype": lambda: Shapes().add(TWO_BY_THREE.long(), THREE),
    "the axes of a result": lambda: Shapes.turned(TWO_BY_THREE),
    "a property": lambda: Shapes().name,
    "an axis in an alias": lambda: Shapes.first(TWO_BY_THREE, FIVE),
    "a field": lambda: Pair(TWO_BY_THREE, THREE),
    "a function of regard": lambda: entropy([0.5, 0.5]),
    "a dataclass of regard": lambda: Memory(THREE, THREE),
    "a class method of regard": lambda: Tokenizer.load(3),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_its_signature_is_an_error(what):
    with pytest.raises(Exception, match="violates type hint"):
        WRONG[what]()


def test_what_fits_is_none():
    assert Shapes().add(TWO_BY_THREE, THREE).shape == (2, 3)
    assert Shapes.first(None, FIVE) is None
    assert Pair(TWO_BY_THREE, torch.ones(2)).sums.shape == (2,)


def test_the_checks_can_be_switched_off():
    with without_checks():
        assert Shapes.turned(TWO_BY_THREE).shape == (2, 3)
        assert Shapes().name == 1
