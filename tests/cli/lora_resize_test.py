"""eckart lora resize: ranks, budgets, reports, what it refuses."""

import json
import shutil
import struct
import unittest

from support import ROOT, CommandTest, safetensors

GOLDEN = ROOT / "tests/golden/lora"


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


class AdapterTest(CommandTest):
    def adapter(self, name, factors, **config):
        """A PEFT folder; `factors` maps a module to (rows of b, rows of a)."""
        tensors, rank = {}, 0
        for module, (b, a) in factors.items():
            rank = len(a)
            key = f"base_model.model.{module}."
            tensors[key + "lora_A.weight"] = ("F32", [rank, len(a[0])], floats(*sum(a, [])))
            tensors[key + "lora_B.weight"] = ("F32", [len(b), rank], floats(*sum(b, [])))
        self.write(f"{name}/adapter_model.safetensors", safetensors(tensors, {"format": "pt"}))
        self.write(f"{name}/adapter_config.json", json.dumps(
            {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": list(factors)} | config))

    def config_of(self, name):
        return json.loads((self.folder / name / "adapter_config.json").read_text())


class Resize(AdapterTest):
    def setUp(self):
        super().setUp()
        # x is diag(3, 4) after its scale of 1, y of rank one: [2 0; 0 0].
        self.adapter("a", {"layers.0.x": ([[3, 0], [0, 4]], [[1, 0], [0, 1]]),
                           "layers.1.x": ([[2, 0], [0, 0]], [[1, 0], [0, 1]])})

    def test_to_a_rank_with_a_report(self):
        found = self.json_of("lora", "resize", "a", "--rank", 1, "-o", "out")
        one = found["modules"][0]
        self.assertEqual((one["name"], one["rank_before"], one["rank_after"]), ("layers.0.x", 2, 1))
        self.assertAlmostEqual(one["energy_kept"], 16 / 25)
        self.assertAlmostEqual(one["relative_error"], 3 / 5, 6)
        self.assertAlmostEqual(found["energy_kept"], 20 / 29)
        self.assertEqual((found["parameters_before"], found["parameters_after"]), (16, 8))
        config = self.config_of("out")
        self.assertEqual((config["r"], config["lora_alpha"], config["use_rslora"]), (1, 1, False))
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()),
                         ["adapter_config.json", "adapter_model.safetensors"])

    def test_by_energy_error_and_budget(self):
        for options, ranks in ((["--energy", "0.64"], [1, 1]), (["--energy", "0.65"], [2, 1]), (["--error", "0.59"], [2, 1]),
                               (["--error", "0.61"], [1, 1]), (["--budget", "8"], [2, 0]), (["--error", "0.1", "--max-rank", "1"], [1, 1])):
            with self.subTest(options=options):
                found = self.json_of("lora", "resize", "a", *options, "-o", "out")
                self.assertEqual([one["rank_after"] for one in found["modules"]], ranks)
                shutil.rmtree(self.folder / "out")

    def test_a_budget_in_bytes_holds_for_the_whole_file(self):
        for budget, ranks in ((604, [2, 1]), (603, [2, 0])):
            with self.subTest(budget=budget):
                found = self.json_of("lora", "resize", "a", "--budget", f"{budget}B", "-o", "out")
                self.assertEqual([one["rank_after"] for one in found["modules"]], ranks)
                self.assertLessEqual((self.folder / "out/adapter_model.safetensors").stat().st_size, budget)
                shutil.rmtree(self.folder / "out")
        said = self.fail_with(1, "lora", "resize", "a", "--budget", "48B", "-o", "out")
        self.assertIn("the budget is 48 bytes, but the biases and saved tensors, which are carried as they are, take 0 "
                      "and the file's header up to 556", said)
        self.assertFalse((self.folder / "out").exists())

    def test_the_text_folds_layers_and_says_what_is_left_out(self):
        text = self.succeed("lora", "resize", "a", "--rank", 1, "-o", "out")
        self.assertIn("out   2 modules, 16 parameters -> 8   32 B F32\n", text)
        self.assertRegex(text, r"layers.\{0,1\}.x +2x2 +2 +1 +64%..100% +\S+\.\.0\.6000\n")
        text = self.succeed("lora", "resize", "a", "--budget", 8, "-o", "small")
        self.assertIn("left out  layers.1.x: the budget has no room for a rank of it; its norm is 2", text)

    def test_nothing_is_overwritten_and_nothing_stays(self):
        self.write("taken/file", "x")
        self.assertIn("taken", self.fail_with(1, "lora", "resize", "a", "--rank", 1, "-o", "taken"))
        self.fail_with(1, "lora", "resize", "a", "--budget", 3, "-o", "out")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a", "taken"])

    def test_dora_is_refused_with_a_way_out(self):
        said = self.fail_with(1, "lora", "resize", GOLDEN / "dora", "--rank", 1, "-o", "out")
        self.assertIn("is DoRA", said)
        self.assertIn("eckart lora merge", said)

    def test_kohyas_names_need_a_base(self):
        tensors = {"lora_unet_layers_0_x.lora_down.weight": ("F32", [1, 2], floats(1, 0)),
                   "lora_unet_layers_0_x.lora_up.weight": ("F32", [2, 1], floats(1, 0))}
        self.write("k.safetensors", safetensors(tensors))
        self.assertIn("--base BASE", self.fail_with(1, "lora", "resize", "k.safetensors", "--rank", 1, "-o", "out"))
        self.write("base.safetensors", safetensors({"layers.0.x.weight": ("F32", [2, 2])}))
        found = self.json_of("lora", "resize", "k.safetensors", "--base", "base.safetensors", "--rank", 1, "-o", "out")
        self.assertEqual(found["modules"][0]["name"], "layers.0.x")

    def test_wrong_usage(self):
        for options in ([], ["--max-rank", "2"], ["--rank", "0"], ["--energy", "2"], ["--error", "1"], ["--budget", "x"],
                        ["--budget", "1.5"], ["--rank", "1", "--energy", "0.5"]):
            with self.subTest(options=options):
                self.fail_with(2, "lora", "resize", "a", *options, "-o", "out")
        self.fail_with(2, "lora", "resize", "a", "--rank", 1)


if __name__ == "__main__":
    unittest.main()
