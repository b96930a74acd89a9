"""eckart lora init: PiSSA and the way back."""

import json
import random
import struct
import unittest

from support import CommandTest, llama_config, llama_tensors, safetensors


class Init(CommandTest):
    def setUp(self):
        super().setUp()
        config = llama_config()
        tensors = {}
        numbers = random.Random(1)
        for name, (dtype, shape) in llama_tensors(config).items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            tensors[name] = (dtype, shape, struct.pack(f"<{count}f", *(numbers.gauss(0, 1) for _ in range(count))))
        self.write("base/config.json", json.dumps(config))
        self.write("base/model.safetensors", safetensors(tensors, {"format": "pt"}))
        self.write("base/tokenizer.json", "{}")

    def test_splits_the_layers_matrices_and_sums_back(self):
        found = self.json_of("lora", "init", "base", "--pissa", 2, "-o", "out")
        self.assertEqual(len(found["modules"]), 14)
        self.assertTrue(all(0 < one["energy"] < 1 for one in found["modules"]))
        config = json.loads((self.folder / "out/adapter/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["init_lora_weights"]), (2, 2, True))
        self.assertEqual(config["base_model_name_or_path"], "out/base")
        self.assertEqual(config["task_type"], "CAUSAL_LM")
        self.assertTrue((self.folder / "out/base/config.json").exists())
        self.assertTrue((self.folder / "out/base/tokenizer.json").exists())
        self.succeed("lora", "merge", "out/base", "out/adapter", "-o", "whole")
        difference = self.json_of("diff", "base", "whole", "--no-spectrum")
        self.assertLess(difference["relative"], 1e-6)
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()), ["adapter", "base"])

    def test_the_way_back_is_a_plain_adapter_of_the_original(self):
        self.succeed("lora", "init", "base", "--pissa", 2, "-o", "out")
        self.succeed("lora", "combine", "out/adapter", "--weights", "1.5", "-o", "trained")
        self.succeed("lora", "init", "base", "--plain", "trained", "--initial", "out/adapter", "-o", "plain")
        config = json.loads((self.folder / "plain/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["base_model_name_or_path"]), (4, "base"))
        self.succeed("lora", "merge", "base", "plain", "-o", "one")
        self.succeed("lora", "merge", "out/base", "trained", "-o", "two")
        self.assertLess(self.json_of("diff", "one", "two", "--no-spectrum")["relative"], 1e-6)

    def test_the_way_back_needs_the_base_that_it_is_for(self):
        self.succeed("lora", "init", "base", "--pissa", 2, "-o", "out")
        said = self.fail_with(1, "lora", "init", "nowhere", "--plain", "out/adapter", "--initial", "out/adapter", "-o", "no")
        self.assertIn("nowhere", said)
        self.write("other/model.safetensors", safetensors({"x.weight": ("F32", [1], bytes(4))}))
        said = self.fail_with(1, "lora", "init", "other", "--plain", "out/adapter", "--initial", "out/adapter", "-o", "no")
        self.assertIn("of out/adapter fits no tensor of other", said)
        self.assertFalse((self.folder / "no").exists())

    def test_chooses_by_patterns(self):
        found = self.json_of("lora", "init", "base", "--pissa", 2, "--include", "*mlp*", "--exclude", "*down*", "-o", "out")
        self.assertEqual({one["name"].split(".")[-1] for one in found["modules"]}, {"gate_proj", "up_proj"})
        self.assertIn("fits no matrix", self.fail_with(1, "lora", "init", "base", "--pissa", 2, "--include", "q", "-o", "no"))
        self.assertIn("a table whose rows are looked up",
                      self.fail_with(1, "lora", "init", "base", "--pissa", 2, "--include", "*embed*", "-o", "no"))
        self.assertIn("a rank up to 8 fits it", self.fail_with(1, "lora", "init", "base", "--pissa", 9, "-o", "no"))

    def test_wrong_usage(self):
        for options in ([], ["--pissa", "0"], ["--plain", "x"], ["--initial", "x"], ["--pissa", "1", "--plain", "x", "--initial", "y"],
                        ["--plain", "x", "--initial", "y", "--include", "z"]):
            with self.subTest(options=options):
                self.fail_with(2, "lora", "init", "base", *options, "-o", "out")


if __name__ == "__main__":
    unittest.main()
