"""What the tests of the commands that run a model share: small checkpoints with a tokenizer."""

import json
import shutil
import struct

from support import ROOT, CommandTest

GOLDEN = ROOT / "tests/golden/transformers"
WORDS = ["<unk>", "<s>", "</s>", "the", "cat", "sat", "on", "a", "mat", "dog"]


def word_tokenizer(first=0):
    """A tokenizer.json whose tokens are words, the ids of WORDS in order."""
    return json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "decoder": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "unk_token": "<unk>",
                  "vocab": {word: first + i for i, word in enumerate(WORDS)}}})


def read_safetensors(path):
    """Name to (dtype, shape, bytes)."""
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return {name: (entry["dtype"], entry["shape"], data[8 + n:][slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def floats_of(stored):
    dtype, _, data = stored
    assert dtype == "F32", dtype
    return struct.unpack(f"<{len(data) // 4}f", data)


class RunTest(CommandTest):
    def model(self, name="llama", tokenizer=True):
        """A copy of a golden model in the test's folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for file in ("config.json", "model.safetensors"):
            shutil.copyfile(GOLDEN / name / file, folder / file)
        if tokenizer:
            (folder / "tokenizer.json").write_text(word_tokenizer())
        return folder

    def expected(self, name):
        return read_safetensors(GOLDEN / name / "expected.safetensors")

    def ids_of(self, name):
        data = self.expected(name)["ids"][2]
        return list(struct.unpack(f"<{len(data) // 8}q", data))

    def assert_near(self, actual, expected, what=""):
        """Within 1e-5 of the largest element, as the states of float and double agree."""
        self.assertEqual(len(actual), len(expected), what)
        bound = 1e-5 * max(abs(x) for x in expected)
        worst = max(range(len(expected)), key=lambda i: abs(actual[i] - expected[i]))
        self.assertLessEqual(abs(actual[worst] - expected[worst]), bound,
                             f"{what}: element {worst} is {actual[worst]}, not {expected[worst]}")


def flat(nested):
    return [x for part in nested for x in flat(part)] if isinstance(nested, list) else [nested]


def comma(ids):
    return ",".join(map(str, ids))
