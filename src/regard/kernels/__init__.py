"""Kernels: fused and memory-efficient operators, each beside the plain formula that it must agree with."""
