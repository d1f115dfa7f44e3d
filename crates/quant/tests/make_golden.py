#!/usr/bin/env python3
"""Makes tests/data/golden.bin: what the `gguf` Python package makes of random and extreme blocks.

    pip install numpy gguf==0.19.0 && python3 crates/quant/tests/make_golden.py

The file is a list of records, all integers little endian:
    kind u8 (0 dequantize: bytes -> f32; 1 quantize: f32 -> bytes), type id u32, input length u32, output length u32 (both in
    bytes), input, output.
F64 and the integers are not in the package; for them numpy's own conversion to float32 is the reference.
"""

import struct
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES

rng = np.random.default_rng(20261130)

# Offsets of the f16 scales in a block.
F16_SCALES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: [],
}
# Zero, minus zero, least subnormal, greatest subnormal, least normal, one, greatest, minus greatest, infinity, NaN.
EXTREME = np.array([0, 0x8000, 1, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0x7E00], np.uint16)
NUMPY = {T.F64: np.float64, T.I8: np.int8, T.I16: np.int16, T.I32: np.int32, T.I64: np.int64}


def blocks(ty):
    """Random blocks with plausible scales, then one block per extreme scale, then all ones and all zeros."""
    block_len, block_bytes = GGML_QUANT_SIZES[ty]
    # Super-blocks are long: a few are enough, and keep the file small.
    plain, extreme = (2, EXTREME[[2, 7, 8]]) if block_len == 256 else (4, EXTREME)
    out = rng.integers(0, 256, (plain + len(extreme) + 2, block_bytes), np.uint8)
    for offset in F16_SCALES[ty]:
        scales = rng.normal(0, 0.02, len(out)).astype(np.float16).view(np.uint16)
        scales[plain:-2] = rng.permutation(extreme) if offset == F16_SCALES[ty][-1] else extreme
        out[:, offset:offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    if ty == T.MXFP4:
        out[:, 0] = rng.integers(110, 130, len(out))
        out[plain:plain + 6, 0] = [0, 1, 2, 127, 254, 255]
    out[-2], out[-1] = 255, 0
    return out


def dense(ty):
    if ty in (T.F16, T.BF16):
        # Every exponent with a few mantissas.
        bits = np.concatenate([np.arange(0, 65536, 211), EXTREME]).astype(np.uint16)
        return bits.view(np.uint8).reshape(1, -1)
    if ty == T.F32:
        bits = rng.integers(0, 2**32, 48, np.uint32)
        return bits.view(np.uint8).reshape(1, -1)
    if ty == T.F64:
        values = np.concatenate([
            rng.normal(0, 1, 16), rng.normal(0, 1e-42, 16), rng.normal(0, 1e38, 16),
            # Ties between neighbouring f32 values, and one bit beside them.
            1 + np.array([1, 3, 5]) * 2.0**-24, np.nextafter(1 + np.array([1, 3, 5]) * 2.0**-24, 0),
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, 3.4028235677973366e38, 3.4028235677973362e38],
        ])
        return values.view(np.uint8).reshape(1, -1)
    info = np.iinfo(NUMPY[ty])
    edges = [0, 1, -1, info.min, info.max]
    if info.bits >= 32:
        # Beyond 2^24 not every integer is an f32: ties and their neighbours.
        edges += [sign * (2**k + d) for k in (24, 25, 30) for d in (-1, 1, 2, 3, 5, 6, 7) for sign in (1, -1)]
    if info.bits == 64:
        edges += [sign * (2**k + 2**(k - 24) + d) for k in (40, 62) for d in (-1, 0, 1) for sign in (1, -1)]
    values = np.concatenate([np.array(edges, NUMPY[ty]), rng.integers(info.min, info.max, 32, NUMPY[ty], endpoint=True)])
    return values.view(np.uint8).reshape(1, -1)


def floats(ty):
    """Values to quantize: normal blocks, outliers, ties, constants, tiny and huge ones."""
    n = 32
    rows = [rng.normal(0, s, n) for s in (1, 0.02, 1e-4, 1e-6, 300.0, 60000.0, 1e6)]
    outlier = rng.normal(0, 0.01, n)
    outlier[7] = -3
    rows += [outlier, -outlier, np.abs(rng.normal(0, 1, n)), np.zeros(n), -np.zeros(n), np.ones(n), np.full(n, -2.5)]
    rows += [np.linspace(-1, 1, n), np.linspace(-127, 127, n), np.arange(n) - 16, np.arange(n), np.tile([1.0, -1.0], n // 2)]
    halves = rng.integers(-126, 126, n) + 0.5
    halves[0] = 127
    rows += [halves, rng.integers(-8, 9, n) * 0.5]
    x = np.array(rows, np.float32)
    if ty in (T.F16, T.BF16):
        bits = np.concatenate([
            rng.integers(0, 2**32, 64, np.uint32),
            # Ties of bfloat16 and of half precision, and one bit beside them.
            np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x3F801000, 0x3F803000, 0x3F801001, 0x33000000, 0x33000001,
                      0x477FEFFF, 0x477FF000, 0x7F7FFFFF, 0x7F7F7FFF, 0x7F7F8000, 0x7F800000, 0xFF800000, 1, 0x80000001], np.uint32),
        ])
        bits = bits[(bits & 0x7FFFFFFF) <= 0x7F800000]  # no NaN
        x = np.concatenate([x.reshape(-1)[:256], bits.view(np.float32)]).reshape(1, -1)
    return x


def record(kind, ty, given, expected):
    given, expected = given.tobytes(), expected.tobytes()
    return struct.pack("<BIII", kind, int(ty), len(given), len(expected)) + given + expected


def main():
    out = b""
    with np.errstate(all="ignore"):
        for ty in [T.F32, T.F16, T.BF16, *NUMPY, *F16_SCALES]:
            if ty in NUMPY:
                given = dense(ty)
                expected = given.view(NUMPY[ty]).astype(np.float32)
            else:
                given = blocks(ty) if ty in F16_SCALES else dense(ty)
                expected = quants.dequantize(given, ty)
            assert expected.dtype == np.float32
            out += record(0, ty, given, expected)
        for ty in [T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]:
            given = floats(ty)
            out += record(1, ty, given, quants.quantize(given, ty))
    path = Path(__file__).parent / "data" / "golden.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(out)
    print(path, len(out), "bytes")


main()
