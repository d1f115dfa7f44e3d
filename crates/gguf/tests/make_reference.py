"""Writes tests/data/reference.gguf with the `gguf` Python package, or checks a file of ours with it.

    python3 make_reference.py write data/reference.gguf
    python3 make_reference.py check FILE     # prints what the package reads, one line for each key and tensor
"""

import sys

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter, quants
from gguf.constants import GGMLQuantizationType


def write(path):
    w = GGUFWriter(path, "llama")
    w.add_uint8("n.u8", 200)
    w.add_int8("n.i8", -1)
    w.add_uint16("n.u16", 60000)
    w.add_int16("n.i16", -2)
    w.add_uint32("n.u32", 4000000000)
    w.add_int32("n.i32", -3)
    w.add_float32("n.f32", 1.5)
    w.add_bool("n.bool", True)
    w.add_uint64("n.u64", 2**64 - 1)
    w.add_int64("n.i64", -(2**63))
    w.add_float64("n.f64", -0.25)
    w.add_string("n.text", "naïve 🦙")
    w.add_token_list(["<unk>", "<s>", "▁the", "é"])
    w.add_token_scores([0.0, 0.0, -1.5, -2.0])
    w.add_token_types([2, 3, 1, 1])
    w.add_array("n.bools", [True, False])
    w.add_custom_alignment(64)
    rows = (np.arange(96, dtype=np.float32) - 40.0).reshape(3, 32)
    w.add_tensor("f32.weight", rows)
    w.add_tensor("f16.weight", rows[:1].astype(np.float16))
    q8 = quants.quantize(rows, GGMLQuantizationType.Q8_0)
    w.add_tensor("q8_0.weight", q8, raw_dtype=GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def check(path):
    reader = GGUFReader(path)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF."):
            kinds = "/".join(GGUFValueType(t).name for t in field.types)
            print("key", name, kinds, repr(field.contents()))
    for t in reader.tensors:
        dims = ",".join(str(int(d)) for d in t.shape)
        total = int(np.frombuffer(t.data.tobytes(), np.uint8).sum(dtype=np.uint64))
        print("tensor", t.name, dims, t.tensor_type.name, t.n_bytes, total)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
