"""eckart shapes: the flow of a layer, and what contradicts it."""

import json
import unittest

from support import EXAMPLE, CommandTest, llama_config, llama_tensors, safetensors


class Shapes(CommandTest):
    def test_the_flow_of_the_bundled_example(self):
        flow = self.json_of("shapes", EXAMPLE, "--tokens", 8, "--batch", 2)
        steps = {step["name"]: step for step in flow["steps"]}
        self.assertEqual(steps["scores"]["output"], {"sizes": [2, 4, 8, 8], "axes": ["batch", "head", "token", "key"]})
        self.assertEqual(steps["unembedding"]["output"]["sizes"], [2, 8, 1024])
        self.assertEqual(steps["q"]["macs"], 2 * 8 * 128 * 128)
        self.assertEqual(steps["q"]["weight"], "model.layers.0.self_attn.q_proj.weight")
        self.assertIsNone(flow["conflict"])

    def test_the_steps_add_up_to_the_forward_pass(self):
        flow = self.json_of("shapes", EXAMPLE, "--tokens", 8)
        count = self.json_of("count", EXAMPLE, "--context", 8)
        total = sum(step["macs"] * (4 if step["stage"] == "layer" else 1) for step in flow["steps"])
        self.assertEqual(total, count["macs"]["forward_full_square"])

    def test_the_first_contradiction_is_marked_with_what_was_expected(self):
        config = llama_config()
        tensors = llama_tensors(config)
        tensors["model.layers.0.self_attn.k_proj.weight"] = ("F32", [16, 16])
        self.write("config.json", json.dumps(config))
        self.write("model.safetensors", safetensors(tensors))
        result = self.run_eckart("shapes", ".")
        self.assertEqual(result.returncode, 1)
        self.assertIn("<- contradicts the file", result.stdout)
        conflict = json.loads(self.run_eckart("shapes", ".", "--json").stdout)["conflict"]
        self.assertEqual(conflict["expected"], [8, 16])
        self.assertEqual(conflict["found"], [16, 16])

    def test_a_missing_tensor_is_not_called_a_contradiction(self):
        config = llama_config(num_key_value_heads=1)
        tensors = llama_tensors(config)
        del tensors["model.layers.0.mlp.up_proj.weight"]
        self.write("config.json", json.dumps(config))
        self.write("model.safetensors", safetensors(tensors))
        text = self.run_eckart("shapes", ".").stdout
        self.assertIn("<- not in the file", text)
        self.assertIn("on 1 KV head,", text)

    def test_bad_options_are_named(self):
        self.assertIn("--layer is 4, but the model has layers 0 to 3", self.fail_with(1, "shapes", EXAMPLE, "--layer", 4))

    def test_an_unknown_family_has_no_flow(self):
        self.write("config.json", '{"model_type": "zebra"}')
        self.assertIn("zebra", self.fail_with(1, "shapes", "."))


if __name__ == "__main__":
    unittest.main()
