"""ONNX: models as graphs of common operators, which runtimes of all kinds execute."""
