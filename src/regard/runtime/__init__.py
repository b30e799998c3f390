"""Runtime: exported models in ONNX Runtime, without torch."""
