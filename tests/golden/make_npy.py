#!/usr/bin/env python3
"""Makes tests/golden/npy/*.npy and *.npz with NumPy.

Needs the PyPI packages numpy and ml_dtypes (made with 2.4.6 and 0.6.0). Run it in the folder it
stands in:
    python3 make_npy.py
"""
import io
import time
import types
import warnings
import zipfile

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")
# The archives hold no time of day, so that they are the same whenever they are made.
zipfile.time = types.SimpleNamespace(time=time.time, localtime=lambda _: (1980, 1, 1, 0, 0, 0))


class Pipe(io.RawIOBase):
    """Can't seek, so that sizes and CRC-32 of an archive's members come behind their bytes."""

    def __init__(self):
        self.content = b""

    def writable(self):
        return True

    def write(self, data):
        self.content += bytes(data)
        return len(data)


def save(name, array):
    np.save(f"npy/{name}.npy", array, allow_pickle=True)


ramp = np.arange(6).reshape(2, 3)
for dtype in ("<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8"):
    order = {"<": "le", ">": "be", "|": "le"}[dtype[0]]
    save(f"{dtype[1:]}_{order}", (ramp - 2).astype(dtype))
for dtype in ("|u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8"):
    order = {"<": "le", ">": "be", "|": "le"}[dtype[0]]
    save(f"{dtype[1:]}_{order}", (ramp + 250).astype(dtype))
save("b1", ramp % 2 == 1)
save("fortran", np.asfortranarray(ramp.astype("<f4")))
save("fortran_3d_be", np.asfortranarray(np.arange(24).reshape(2, 3, 4).astype(">i2")))
save("scalar", np.float32(1.5))
save("empty", np.zeros((0, 5), "<f8"))
for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
    save(name, np.array([[1.5, -2.0, 0.25]], getattr(ml_dtypes, name)))
save("objects", np.array([{"a": 1}, None], dtype=object))
save("records", np.zeros(2, [("a", "<f4"), ("b", "<i2", (2,))]))
save("text", np.array(["ab", "c"]))
save("dates", np.array(["2000-01-01"], "M8[ns]"))
save("complex64", np.array([1 + 2j], "<c8"))
save("complex128", np.array([1 + 2j], "<c16"))
save("long_double", np.zeros(1, np.longdouble))
save("written_f4", (np.arange(24).reshape(2, 3, 4) / 4).astype("<f4"))
save("written_f8", np.arange(5) / 3)
save("written_i8", np.array([-1, 2**53 + 1], "<i8"))
save("written_scalar", np.float64(-0.5))
for version in ((2, 0), (3, 0)):
    with open(f"npy/version_{version[0]}.npy", "wb") as file:
        np.lib.format.write_array(file, ramp.astype("<f4"), version=version)

# Headers of every length: 1 to 40 axes, the first empty, so that no data follows.
with open("npy/headers.bin", "wb") as file:
    for rank in range(1, 41):
        np.save(file, np.zeros((0,) + (1,) * (rank - 1), "<f4"))
    np.save(file, np.zeros((12345678901, 0), "<f4"))

arrays = {
    "w": ramp.astype("<f4") / 2,
    "layer/b": np.array([-1, 0, 1], "<i8"),
    "scalar": np.float64(2.5),
    "flags": np.array([True, False]),
    "fortran": np.asfortranarray(ramp.astype("<f8")),
    "zeros": np.zeros(2000, "<f4"),
}
np.savez("npy/stored.npz", **arrays)
np.savez_compressed("npy/deflated.npz", **arrays)
pipe = Pipe()
np.savez_compressed(pipe, **arrays)
with open("npy/streamed.npz", "wb") as file:
    file.write(pipe.content)
