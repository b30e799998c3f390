"""Products of few rows with a matrix that all steps of a recurrence use, on a GPU that may use TF32.

Such a product takes about as long as reading the matrix. cuBLAS splits the sums among few programs, and adds up the
parts in a second kernel; here one kernel does both, with a size of blocks for few rows.
"""

import torch
from torch import Tensor

from regard.kernels.numerics import ceil_div, has_gpu_kernels, triton_kernels

MAX_ROWS = 128
"""Number of rows up to which the kernel is faster than cuBLAS."""


def prefers_few_rows(inputs: Tensor, weight: Tensor) -> bool:
    """Whether the kernel supports a product and is faster: in TF32, of few rows."""
    if inputs.ndim != 2 or not 0 < len(inputs) <= MAX_ROWS or inputs.dtype != torch.float32:
        return False
    is_aligned = all(size % 4 == 0 for size in weight.shape)
    return is_aligned and weight.dtype == torch.float32 and _may_use_tf32() and has_gpu_kernels(inputs)


class FewRows:
    """A matrix (n, k) by which inputs (b, k) and gradients (b, n) are multiplied; a copy is transposed once."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight.detach().contiguous()
        self.transposed: Tensor | None = None
        self.arrived: dict[int, Tensor] = {}

    def forward(self, inputs: Tensor, bias: Tensor | None) -> Tensor:
        """Compute inputs weight' + bias."""
        return self._product(inputs, self.weight, bias)

    def backward(self, grad: Tensor) -> Tensor:
        """Compute grad weight."""
        if self.transposed is None:
            # TF32 products read both factors along the axis of the sum.
            self.transposed = self.weight.mT.contiguous()
        return self._product(grad, self.transposed, None)

    def _product(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        inputs = inputs if inputs.stride(-1) == 1 and inputs.stride(0) % 4 == 0 else inputs.contiguous()
        (rows, size), columns = inputs.shape, len(weight)
        wide = columns > 2048
        block = 64 if wide else 32
        blocks = ceil_div(columns, block)
        splits = max(1, min(8, (130 if wide else 264) // blocks))
        output = inputs.new_empty(rows, columns)
        parts = inputs.new_empty(splits, rows, columns) if splits > 1 else output
        if columns not in self.arrived:
            self.arrived[columns] = torch.zeros(blocks, dtype=torch.int32, device=inputs.device)
        triton_kernels("products").product[(blocks, splits)](
            inputs,
            weight,
            output if bias is None else bias,
            output,
            parts,
            self.arrived[columns],
            rows,
            inputs.stride(0) // 4,
            SIZE=size,
            COLUMNS=columns,
            HAS_BIAS=bias is not None,
            SPLITS=splits,
            BLOCK_ROWS=max(16, 1 << (rows - 1).bit_length()),
            BLOCK_COLUMNS=block,
            BLOCK_SIZE=32,
            num_warps=8 if wide else 4,
            num_stages=4,
        )
        return output


def _may_use_tf32() -> bool:
    return bool(torch.backends.cuda.matmul.allow_tf32)
