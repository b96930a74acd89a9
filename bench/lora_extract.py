#!/usr/bin/python3
"""The speed and memory of `eckart lora extract` on a pair of the shape of Llama-3.2-1B.

usage: bench/lora_extract.py [--eckart PATH] [--folder FOLDER] [--layers N] [--rank R] [--runs N]

Makes a base (BF16, 2.5 GB; see lora_merge.py) and a tuned model whose every number has moved by some 5%,
and extracts in turns with what any method has to do at the least: reading both files and multiplying
each matrix's difference by a block of 42 columns twelve times, in NumPy (without NumPy only the memory is
looked at). Exit status 1 when the extraction takes more than three times as long or more than 1 GiB.
"""
import argparse
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import time

from lora_merge import count_of, make, tensors, timed, write

ROOT = pathlib.Path(__file__).resolve().parents[1]
MOST_TIMES = 3
MOST_MEMORY_MIB = 1024
COLUMNS, PRODUCTS = 42, 12


def make_tuned(folder, base, layers):
    """The base's numbers, each with a change, at the same places."""
    generator = random.Random(0)
    values = [generator.gauss(0, 0.02) for _ in range(1 << 20)]
    floats = struct.pack(f"<{len(values)}f", *(value + generator.gauss(0, 0.001) for value in values))
    halves = b"".join(floats[i + 2:i + 4] for i in range(0, len(floats), 4))
    tuned = folder / "tuned"
    tuned.mkdir()
    shutil.copy(base / "config.json", tuned)
    write(tuned / "model.safetensors", tensors(layers), "BF16", halves)
    return tuned


def least_work(numpy, base, tuned, layers):
    """Seconds of reading both files and multiplying each difference."""
    begin = time.monotonic()
    at = [8 + struct.unpack("<Q", path.open("rb").read(8))[0] for path in (base, tuned)]
    for name, shape in tensors(layers):
        pair = []
        for i, path in enumerate((base, tuned)):
            halves = numpy.fromfile(path, numpy.uint16, count_of(shape), offset=at[i])
            at[i] += 2 * halves.size
            pair.append((halves.astype(numpy.uint32) << 16).view(numpy.float32).reshape(shape))
        if "proj" not in name:
            continue
        difference = pair[1] - pair[0]
        x = numpy.ones((shape[1], COLUMNS), numpy.float32)
        for _ in range(PRODUCTS // 2):
            x = difference.T @ (difference @ x)
            x /= numpy.abs(x).max()
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eckart", type=pathlib.Path, default=ROOT / "build/release/eckart")
    parser.add_argument("--folder", help="where the files are made (6 GB; default: the system's temporary folder)")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    try:
        import numpy
    except ImportError:
        numpy = None
    times, least, memory = [], [], 0.0
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = pathlib.Path(temporary)
        base, _ = make(folder, options.layers, options.rank)
        tuned = make_tuned(folder, base, options.layers)
        for run in range(options.runs):
            if numpy is not None:
                least.append(least_work(numpy, base / "model.safetensors", tuned / "model.safetensors",
                                        options.layers))
            seconds, mib = timed([options.eckart, "lora", "extract", base, tuned, "--rank", options.rank,
                                  "--embeddings", "skip", "-o", folder / f"adapter{run}", "--quiet"])
            times.append(seconds)
            memory = max(memory, mib)
    print(f"extract {min(times):.2f} s, {memory:.0f} MiB (at most {MOST_MEMORY_MIB})")
    is_fast = True
    if least:
        ratio = min(times) / min(least)
        is_fast = ratio <= MOST_TIMES
        print(f"reading and {PRODUCTS} products {min(least):.2f} s: {ratio:.2f} times as long (at most {MOST_TIMES})")
    return 0 if is_fast and memory <= MOST_MEMORY_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
