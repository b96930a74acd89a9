"""eckart lora inspect: modules, scales, spectra, sizes relative to a base."""

import struct
import unittest

from support import ROOT, CommandTest, safetensors

GOLDEN = ROOT / "tests/golden/lora"
CONFIG = '{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q", "k"]}'


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


class Inspect(CommandTest):
    def adapter(self):
        """Of q the delta is 2 diag(3, 4), of k 2 diag(10, 1)."""
        key = "base_model.model.model.layers.0."
        self.write("adapter/adapter_config.json", CONFIG)
        self.write("adapter/adapter_model.safetensors", safetensors({
            key + "q.lora_A.weight": ("F32", [2, 2], floats(1, 0, 0, 1)),
            key + "q.lora_B.weight": ("F32", [2, 2], floats(3, 0, 0, 4)),
            key + "k.lora_A.weight": ("F32", [2, 2], floats(1, 0, 0, 1)),
            key + "k.lora_B.weight": ("F32", [2, 2], floats(10, 0, 0, 1))}))

    def base(self, **renamed):
        self.write("base/model.safetensors", safetensors({
            f"layers.0.{renamed.get('q', 'q')}.weight": ("F32", [2, 2], floats(0, 60, 80, 0)),
            "layers.0.k.weight": ("F32", [2, 2])}))

    def test_the_figures_are_those_of_the_deltas(self):
        self.adapter()
        found = self.json_of("lora", "inspect", "adapter")
        self.assertEqual((found["naming"], found["dtype"], found["parameters"], found["bytes"], found["n_spikes"]),
                         ("PEFT", "F32", 16, 64, 1))
        k, q = found["modules"]
        self.assertEqual((q["name"], q["rank"], q["alpha"], q["scale"]), ("model.layers.0.q", 2, 4, 2))
        for value, expected in zip(q["singular_values"], [8, 6]):
            self.assertAlmostEqual(value, expected, places=12)
        self.assertAlmostEqual(q["frobenius_norm"], 10, places=12)
        self.assertAlmostEqual(q["stable_rank"], 100 / 64, places=12)
        # exp(-(4/7 ln 4/7 + 3/7 ln 3/7))
        self.assertAlmostEqual(q["effective_rank"], 1.979626, places=6)
        self.assertEqual(q["energy_ranks"], {"50": 1, "90": 2, "99": 2})
        self.assertEqual((q["has_spike"], k["has_spike"]), (False, True))
        self.assertIsNone(q["relative_norm"])

    def test_sizes_are_relative_to_the_base(self):
        self.adapter()
        self.base()
        found = self.json_of("lora", "inspect", "adapter", "--base", "base")
        k, q = found["modules"]
        self.assertEqual(q["name"], "layers.0.q")  # as the base has it
        self.assertAlmostEqual(q["relative_norm"], 0.1, places=12)
        self.assertIsNone(k["relative_norm"])  # of a zero matrix

    def test_names_that_the_base_lacks_are_status_1(self):
        self.adapter()
        self.base(q="v")
        report = self.report_of("lora", "inspect", "adapter", "--base", "base")
        self.assertEqual(report["unmatched"][0]["name"], "model.layers.0.q")
        self.assertIn("layers.0.k", report["unmatched"][0]["closest"])
        result = self.run_eckart("lora", "inspect", "adapter", "--base", "base")
        self.assertEqual(result.returncode, 1)
        self.assertIn("warning  the base has no tensor for 1 of the adapter's names:\n"
                      "  model.layers.0.q (closest: layers.0.k, layers.0.v", result.stdout)

    def test_the_text(self):
        self.adapter()
        self.assertEqual(self.succeed("lora", "inspect", "adapter"), """\
adapter   PEFT: 2 modules of rank 2
16 parameters   64 B F32

  module            shape  rank  alpha  scale  norm  sigma_1  stable  effective  50/90/99%
  model.layers.0.k    2x2     2      4      2  20.1       20    1.01      1.356      1/1/1  spike
  model.layers.0.q    2x2     2      4      2    10        8   1.562       1.98      1/2/2

1 of 2 modules has a rank-one spike: sigma_1 is at least 5 times sigma_2
""")

    def test_experts_and_saved_tensors_are_listed(self):
        experts = self.json_of("lora", "inspect", GOLDEN / "experts")["modules"]
        self.assertEqual([(one["name"], one["n_experts"], one["d_out"], one["d_in"], len(one["singular_values"]))
                          for one in experts],
                         [("mlp.experts.down_proj", 3, 6, 5, 6), ("mlp.experts.gate_up_proj", 3, 10, 6, 6)])
        saved = self.json_of("lora", "inspect", GOLDEN / "modules_to_save")["saved"]
        self.assertEqual([one["name"] for one in saved], ["model.layers.0.input_layernorm.weight", "score.weight"])

    def test_copies_of_the_base_are_a_warning(self):
        said = self.succeed("lora", "inspect", GOLDEN / "embeddings")
        self.assertIn('warning  tensor "base_model.model.lm_head.base_layer.weight": it is a copy of the base\'s own '
                      "tensor and is left out\n", said)

    def test_an_adapter_that_does_nothing_has_no_ranks(self):
        self.write("adapter/adapter_config.json", CONFIG)
        self.write("adapter/adapter_model.safetensors", safetensors({
            "base_model.model.q.lora_A.weight": ("F32", [2, 2], floats(1, 2, 3, 4)),
            "base_model.model.q.lora_B.weight": ("F32", [2, 2])}))
        q = self.json_of("lora", "inspect", "adapter")["modules"][0]
        self.assertEqual((q["frobenius_norm"], q["stable_rank"], q["energy_ranks"], q["has_spike"]),
                         (0, None, None, False))

    def test_a_nan_is_named(self):
        self.write("adapter/adapter_config.json", CONFIG)
        self.write("adapter/adapter_model.safetensors", safetensors({
            "base_model.model.q.lora_A.weight": ("F32", [2, 2], floats(1, 2, float("nan"), 4)),
            "base_model.model.q.lora_B.weight": ("F32", [2, 2])}))
        self.assertIn('tensor "base_model.model.q.lora_A.weight" of adapter/adapter_model.safetensors has a NaN at '
                      "(1, 0), but an adapter's numbers must be finite", self.fail_with(1, "lora", "inspect", "adapter"))


if __name__ == "__main__":
    unittest.main()
