"""eckart lora convert: names, scales, what is refused."""

import json
import struct
import unittest

from support import ROOT, CommandTest, safetensors

GOLDEN = ROOT / "tests/golden/lora"


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def read(path):
    """Name to (dtype, shape, bytes) of a safetensors file."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"],
                   data[8 + length + one["data_offsets"][0]:8 + length + one["data_offsets"][1]])
            for name, one in header.items()}


class Convert(CommandTest):
    def kohya(self, alpha=4.0):
        return self.write("x.safetensors", safetensors({
            "lora_te_model_layers_0_self_attn_q_proj.lora_down.weight": ("F32", [2, 3], floats(1, 2, 3, 4, 5, 6)),
            "lora_te_model_layers_0_self_attn_q_proj.lora_up.weight": ("F32", [1, 2], floats(7, 8)),
            "lora_te_model_layers_0_self_attn_q_proj.alpha": ("F32", [], floats(alpha))}))

    def test_kohya_to_peft_takes_the_dots_from_the_base(self):
        self.kohya()
        self.write("base/model.safetensors", safetensors({"model.layers.0.self_attn.q_proj.weight": ("F32", [1, 3])}))
        said = self.succeed("lora", "convert", "x.safetensors", "--to", "peft", "--base", "base", "-o", "out")
        self.assertEqual(said, "x.safetensors (kohya) -> out (PEFT)\n1 module, "
                         f"{(self.folder / 'out/adapter_model.safetensors').stat().st_size} B F32\n")
        tensors = read(self.folder / "out/adapter_model.safetensors")
        name = "base_model.model.model.layers.0.self_attn.q_proj"
        self.assertEqual(tensors[f"{name}.lora_A.weight"], ("F32", [2, 3], floats(1, 2, 3, 4, 5, 6)))
        self.assertEqual(tensors[f"{name}.lora_B.weight"], ("F32", [1, 2], floats(7, 8)))
        config = json.loads((self.folder / "out/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["use_rslora"]), (2, 4, False))
        self.assertEqual(config["target_modules"], ["model.layers.0.self_attn.q_proj"])
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()),
                         ["adapter_config.json", "adapter_model.safetensors"])

    def test_names_may_come_from_a_list(self):
        self.kohya()
        self.write("names.txt", "model.layers.0.self_attn.q_proj\n")
        found = self.json_of("lora", "convert", "x.safetensors", "--to", "mlx", "--names", "names.txt", "-o", "out")
        self.assertEqual({key: found[key] for key in ("from", "to", "n_modules", "n_padded", "n_scaled", "dtype")},
                         {"from": "kohya", "to": "MLX", "n_modules": 1, "n_padded": 0, "n_scaled": 0, "dtype": "F32"})
        config = json.loads((self.folder / "out/adapter_config.json").read_text())
        self.assertEqual(config, {"fine_tune_type": "lora", "num_layers": -1, "lora_parameters": {
            "dropout": 0.0, "keys": ["self_attn.q_proj"], "rank": 2, "scale": 2.0}})
        tensors = read(self.folder / "out/adapters.safetensors")
        self.assertEqual(tensors["model.layers.0.self_attn.q_proj.lora_a"],
                         ("F32", [3, 2], floats(1, 4, 2, 5, 3, 6)))

    def test_without_a_base_it_says_what_is_missing(self):
        self.kohya()
        self.assertEqual(
            self.fail_with(1, "lora", "convert", "x.safetensors", "--to", "peft", "-o", "out"),
            "eckart: error: lora convert: x.safetensors has kohya's names, in which dots and underscores are one, "
            "but PEFT's names have both\n"
            "hint: --base PATH takes the names from the model, --names FILE from a list of modules\n")

    def test_names_that_the_base_lacks_are_listed_with_the_closest(self):
        self.kohya()
        self.write("names.txt", "model.layers.0.self_attn.k_proj\n")
        said = self.fail_with(1, "lora", "convert", "x.safetensors", "--to", "peft", "--names", "names.txt", "-o", "out")
        self.assertIn("1 of the adapter's names has none in names.txt", said)
        self.assertIn("lora_te_model_layers_0_self_attn_q_proj (closest: model.layers.0.self_attn.k_proj)", said)
        self.assertFalse((self.folder / "out").exists())

    def test_peft_to_kohya_has_the_prefix_and_an_alpha(self):
        self.succeed("lora", "convert", GOLDEN / "rslora", "--to", "kohya", "--prefix", "lora_te1", "--dtype", "bf16",
                     "-o", "k.safetensors")
        tensors = read(self.folder / "k.safetensors")
        name = "lora_te1_model_layers_0_self_attn_q_proj"
        self.assertEqual(tensors[f"{name}.lora_down.weight"][:2], ("BF16", [4, 16]))
        self.assertEqual(tensors[f"{name}.alpha"], ("F32", [], floats(16)))  # 8 / sqrt(4) * 4

    def test_refuses_dora_for_kohya_and_leaves_nothing(self):
        said = self.fail_with(1, "lora", "convert", GOLDEN / "dora", "--to", "kohya", "-o", "k.safetensors")
        self.assertIn("has DoRA's magnitude for each output, but kohya's dora_scale has one for each input", said)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_mlx_says_what_it_made_necessary(self):
        said = self.succeed("lora", "convert", GOLDEN / "patterns", "--to", "mlx", "-o", "out")
        self.assertIn("4 modules padded with zeros to the largest rank: MLX has one for all\n"
                      "5 modules with the scale in lora_b, rounded once: MLX has one scale for all\n", said)

    def test_wrong_usage(self):
        self.assertEqual(
            self.fail_with(2, "lora", "convert", GOLDEN / "rslora", "--to", "mlx", "--prefix", "x", "-o", "out"),
            "eckart: error: --prefix is given with --to mlx, but only kohya's names have a prefix\n"
            "hint: leave it out\n")
        self.fail_with(2, "lora", "convert", GOLDEN / "rslora", "--to", "gguf", "-o", "out")


if __name__ == "__main__":
    unittest.main()
