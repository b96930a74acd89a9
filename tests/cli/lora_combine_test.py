"""eckart lora combine: weights, copies, conflicts."""

import json
import struct
import unittest

from lora_resize_test import GOLDEN, AdapterTest
from support import safetensors


class Combine(AdapterTest):
    def setUp(self):
        super().setUp()
        self.adapter("a", {"x": ([[1], [0]], [[1, 0]])}, lora_alpha=2)
        self.adapter("b", {"x": ([[0, 0], [1, 0]], [[0, 1], [0, 0]]), "y": ([[1, 0]], [[1, 1], [0, 0]])}, use_rslora=True,
                     lora_alpha=4)

    def delta(self, name, module):
        """scale b a of a module of an adapter whose scale is 1, as lists."""
        data = (self.folder / name / "adapter_model.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])

        def matrix(key):
            entry = header[f"base_model.model.{module}.{key}.weight"]
            self.assertEqual(entry["dtype"], "F32")
            begin, end = entry["data_offsets"]
            rows, columns = entry["shape"]
            values = struct.unpack(f"<{rows * columns}f", data[8 + size + begin:8 + size + end])
            return [values[i * columns:(i + 1) * columns] for i in range(rows)]

        b, a = matrix("lora_B"), matrix("lora_A")
        return [[sum(x * row[j] for x, row in zip(line, a)) for j in range(len(a[0]))] for line in b]

    def test_is_the_weighted_sum(self):
        self.succeed("lora", "combine", "a", "b", "--weights", "0.5,-1", "-o", "out")
        # 0.5 x 2 at (0, 0), and -1 x 4 / sqrt(2) at (1, 1).
        for row, wanted in zip(self.delta("out", "x"), ([1, 0], [0, -4 / 2 ** 0.5])):
            for value, expected in zip(row, wanted):
                self.assertAlmostEqual(value, expected, 6)
        config = self.config_of("out")
        self.assertEqual((config["r"], config["lora_alpha"], config["use_rslora"]), (3, 3, False))
        self.assertEqual(sorted(config["target_modules"]), ["x", "y"])

    def test_of_one_is_a_copy(self):
        for name in ("rslora", "dora", "modules_to_save"):
            text = self.succeed("lora", "combine", GOLDEN / name, "-o", name)
            self.assertIn("copied: nothing of the adapter changes", text)
            for file in ("adapter_model.safetensors", "adapter_config.json"):
                self.assertEqual((self.folder / name / file).read_bytes(), (GOLDEN / name / file).read_bytes())

    def test_cut_to_rank(self):
        found = self.json_of("lora", "combine", "a", "b", "--rank", 1, "-o", "out")
        x = found["modules"][0]
        self.assertEqual((x["rank_before"], x["rank_after"]), (3, 1))
        self.assertAlmostEqual(x["energy_kept"], 8 / 12)

    def test_conflicts_are_named(self):
        for name, value in (("p", 1.0), ("q", 2.0)):
            self.adapter(name, {"x": ([[1], [0]], [[1, 0]])}, modules_to_save=["head"])
            tensors = {"base_model.model.x.lora_A.weight": ("F32", [1, 2]), "base_model.model.x.lora_B.weight": ("F32", [2, 1]),
                       "base_model.model.head.weight": ("F32", [1], struct.pack("<f", value))}
            self.write(f"{name}/adapter_model.safetensors", safetensors(tensors, {"format": "pt"}))
        said = self.fail_with(1, "lora", "combine", "p", "q", "-o", "out")
        self.assertIn("p and q both save head.weight whole", said)
        self.assertFalse((self.folder / "out").exists())

    def test_wrong_usage(self):
        self.assertIn("--weights has 1 weight, but there are 2 adapters",
                      self.fail_with(2, "lora", "combine", "a", "b", "--weights", "1", "-o", "out"))
        self.fail_with(2, "lora", "combine", "-o", "out")
        for weights in ("1,", ",1", "1,,2", "1,x", "1,inf", "1,nan", ","):
            said = self.fail_with(2, "lora", "combine", "a", "b", "--weights", weights, "-o", "out")
            self.assertIn(f"--weights is '{weights}', but must be numbers with commas between them", said)

    def test_of_an_adapter_with_weight_0_nothing_is_left(self):
        self.adapter("a", {"x": ([[1], [2]], [[1, 0]])})
        self.adapter("b", {"x": ([[1], [1]], [[0, 1]]), "y": ([[1], [1]], [[0, 1]])})
        found = self.json_of("lora", "combine", "a", "b", "--weights", "1,0", "-o", "out")
        self.assertEqual([(one["name"], one["rank_after"]) for one in found["modules"]], [("x", 1)])
        self.assertLess(found["relative_error"], 1e-15)
        self.assertIn("nothing is left: every weight is 0",
                      self.fail_with(1, "lora", "combine", "a", "b", "--weights", "0,0", "-o", "none"))

    def test_tensors_that_are_saved_whole_have_no_rank(self):
        self.adapter("s", {"x": ([[1], [0]], [[1, 0]])}, modules_to_save=["head"])
        self.write("s/adapter_model.safetensors",
                   safetensors({"base_model.model.head.weight": ("F32", [1], struct.pack("<f", 1))}, {"format": "pt"}))
        said = self.fail_with(1, "lora", "resize", "s", "--rank", 1, "-o", "out")
        self.assertIn("s has no factors, only tensors that it saves whole (modules_to_save)", said)


if __name__ == "__main__":
    unittest.main()
