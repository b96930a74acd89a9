"""eckart trace."""

import json
import struct
import unittest
import zipfile

from run_support import RunTest, comma, floats_of


def read_npz(path):
    """Name to (shape, numbers) of an archive of float and int64 arrays."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            n = struct.unpack("<H", data[8:10])[0]
            header = eval(data[10:10 + n].decode())  # a literal that NumPy's format has
            kind = {"<f4": "f", "<i8": "q"}[header["descr"]]
            body = data[10 + n:]
            arrays[name.removesuffix(".npy")] = (header["shape"],
                                                 struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body))
    return arrays


class Trace(RunTest):
    def test_archive_has_the_states_that_transformers_has(self):
        for name in ("gpt2_scales", "qwen3", "gemma2", "gpt_neox_serial"):
            folder = self.model(name, tokenizer=False)
            self.succeed("trace", folder, "--ids", comma(self.ids_of(name)), "-o", "all.npz")
            arrays, expected = read_npz(self.folder / "all.npz"), self.expected(name)
            self.assertEqual(list(arrays["ids"][1]), self.ids_of(name))
            self.assert_near(arrays["embedding"][1], floats_of(expected["hidden.0"]), name)
            self.assert_near(arrays["layers.0.residual"][1], floats_of(expected["hidden.1"]), name)
            self.assert_near(arrays["final_norm"][1], floats_of(expected["hidden.2"]), name)
            self.assert_near(arrays["layers.1.attention_weights"][1], floats_of(expected["attention.1"]), name)
            self.assert_near(arrays["logits"][1], floats_of(expected["logits"]), name)

    def test_json_describes_every_intermediate(self):
        found = self.json_of("trace", self.model(), "--text", "the cat sat")
        rows = {row["name"]: row for row in found["intermediates"]}
        self.assertEqual(rows["layers.1.q"]["shape"], [4, 3, 6])
        self.assertEqual(rows["layers.1.k"]["shape"], [2, 3, 6])
        self.assertEqual(rows["layers.1.q"]["axes"], ["head", "token", "d_head"])
        self.assertEqual(rows["logits"]["shape"], [3, 48])
        for row in rows.values():
            self.assertLessEqual(row["least"], row["mean"])
            self.assertLessEqual(row["mean"], row["largest"])
            self.assertEqual((row["n_nan"], row["n_infinite"]), (0, 0))

    def test_the_lens_ends_at_what_the_model_predicts(self):
        found = self.json_of("trace", self.model(), "--text", "the cat sat")
        self.assertEqual([row["layers"] for row in found["logit_lens"]], [0, 1, 2])
        first = self.json_of("generate", self.model(), "--prompt", "the cat sat", "--temperature", "0",
                             "--max-tokens", "1")["tokens"][0]
        last = found["logit_lens"][2]["likeliest"][0]
        self.assertEqual((last["id"], last["token"]), (first["id"], first["token"]))
        self.assertAlmostEqual(last["probability"], first["probability"], places=5)

    def test_a_nan_is_located_and_fails(self):
        folder = self.model()
        path = folder / "model.safetensors"
        data = bytearray(path.read_bytes())
        n = struct.unpack("<Q", data[:8])[0]

        begin = json.loads(data[8:8 + n])["model.embed_tokens.weight"]["data_offsets"][0]
        # Element 2 of the row of `cat`, which is the second token.
        at = 8 + n + begin + 4 * (4 * 24 + 2)
        data[at:at + 4] = struct.pack("<f", float("nan"))
        path.write_bytes(bytes(data))
        result = self.run_eckart("trace", folder, "--text", "the cat sat")
        self.assertEqual(result.returncode, 1)
        self.assertIn("embedding is the first with 1 NaN, the first at [1, 2]", result.stdout)
        found = self.report_of("trace", folder, "--text", "the cat sat")
        self.assertEqual(found["intermediates"][0]["first_bad"], [1, 2])

    def test_an_encoder_without_head_has_no_lens(self):
        found = self.json_of("trace", self.model("bert_base"), "--text", "the cat")
        self.assertEqual(found["logit_lens"], [])
        self.assertEqual(found["intermediates"][-1]["name"], "layers.1.mlp_norm")

    def test_the_archive_is_an_npz(self):
        self.assertIn("can't be written to all.npy, but to an .npz file",
                      self.fail_with(2, "trace", self.model(), "--text", "the", "-o", "all.npy"))


if __name__ == "__main__":
    unittest.main()
