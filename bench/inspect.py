#!/usr/bin/python3
"""Time and memory of `eckart inspect` on checkpoints too large to read: only headers may be touched.

usage: bench/inspect.py [ECKART]      ECKART: the command (default: build/release/eckart)
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = 5
# What the checkpoint is, how it is made, and what inspecting it may take: seconds, MiB.
CASES = (
    ("Llama-3-70B, 141 GB, 30 shards, 723 tensors", [], 0.3, 64),
    ("index of 500,035 entries, 30 shards", ["--index-entries", "500000"], 2.0, 512),
)


def measure(command):
    """Wall time in seconds and largest resident memory in MiB of one run."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    return seconds, usage.ru_maxrss / 1024  # Linux counts in KiB


def main():
    eckart = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/eckart")
    print(f"{'eckart inspect':45}  {'best of ' + str(RUNS):>10}  {'at most':>8}  "
          f"{'most memory':>11}  {'at most':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, options, most_seconds, most_mib) in enumerate(CASES):
            folder = str(pathlib.Path(scratch, str(number)))
            subprocess.run([ROOT / "tools/make_sparse_checkpoint", folder, *options], check=True,
                           stdout=subprocess.DEVNULL)
            runs = [measure([eckart, "inspect", folder]) for _ in range(RUNS)]
            seconds, mib = min(run[0] for run in runs), max(run[1] for run in runs)
            kept = seconds <= most_seconds and mib <= most_mib
            print(f"{name:45}  {seconds:8.3f} s  {most_seconds:6.1f} s  {mib:7.1f} MiB  "
                  f"{most_mib:4} MiB  {'kept' if kept else 'NOT KEPT'}")


if __name__ == "__main__":
    main()
