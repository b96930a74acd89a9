#!/usr/bin/env python3
"""Makes tests/golden/safetensors/*.safetensors with the reference writer.

Needs the PyPI package safetensors (made with 0.8.0). Run it in the folder it stands in:
    python3 make_safetensors.py
Byte i of the tensors' data, counted over the file's tensors in the order given here, is i % 251.
"""
import ctypes

import safetensors

DTYPES = [
    ("bool", 8), ("float4_e2m1fn_x2", 4), ("uint8", 8), ("int8", 8), ("float8_e5m2", 8),
    ("float8_e4m3fn", 8), ("float8_e8m0fnu", 8), ("float8_e4m3fnuz", 8),
    ("float8_e5m2fnuz", 8), ("int16", 16), ("uint16", 16), ("float16", 16),
    ("bfloat16", 16), ("int32", 32), ("uint32", 32), ("float32", 32), ("complex64", 64),
    ("float64", 64), ("int64", 64), ("uint64", 64),
]


def tensors(entries, alive):
    made, at = {}, 0
    for name, dtype, shape in entries:
        count = 1
        for size in shape:
            count *= size
        bits = dict(DTYPES)[dtype]
        n = count * bits // 8
        data = bytes((at + i) % 251 for i in range(n))
        at += n
        # The packed dtype's shape counts pairs here, and elements in the file.
        given = shape[:-1] + [shape[-1] // 2] if bits == 4 else shape
        buffer = ctypes.create_string_buffer(data, max(n, 1))
        alive.append(buffer)
        made[name] = safetensors.TensorSpec(
            dtype=dtype, shape=given, data_ptr=ctypes.addressof(buffer), data_len=n)
    return made


def write(name, entries, metadata=None):
    alive = []
    content = safetensors.serialize(tensors(entries, alive), metadata=metadata)
    with open(f"safetensors/{name}.safetensors", "wb") as file:
        file.write(content)


write("empty", [])
write("metadata", [("w", "float32", [2, 3])], {"format": "pt"})
write("every_dtype", [(f"t{i:02}", dtype, [2, 3, 2]) for i, (dtype, _) in enumerate(DTYPES)])
write("shapes_and_names", [
    ("scalar", "float32", []), ("none", "float32", [0]), ("no_rows", "float32", [3, 0, 2]),
    ("layers.10.w", "float32", [1]), ("layers.2.w", "float32", [1]), ("Z", "float32", [1]),
    ("a", "float32", [1]), ("", "float32", [1]), ("é", "float32", [1]), ("\U0001f600", "float32", [1]),
    ('quote " slash \\ / bell \x07 back \b feed \f line \n return \r tab \t del \x7f', "int8", [3]),
    ("flags", "bool", [5]),
])
