"""eckart count: published counts from configs, what a file stores, and what fits."""

import json
import unittest

from support import EXAMPLE, ROOT, CommandTest, llama_config, llama_tensors, safetensors

CASES = json.loads((ROOT / "tests/golden/model_counts.json").read_text(encoding="utf-8"))


class Count(CommandTest):
    def count_config(self, config, *options):
        return self.json_of("count", self.write("config.json", json.dumps(config)), *options)

    def test_every_published_count_is_exact(self):
        found_keys = set()
        for case in CASES:
            with self.subTest(model=case["name"]):
                self.write("config.json", json.dumps(case["config"]))
                found = self.json_of("count", "config.json")
                short = self.json_of("count", "config.json", "--batch", "1", "--context", "128")
                values = {
                    "parameters": found["parameters"]["total"],
                    "active_parameters": found["parameters"]["active"],
                    "kv_bytes_per_token_at_2": found["kv_cache"]["bytes_per_token"],
                    "kv_bytes_per_token_at_2_latent": found["kv_cache"]["bytes_per_token"],
                    "linear_flops_per_token": found["flops"]["linear_per_token"],
                    "forward_macs_1x128_full_square": short["macs"]["forward_full_square"],
                }
                for key, expected in case["expect"].items():
                    self.assertEqual(values[key], expected, key)
                    found_keys.add(key)
        self.assertEqual(len(found_keys), 6)

    def test_the_kv_cache_follows_context_batch_and_dtype(self):
        config = llama_config(num_hidden_layers=3, hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
        self.assertEqual(self.count_config(config)["kv_cache"]["bytes_per_token"], 2 * 3 * 2 * 16 * 2)
        found = self.count_config(config, "--context", 100, "--batch", 5, "--kv-dtype", "F8_E4M3")
        self.assertEqual(found["kv_cache"]["bytes_at_context"], 2 * 3 * 2 * 16 * 1 * 100 * 5)

    def test_windows_are_needed_and_ignored_side_by_side(self):
        config = llama_config(model_type="mistral", architectures=["MistralForCausalLM"], sliding_window=10)
        found = self.count_config(config, "--context", 64)["kv_cache"]
        self.assertEqual(found["bytes_at_context"] * 64, found["bytes_at_context_without_windows"] * 10)

    def test_attention_grows_with_the_square(self):
        config = llama_config()
        short = self.count_config(config, "--context", 100)["macs"]["attention_full_square"]
        long = self.count_config(config, "--context", 200)["macs"]["attention_full_square"]
        self.assertEqual(long, 4 * short)

    def test_a_lora_counts_rank_times_both_sides(self):
        config = llama_config(hidden_size=4096, num_attention_heads=32, num_key_value_heads=32,
                              num_hidden_layers=32, intermediate_size=11008)
        names = "q_proj,k_proj,v_proj,o_proj"
        found = self.count_config(config, "--lora-rank", 8, "--lora-targets", names)
        self.assertEqual(found["lora"]["parameters"], 8_388_608)
        message = self.fail_with(1, "count", "config.json", "--lora-rank", 5000)
        self.assertIn("5000", message)
        self.assertIn("nothing_like_it", self.fail_with(1, "count", "config.json", "--lora-rank", 8,
                                                        "--lora-targets", "nothing_like_it"))

    def test_training_is_three_forward_passes_and_twelve_bytes_a_parameter(self):
        found = self.count_config(llama_config(torch_dtype="bfloat16"), "--train")
        self.assertEqual(found["training"]["flops"], 3 * found["flops"]["forward"])
        self.assertEqual(found["training"]["optimizer_bytes"], 12 * found["parameters"]["total"])

    def test_fit_answers_for_what_was_asked(self):
        config = llama_config(torch_dtype="bfloat16")
        plain = self.count_config(config, "--fit", "200kB")
        train = self.count_config(config, "--fit", "200kB", "--train")
        lora = self.count_config(config, "--fit", "200kB", "--lora-rank", 2)
        self.assertEqual([c["fit"]["purpose"] for c in (plain, train, lora)],
                         ["inference", "training", "LoRA training"])
        self.assertEqual(train["request"]["total_bytes"], train["training"]["total_bytes"])
        longest = [c["fit"]["longest_context"]["context"] for c in (plain, train, lora)]
        self.assertGreater(longest[0], longest[2])
        self.assertGreater(longest[2], longest[1])
        text = self.succeed("count", "config.json", "--train", "--fit", "100kB")
        self.assertIn("what fits 100 kB = 97.7 KiB for training", text)
        self.assertRegex(text, r"this request: context 64 x batch 1 needs .* for training\n.* too much\n")
        self.assertIn("with fused attention", text)
        self.assertRegex(self.succeed("count", "config.json"), r"this request: .* for inference\n  weights .*, KV cache")

    def test_a_quantized_config_alone_is_an_estimate(self):
        config = llama_config(torch_dtype="float16", quantization_config={"quant_method": "gptq", "bits": 4,
                                                                          "group_size": 8})
        found = self.count_config(config, "--fit", "4MB")
        self.assertEqual(found["weights"]["dtype"], "gptq, estimate")
        matrices = 2 * (16 * 16 * 2 + 8 * 16 * 2 + 3 * 24 * 16)
        others = found["parameters"]["total"] - matrices
        self.assertEqual(found["weights"]["bytes"], matrices * 4 // 8 + matrices // 8 * 20 // 8 + 2 * others)
        self.assertEqual(found["fit"]["weights_bytes"], found["weights"]["bytes"])
        self.assertIn("an estimate from the config's quantization (gptq, 4 bits in groups of 8)", found["notes"][-1])
        self.assertEqual(self.json_of("count", "config.json", "--dtype", "BF16")["weights"]["bytes"],
                         2 * found["parameters"]["total"])

    def test_windows_in_every_layer_fit_any_context(self):
        config = llama_config(model_type="mistral", architectures=["MistralForCausalLM"], sliding_window=10)
        self.count_config(config)
        self.assertRegex(self.succeed("count", "config.json", "--fit", "4MB"), r"longest context +any ")

    def test_an_encoder_has_no_causal_figures(self):
        config = {"model_type": "bert", "vocab_size": 10, "hidden_size": 4, "num_hidden_layers": 1,
                  "num_attention_heads": 2, "intermediate_size": 6, "max_position_embeddings": 8, "type_vocab_size": 2}
        self.count_config(config)
        self.assertNotIn("causal", self.succeed("count", "config.json", "--train"))

    def test_a_checkpoint_weighs_what_its_file_stores(self):
        config = llama_config(torch_dtype="bfloat16")
        self.write("config.json", json.dumps(config))
        self.write("model.safetensors", safetensors(llama_tensors(config, "F16")))
        found = self.json_of("count", ".")
        self.assertEqual(found["weights"]["dtype"], "F16")
        self.assertEqual(found["weights"]["bytes"], 2 * found["parameters"]["total"])
        self.assertEqual(self.json_of("count", ".", "--dtype", "F32")["weights"]["bytes"],
                         4 * found["parameters"]["total"])

    def test_files_that_contradict_the_config_are_noted(self):
        config = llama_config()
        self.write("config.json", json.dumps(config))
        self.write("model.safetensors", safetensors(llama_tensors(config)))
        self.assertEqual(self.json_of("count", ".")["notes"], [])
        self.write("config.json", json.dumps({**config, "vocab_size": 33}))
        self.assertIn("contradicts config.json, which the count follows, in ", self.succeed("count", "."))
        self.assertIn("eckart inspect", self.json_of("count", ".")["notes"][0])

    def test_mixed_dtypes_count_as_stored(self):
        config = llama_config()
        tensors = llama_tensors(config, "BF16") | {"lm_head.weight": ("F32", [32, 16])}
        self.write("config.json", json.dumps(config))
        self.write("model.safetensors", safetensors(tensors))
        weights = self.json_of("count", ".", "--fit", "1GB")
        total = weights["parameters"]["total"]
        self.assertEqual(weights["weights"]["bytes"], 2 * (total - 512) + 4 * 512)
        self.assertEqual(weights["fit"]["weights_bytes"], weights["weights"]["bytes"])

    def test_an_unknown_family_is_counted_from_its_tensors_and_says_so(self):
        self.write("config.json", '{"model_type": "zebra"}')
        self.write("model.safetensors", safetensors({"h.0.w": ("BF16", [3, 4]), "norm": ("BF16", [4])}))
        found = self.json_of("count", ".", "--lora-rank", "2")
        self.assertEqual(found["parameters"]["total"], 16)
        self.assertEqual(found["lora"]["parameters"], 2 * 7)
        self.assertIn("zebra", found["no_architecture"])
        self.assertIn("counted from its tensors", self.succeed("count", "."))
        self.assertIsNone(found["kv_cache"]["bytes_per_token"])
        for option in ("--fit=1GB", "--dtype=F32", "--context=7", "--kv-dtype=F16"):
            self.assertIn("zebra", self.fail_with(1, "count", ".", option))
        self.assertIn("llama", self.fail_with(1, "count", "config.json"))

    def test_what_fits_does_and_one_more_does_not(self):
        config = llama_config()
        fit = self.count_config(config, "--fit", "100kB")["fit"]
        longest = fit["longest_context"]
        self.assertLessEqual(longest["total_bytes"], 100_000)
        self.assertEqual(longest["total_bytes"],
                         longest["weights_bytes"] + longest["kv_cache_bytes"] + longest["working_bytes"])
        self.assertGreater(longest["weights_bytes"], 0)
        per_token = 2 * 2 * 2 * 4 * 2
        self.assertGreater(longest["total_bytes"] + per_token, 100_000 - 1024)
        self.assertGreater(fit["largest_batch"]["batch"], 0)
        small = self.count_config(config, "--fit", "1kB")["fit"]
        self.assertGreater(small["missing_bytes"], 0)
        self.assertIsNone(small["longest_context"])

    def test_bad_options_are_named(self):
        path = self.write("config.json", json.dumps(llama_config()))
        for option in ("--dtype", "--kv-dtype", "--activation-dtype"):
            self.assertIn(f"{option}: 'BF17'", self.fail_with(2, "count", path, option, "BF17"))
        self.assertIn("16GiB", self.fail_with(2, "count", path, "--fit", "much"))
        for size in ("0x10", "inf", "-1GB", "1.5.2GB", "24XB", "0", "0GB", "10EB", "''"):
            self.assertIn(f"--fit: '{size}'", self.fail_with(2, "count", path, f"--fit={size}"))
        self.assertIn("24GB or 24GiB?", self.fail_with(2, "count", path, "--fit", "24"))
        for size, n in (("24Gi", 24 << 30), ("1PB", 10**15), ("1PiB", 1 << 50), ("1EB", 10**18), ("2EiB", 2 << 60),
                        ("8000000", 8_000_000)):
            self.assertEqual(self.json_of("count", path, "--fit", size)["fit"]["available_bytes"], n)
        self.assertIn("--lora-rank", self.fail_with(2, "count", path, "--lora-targets", "q_proj"))

    def test_bad_configs_are_named(self):
        for change, word in (({"hidden_size": "big"}, "hidden_size"), ({"hidden_size": None}, "hidden_size"),
                             ({"num_attention_heads": 5}, "5 attention heads"),
                             ({"hidden_size": 2**40, "intermediate_size": 2**40}, "count"),
                             ({"num_hidden_layers": -1}, "num_hidden_layers")):
            with self.subTest(change=change):
                path = self.write("config.json", json.dumps(llama_config(**change)))
                self.assertIn(word, self.fail_with(1, "count", path))
        self.assertIn("config.json", self.fail_with(1, "count", self.write("config.json", "{nonsense")))

    def test_the_text_states_its_units(self):
        text = self.succeed("count", EXAMPLE, "--train", "--lora-rank", "2", "--fit", "4MB")
        for word in ("902,272", "MAC", "FLOP = 2 MAC", "KiB", "6 N D", "AdamW", "longest context"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
