"""eckart diff: kinds, measures, prefixes, patterns."""

import json
import struct
import unittest

from support import CommandTest, llama_config, llama_tensors, safetensors


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


class Diff(CommandTest):
    def pair(self, before, after):
        self.write("a.safetensors", safetensors(before))
        self.write("b.safetensors", safetensors(after))

    def by_name(self, *options):
        return {one["name"]: one for one in self.report_of("diff", "a.safetensors", "b.safetensors", *options)["tensors"]}

    def test_tells_what_changed_and_by_how_much(self):
        self.pair({"w": ("F32", [2, 2], floats(3, 0, 0, 4)), "n": ("F32", [1], floats(1)), "old": ("F32", [1])},
                  {"w": ("F32", [2, 2], floats(3, .5, 0, 4)), "n": ("F32", [1], floats(1)), "new": ("F32", [3])})
        found = self.json_of("diff", "a.safetensors", "b.safetensors")
        self.assertEqual(found["counts"], {"changed": 1, "unchanged": 1, "reshaped": 0, "added": 1, "removed": 1})
        one = {t["name"]: t for t in found["tensors"]}["w"]
        self.assertAlmostEqual(one["relative"], 0.1)
        self.assertEqual((one["largest"], one["largest_at"], one["n_different"]), (.5, 1, 1))
        self.assertAlmostEqual(one["spectrum"]["spectral_norm"]["value"], .5, 6)
        self.assertEqual(one["spectrum"]["energy_ranks"]["90%"]["value"], 1)
        text = self.succeed("diff", "a.safetensors", "b.safetensors")
        self.assertIn("4 tensors: 1 changed, 1 unchanged, 1 added, 1 removed   the changed ones by 0.1000 of their norm", text)
        self.assertRegex(text, r"w +2x2 +F32 +0\.1000 +0\.5000 +0\.5000 +1 +1 +1 +1")
        self.assertRegex(text, r"unchanged +n +1, F32")
        self.assertRegex(text, r"added +new +3, F32")
        self.assertRegex(text, r"removed +old +1, F32")

    def test_layers_fold(self):
        config = llama_config()
        for side in "ab":
            self.write(f"{side}/config.json", json.dumps(config))
            self.write(f"{side}/model.safetensors", safetensors(llama_tensors(config)))
        text = self.succeed("diff", "a", "b")
        self.assertIn("21 tensors: 21 unchanged\n", text)
        self.assertRegex(text, r"unchanged  2 x model.layers.\{0,1\}.mlp.up_proj.weight  24x16, F32")

    def test_a_prefix_is_told(self):
        self.pair({"layers.0.w": ("F32", [1], floats(1))}, {"model.layers.0.w": ("F32", [1], floats(1))})
        text = self.succeed("diff", "a.safetensors", "b.safetensors")
        self.assertIn("names of b have model. in front", text)
        self.assertIn("1 tensor: 1 unchanged", text)

    def test_other_dtypes_of_equal_values_are_told(self):
        self.pair({"w": ("BF16", [2], struct.pack("<2H", 0x3F80, 0x4000))}, {"w": ("F32", [2], floats(1, 2))})
        self.assertRegex(self.succeed("diff", "a.safetensors", "b.safetensors"),
                         r"unchanged +w +2, BF16 -> F32, equal values")

    def test_scales_of_8_bit_tensors_are_multiplied_in(self):
        self.pair({"w.weight": ("F8_E4M3", [2, 2], bytes([0x38, 0x40, 0x38, 0x40])), "w.weight_scale_inv": ("F32", [1, 1], floats(2))},
                  {"w.weight": ("F32", [2, 2], floats(2, 4, 2, 5))})
        one = self.by_name()["w.weight"]
        self.assertEqual((one["kind"], one["largest"], one["n_different"]), ("changed", 1, 1))

    def test_a_nan_is_an_error_with_its_place(self):
        self.pair({"w": ("F32", [2, 2], floats(1, 1, 1, 1))}, {"w": ("F32", [2, 2], floats(1, 1, float("nan"), 1))})
        result = self.run_eckart("diff", "a.safetensors", "b.safetensors")
        self.assertEqual(result.returncode, 1)
        self.assertIn("w: b - a has 1 entry that is no number (first at [1, 0])", result.stdout)
        self.assertIsNone(self.by_name()["w"]["relative"])
        self.pair({"w": ("F32", [1024], floats(*[1] * 1024))}, {"w": ("F32", [1024], floats(*[float("nan")] * 1024))})
        self.assertIn("w: b - a has 1,024 entries that are no number (first at [0])",
                      self.run_eckart("diff", "a.safetensors", "b.safetensors").stdout)

    def test_unrelated_models_are_noted(self):
        self.pair({"w": ("F32", [2], floats(1, 2))}, {"w": ("F32", [2], floats(2, -1))})
        self.assertIn("hardly two states of one model", self.succeed("diff", "a.safetensors", "b.safetensors"))

    def test_patterns_and_no_spectrum(self):
        self.pair({"x": ("F32", [1, 1], floats(1)), "y": ("F32", [1, 1], floats(1)), "z": ("F32", [1])},
                  {"x": ("F32", [1, 1], floats(2)), "y": ("F32", [1, 1], floats(2)), "z": ("F32", [1])})
        self.assertEqual(list(self.by_name("--include", "x", "--include", "y", "--exclude", "y")), ["x"])
        self.assertIsNone(self.by_name("--no-spectrum")["x"]["spectrum"])
        said = self.fail_with(1, "diff", "a.safetensors", "b.safetensors", "--include", "q")
        self.assertIn("diff: 'q' fits no tensor of either checkpoint", said)
        self.fail_with(2, "diff", "a.safetensors", "b.safetensors", "--exact", "--no-spectrum")
        self.fail_with(2, "diff", "a.safetensors")


if __name__ == "__main__":
    unittest.main()
