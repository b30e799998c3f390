"""Fused and memory-lean operators, each beside the plain formula it must agree with."""
