"""Every kernel compiles for a GPU, even without one; Triton's interpreter does not find all errors."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is there on Linux only")

PROGRAM = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from regard.kernels import additive_triton, cells_triton, layer_norm_triton, local_triton, lstmn_triton, steps_triton

NUMBERS = {"num_queries", "num_keys", "dim", "padded_dim", "padded_keys", "value_dim", "count", "size", "inputs_stride",
           "product_stride", "query_stride", "grad_weights_stride", "query_size", "key_size",
           "query_shares", "key_shares", "fraction_rows", "t", "first", "length", "columns"}
INSIDE = {"reciprocal", "two", "zeros"}
PAIRS = {"exp_query", "direction_pairs", "upstream"}
CONSTANTS = {
    "TILE": 64, "BLOCK": 64, "HAS_MASK": True, "FAST": True, "GIVEN": False, "QUERY_SHARE": 64, "KEY_SHARE": 128,
    "HAS_INPUTS": True, "HAS_GRAD_WEIGHTS": True, "KEEP": True, "SPLITS": 4, "ADDITIVE": True,
    "BLOCK_K": 32, "BLOCK_W": 32, "BLOCK_DIM": 128, "BLOCK_ROWS": 32,
}


def constants(kernel):
    # Sizes of features have one value.
    names = [parameter.name for parameter in kernel.params if parameter.is_constexpr]
    return {name: CONSTANTS.get(name, 1000) for name in names}


def kind(kernel, name):
    if name in constants(kernel):
        return "constexpr"
    if name in NUMBERS or name.startswith("mask_"):
        return "i32"
    if name == "mask":
        return "*i1"
    if name in ("scale", "window", "steepness") and kernel.__module__ != layer_norm_triton.__name__ or name == "eps":
        return "fp32"
    in_pairs = name in PAIRS and kernel.__name__ in ("score", "slopes")
    return "*i64" if in_pairs else "*fp32"


for module in (additive_triton, steps_triton, cells_triton, layer_norm_triton, local_triton, lstmn_triton):
    for name, kernel in vars(module).items():
        public = isinstance(kernel, triton.runtime.JITFunction) and not name.startswith("_")
        if not public or kernel.__module__ != module.__name__ or name in INSIDE:
            continue
        signature = {argument: kind(kernel, argument) for argument in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants(kernel))
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        print(module.__name__.split(".")[-1] + "." + name, len(made.asm["cubin"]))
"""


def test_every_kernel_compiles_for_a_hopper_gpu(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    compiled = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
    expected = {
        "additive_triton": "prepare score attend_few few_back_to_queries few_back_to_keys normalise normalise_back "
        "slopes gather",
        "cells_triton": "gru_gates gru_gates_back gru_blend gru_blend_back lstm lstm_back",
        "layer_norm_triton": "normalise normalise_back",
        "local_triton": "focus focus_back",
        "lstmn_triton": "look look_back write write_back",
        "steps_triton": "compare read read_back compare_back",
    }
    assert set(compiled) == {f"{module}.{name}" for module, names in expected.items() for name in names.split()}
    assert min(compiled.values()) > 0
