#!/usr/bin/python3
"""The speed of `eckart lora merge` beside `cp` of the same files in the same run, and its memory.

usage: bench/lora_merge.py [--eckart PATH] [--folder FOLDER] [--layers N] [--rank R] [--runs N]

Makes a model of the shape of Llama-3.2-1B (16 layers, d_model 2048, BF16, 2.5 GB; random bytes whose
numbers are normal, as real ones) and an adapter of rank 16 on all linear matrices, and copies and merges in
turn, both from the page cache. Each is measured twice: to the page cache alone, as `cp` ends (the merge with
`--no-sync`), and to the disk (`cp` and then `sync` of the copy; the merge as it is by default). Exit status 1
when the merge is slower than 90% of the copy in either, or takes more than 512 MiB.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEAST_SPEED = 0.9
MOST_MEMORY_MIB = 512
D, KV, FF, VOCAB = 2048, 512, 8192, 128256


def tensors(layers):
    """Names and shapes of the model."""
    yield "model.embed_tokens.weight", (VOCAB, D)
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name, shape in (("self_attn.q_proj", (D, D)), ("self_attn.k_proj", (KV, D)), ("self_attn.v_proj", (KV, D)),
                            ("self_attn.o_proj", (D, D)), ("mlp.gate_proj", (FF, D)), ("mlp.up_proj", (FF, D)),
                            ("mlp.down_proj", (D, FF))):
            yield f"{at}{name}.weight", shape
        yield at + "input_layernorm.weight", (D,)
        yield at + "post_attention_layernorm.weight", (D,)
    yield "model.norm.weight", (D,)


def count_of(shape):
    return shape[0] * (shape[1] if len(shape) == 2 else 1)


def write(path, plan, dtype, block):
    """A safetensors file whose data repeat `block`, from another place for each piece."""
    size = {"BF16": 2, "F32": 4}[dtype]
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in plan:
        begin, end = end, end + count_of(shape) * size
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = random.Random(1)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while end > 0:
            start = generator.randrange(len(block) // 16) * 8
            piece = block[start:start + min(end, len(block) // 2)]
            file.write(piece)
            end -= len(piece)


def make(folder, layers, rank):
    generator = random.Random(0)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": D, "intermediate_size": FF,
              "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
              "vocab_size": VOCAB, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
              "max_position_embeddings": 131072}
    base, adapter = folder / "base", folder / "adapter"
    base.mkdir()
    adapter.mkdir()
    (base / "config.json").write_text(json.dumps(config))
    values = [generator.gauss(0, 0.02) for _ in range(1 << 20)]
    floats = struct.pack(f"<{len(values)}f", *values)
    halves = b"".join(floats[i + 2:i + 4] for i in range(0, len(floats), 4))
    write(base / "model.safetensors", tensors(layers), "BF16", halves)
    factors = []
    for name, shape in tensors(layers):
        if "proj" not in name:
            continue
        module = "base_model.model." + name.removesuffix(".weight")
        factors += [(module + ".lora_A.weight", (rank, shape[1])), (module + ".lora_B.weight", (shape[0], rank))]
    write(adapter / "adapter_model.safetensors", factors, "F32", floats)
    (adapter / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": rank, "lora_alpha": rank,
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}))
    return base, adapter


def timed(*commands):
    """Seconds that the commands take one after another, and the peak memory of the last in MiB."""
    start = time.monotonic()
    for command in commands:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{command[0]} failed")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def fresh(target):
    """Nothing of an earlier run left, in its place or on its way to the disk."""
    shutil.rmtree(target, ignore_errors=True)
    os.sync()
    return target


def compare(options, folder, base, adapter, to_disk):
    """Median seconds of copy and merge, and the merge's peak memory in MiB."""
    copies, merges, peak = [], [], 0.0
    target = folder / "result"
    size = (base / "model.safetensors").stat().st_size
    copying = [["cp", "-r", base, target]] + ([["sync", target / "model.safetensors"]] if to_disk else [])
    merging = [options.eckart, "lora", "merge", base, adapter, "-o", target, "--quiet"]
    for run in range(options.runs + 1):  # the first warms the page cache
        fresh(target)
        copy, _ = timed(*copying)
        fresh(target)
        merge, memory = timed(merging + ([] if to_disk else ["--no-sync"]))
        if run == 0:
            continue
        copies.append(copy)
        merges.append(merge)
        peak = max(peak, memory)
        print(f"cp {copy:.2f} s ({size / copy / 1e9:.2f} GB/s)   merge {merge:.2f} s   "
              f"speed of cp x {copy / merge:.2f}", flush=True)
    fresh(target)
    return sorted(copies)[len(copies) // 2], sorted(merges)[len(merges) // 2], peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eckart", type=pathlib.Path, default=ROOT / "build/release/eckart")
    parser.add_argument("--folder", help="where the files are made (7.5 GB; default: the system's temporary folder)")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eckart-merge-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        base, adapter = make(folder, options.layers, options.rank)
        size = (base / "model.safetensors").stat().st_size
        good = True
        for to_disk in (False, True):
            print("to the disk" if to_disk else "to the page cache")
            copy, merge, peak = compare(options, folder, base, adapter, to_disk)
            good = good and copy / merge >= LEAST_SPEED and peak <= MOST_MEMORY_MIB
            print(f"{size / 1e9:.2f} GB, rank {options.rank}: median of {options.runs}: cp {copy:.2f} s, "
                  f"merge {merge:.2f} s, {copy / merge:.2f} times the speed of cp; peak memory {peak:.0f} MiB")
    if not good:
        sys.exit(f"the merge must reach {LEAST_SPEED} of the speed of cp in {MOST_MEMORY_MIB} MiB")


if __name__ == "__main__":
    main()
