"""A graph under construction: constants and nodes, each known by the name of what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.portable import ExportError

OPSET, ML_OPSET = 13, 3
"""Old enough for runtimes of phones and browsers, new enough for all that is needed."""

IR_VERSION = 8

DTYPES = {"float": np.float32, "double": np.float64, "int64": np.int64, "string": np.object_}


class Graph:
    """Nodes are added one after the other; every one returns the name of its output."""

    def __init__(self) -> None:
        self.helper, self.numpy_helper, self.proto = _onnx()
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.domains = {""}

    def input(self, name: str, kind: str, width: int) -> str:
        """An input of so many values a row."""
        self.inputs.append(self.helper.make_tensor_value_info(name, self._type(kind), ["N", width]))
        return name

    def output(self, source: str, name: str, kind: str, shape: Sequence[str | int]) -> None:
        """What a node gives, under a name of its own."""
        self.nodes.append(self.helper.make_node("Identity", [source], [name]))
        self.outputs.append(self.helper.make_tensor_value_info(name, self._type(kind), list(shape)))

    def constant(self, values: npt.ArrayLike, kind: str, name: str = "constant") -> str:
        """An array that comes with the graph; strings are objects."""
        called = f"crisptree/{name}/{len(self.constants)}"
        array = np.asarray(values, dtype=DTYPES[kind])
        if kind == "string":
            texts = [str(text).encode("utf-8", "surrogatepass") for text in array.reshape(-1)]
            tensor = self.helper.make_tensor(called, self._type(kind), array.shape, texts)
        else:
            tensor = self.numpy_helper.from_array(np.ascontiguousarray(array), called)
        self.constants[called] = tensor
        return called

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """One more node; the name of what it gives."""
        self.domains.add(domain)
        called = f"crisptree/{operator}/{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [called], domain=domain, **attributes))
        return called

    def cast(self, value: str, kind: str) -> str:
        """The value as another type."""
        return self.add("Cast", value, to=self._type(kind))

    def reshape(self, value: str, *shape: int) -> str:
        """The value in another shape; −1 is what is left, 0 stays."""
        return self.add("Reshape", value, self.constant(shape, "int64", "shape"))

    def written(self, name: str, said: str) -> bytes:
        """The graph as a file, checked."""
        import onnx

        graph = self.helper.make_graph(self.nodes, name, self.inputs, self.outputs, list(self.constants.values()), said)
        versions = {"": OPSET, "ai.onnx.ml": ML_OPSET}
        opsets = [self.helper.make_opsetid(domain, versions[domain]) for domain in sorted(self.domains)]
        model = self.helper.make_model(graph, opset_imports=opsets, producer_name="crisptree", doc_string=said)
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))

    def _type(self, kind: str) -> int:
        return int(getattr(self.proto, kind.upper()))


def _onnx() -> tuple[Any, Any, Any]:
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ExportError(
            "an export to ONNX needs the package onnx. Install it: pip install 'crisptree[onnx]'."
        ) from error
    return helper, numpy_helper, TensorProto
