"""Whether the adapters that `eckart lora convert` writes load in PEFT and do what the original did.

usage: bench/peers/.venv/bin/python bench/peers/check_convert.py [ECKART]

Each adapter of tests/golden/lora is converted to kohya's or MLX's names and back to PEFT's, or to PEFT's at
once where the others can't hold it. PEFT loads the result onto the same base without a missing or an
unexpected key, and merges it. The merged weights must be those that the original gave, to float32's rounding:
4e-6 for entries below 4. Needs torch, transformers and peft.
"""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from peft import PeftModel
from safetensors.torch import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/lora"
sys.path.insert(0, str(GOLDEN))
from make_adapters import CASES  # noqa: E402

# What a name goes through on its way; PEFT's own files where only those can hold the adapter.
WAYS = {"default": ["peft", "kohya", "mlx"], "rslora": ["peft", "kohya", "mlx"], "patterns": ["peft", "kohya", "mlx"],
        "regex": ["peft", "kohya", "mlx"], "conv1d": ["peft", "kohya", "mlx"], "dora": ["peft", "mlx"],
        "embeddings": ["peft", "mlx"], "experts": ["peft", "mlx"], "convolutions": ["peft", "kohya"],
        "lora_bias": ["peft"], "modules_to_save": ["peft"], "trained_biases": ["peft"]}


def convert(eckart, source, to, target, *options):
    subprocess.run([eckart, "lora", "convert", source, "--to", to, "-o", target, "--quiet", *options], check=True,
                   stdout=subprocess.DEVNULL)
    return target


def through(eckart, name, way, folder):
    """The adapter in PEFT's files after its way through another tool's."""
    source = GOLDEN / name
    if way == "peft":
        return convert(eckart, source, "peft", folder / "peft")
    if way == "mlx":
        return convert(eckart, convert(eckart, source, "mlx", folder / "mlx"), "peft", folder / "peft")
    kohya = convert(eckart, source, "kohya", folder / "x.safetensors")
    return convert(eckart, kohya, "peft", folder / "peft", "--base", source / "base.safetensors")


def difference(name, adapter):
    with warnings.catch_warnings():
        # A missing or an unexpected key is a warning of PEFT's.
        warnings.filterwarnings("error", message=".*(missing adapter keys|unexpected).*")
        model = PeftModel.from_pretrained(CASES[name][0](), adapter)
    merged = model.merge_and_unload().state_dict()
    expected = load_file(GOLDEN / name / "merged.safetensors")
    return max((merged[key] - value).abs().max().item() for key, value in expected.items())


def main():
    eckart = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/eckart"
    failed = 0
    for name, ways in WAYS.items():
        for way in ways:
            with tempfile.TemporaryDirectory() as folder:
                worst = difference(name, through(eckart, name, way, pathlib.Path(folder)))
            is_right = worst <= 4e-6
            failed += not is_right
            print(f"{'right' if is_right else 'WRONG'}  {name:16} through {way:6} largest difference {worst:.2g}")
    return 1 if failed else 0


if __name__ == "__main__":
    torch.manual_seed(0)
    sys.exit(main())
