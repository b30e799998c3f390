"""ONNX graphs of regard's parts: attention, encoders and decoders, written for one call per decoding step."""
