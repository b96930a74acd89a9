"""What the tests of the command share: running it, and making the files that it reads."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ECKART = pathlib.Path(os.environ.get("ECKART", ROOT / "build/release/eckart"))
EXAMPLE = ROOT / "examples/tiny-llama"
MINILM = ROOT / "models/all-MiniLM-L6-v2"

ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "U8": 1, "I64": 8, "I32": 4, "BOOL": 1}


def safetensors(tensors, metadata=None, fill=b"\0"):
    """Bytes of a safetensors file; `tensors` maps a name to (dtype, shape) or (dtype, shape, data)."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, *given) in tensors.items():
        count = 1
        for size in shape:
            count *= size
        values = given[0] if given else fill * (count * ITEM_BYTES[dtype])
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # as writers do, so that the tensors are aligned
    return struct.pack("<Q", len(text)) + text + data


class CommandTest(unittest.TestCase):
    """Runs the command in a folder of its own."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="eckart-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run_eckart(self, *arguments, **options):
        return subprocess.run([str(ECKART), *map(str, arguments)], cwd=self.folder, text=True, timeout=300,
                              capture_output=True, check=False, errors="surrogateescape", **options)

    def succeed(self, *arguments, **options):
        result = self.run_eckart(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def json_of(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json"))

    def report_of(self, *arguments):
        """The JSON of a command that may have found something wrong, which is status 1."""
        result = self.run_eckart(*arguments, "--json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def fail_with(self, status, *arguments, **options):
        """What a failing command writes to standard error; it must start with the fixed words."""
        result = self.run_eckart(*arguments, **options)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertTrue(result.stderr.startswith("eckart: error: "), result.stderr)
        return result.stderr


def llama_config(**changes):
    """A Llama config small enough to write its checkpoint in a test."""
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32, "hidden_size": 16,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24,
              "max_position_embeddings": 64, "tie_word_embeddings": False, "torch_dtype": "float32"}
    config.update(changes)
    return config


def llama_tensors(config, dtype="F32"):
    """(dtype, shape) of every tensor of such a checkpoint."""
    d, ff, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = d // config["num_attention_heads"] * config["num_key_value_heads"]
    tensors = {"model.embed_tokens.weight": (dtype, [vocab, d]), "model.norm.weight": (dtype, [d])}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        tensors |= {at + "self_attn.q_proj.weight": (dtype, [d, d]), at + "self_attn.k_proj.weight": (dtype, [kv, d]),
                    at + "self_attn.v_proj.weight": (dtype, [kv, d]), at + "self_attn.o_proj.weight": (dtype, [d, d]),
                    at + "mlp.gate_proj.weight": (dtype, [ff, d]), at + "mlp.up_proj.weight": (dtype, [ff, d]),
                    at + "mlp.down_proj.weight": (dtype, [d, ff]), at + "input_layernorm.weight": (dtype, [d]),
                    at + "post_attention_layernorm.weight": (dtype, [d])}
    if not config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = (dtype, [vocab, d])
    return tensors
