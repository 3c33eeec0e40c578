"""Converters for skl2onnx, which importing this module registers: whole Pipelines become one graph.

The graph of a model is that of ``export.onnx``, inlined; only the leaf numbers are left out.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import onnx
from onnx import helper, version_converter
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import FloatTensorType
from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

from crisptree.export.formats import find_format
from crisptree.export.onnx_graph import OPSET, ROWS, render
from crisptree.export.portable import ExportError, Portable

CLASSIFIERS, REGRESSORS = (
    tuple(f"Crisp{ensemble}{kind}" for ensemble in ("Tree", "Forest")) for kind in ("Classifier", "Regressor")
)
OPTIONS = {"nocl": [True, False], "zipmap": [True, False, "columns"], "output_class_labels": [False, True]}
"""Options of every classifier of skl2onnx."""


def calculate_classifier_shapes(operator: Any) -> None:
    """Set types and shapes of labels and probabilities; these are single precision for any input."""
    portable_of(operator)  # which refuses models of tables
    calculate_linear_classifier_output_shapes(operator)
    operator.outputs[1].type = FloatTensorType(operator.outputs[1].type.shape)


def calculate_regressor_shapes(operator: Any) -> None:
    """Set the type and shape of predicted means."""
    n_rows, n_outputs = operator.inputs[0].get_first_dimension(), portable_of(operator).n_outputs
    operator.outputs[0].type = FloatTensorType([n_rows, n_outputs])


def portable_of(operator: Any) -> Portable:
    """Return the plain values of a model, whose rows must be numbers."""
    portable = Portable.of(operator.raw_operator, "a conversion by skl2onnx")
    find_format("onnx").check(portable)
    if portable.encodes:
        raise ExportError(
            "a model within a converted Pipeline must take numbers; this one encodes tables itself. Encode them in the "
            "Pipeline, for example by OneHotEncoder in a ColumnTransformer, or use crisptree.export.onnx."
        )
    return portable


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a model's graph to the container."""
    model, target = onnx.load_from_string(render(portable_of(operator))), container.target_opset
    if target < OPSET:
        raise ExportError(f"`target_opset` must be at least {OPSET}; got {target}. Leave it out, or take a newer one.")
    if target > OPSET:
        model = version_converter.convert_version(model, target)
    versions = {entry.domain: entry.version for entry in model.opset_import}
    (rows,) = (variable.full_name for variable in operator.inputs)
    floats = scope.get_unique_variable_name("rows")
    container.add_node("Cast", [rows], [floats], name=scope.get_unique_operator_name("Cast"), to=onnx.TensorProto.FLOAT)
    outputs = [each.full_name for each in operator.outputs]
    public = ("label", "probabilities") if len(outputs) > 1 else ("variable",)
    renamed = {ROWS: floats, "": "", **dict(zip(public, outputs, strict=True))}

    def rename(name: str) -> str:
        return renamed.setdefault(name, scope.get_unique_variable_name(name))

    for tensor in model.graph.initializer:
        tensor.name = rename(tensor.name)
        container.initializers.append(tensor)
    for node in model.graph.node:
        if "leaf" not in node.output:
            container.add_node(
                node.op_type,
                [rename(name) for name in node.input],
                [rename(name) for name in node.output],
                op_domain=node.domain,
                op_version=versions[node.domain],
                name=scope.get_unique_operator_name(node.op_type),
                **{one.name: helper.get_attribute_value(one) for one in node.attribute},
            )


def register() -> None:
    """Register the converters of trees and forests."""
    estimators = import_module("crisptree")
    for name in CLASSIFIERS:
        model = getattr(estimators, name)
        update_registered_converter(model, name, calculate_classifier_shapes, convert, options=OPTIONS)
    for name in REGRESSORS:
        update_registered_converter(getattr(estimators, name), name, calculate_regressor_shapes, convert)


register()
