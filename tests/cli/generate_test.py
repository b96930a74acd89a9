"""eckart generate."""

import json
import math
import unittest

from run_support import RunTest, comma, floats_of


class Generate(RunTest):
    def test_at_temperature_0_the_likeliest_token_of_transformers_comes_first(self):
        for name in ("gpt2_scales", "gemma2", "phi3"):
            found = self.json_of("generate", self.model(name), "--ids", comma(self.ids_of(name)), "--temperature", "0",
                                 "--max-tokens", "1")
            logits = floats_of(self.expected(name)["logits"])[-48:]
            best = max(range(48), key=lambda i: logits[i])
            probability = 1 / sum(math.exp(x - logits[best]) for x in logits)
            self.assertEqual(found["tokens"][0]["id"], best)
            self.assertAlmostEqual(found["tokens"][0]["probability"], probability, places=4)

    def test_tokens_follow_from_those_before(self):
        # What is generated one token at a time is what each longer prompt leads to.
        folder = self.model("mistral")
        ids, start = [4, 5, 6], [4, 5, 6]
        found = self.json_of("generate", folder, "--ids", comma(start), "--temperature", "0", "--max-tokens", "8")
        for token in found["tokens"]:
            one = self.json_of("generate", folder, "--ids", comma(ids), "--temperature", "0", "--max-tokens", "1")
            self.assertEqual(one["tokens"][0]["id"], token["id"])
            ids.append(token["id"])

    def test_the_seed_decides_what_is_sampled(self):
        def sample(seed):
            return self.json_of("generate", self.model(), "--prompt", "the cat", "--seed", seed,
                                "--max-tokens", "12")["tokens"]
        self.assertEqual(sample(1), sample(1))
        self.assertNotEqual(sample(1), sample(2))

    def test_top_k_1_is_temperature_0(self):
        def ids(*options):
            return [token["id"] for token in self.json_of("generate", self.model(), "--prompt", "the cat",
                                                          "--max-tokens", "6", *options)["tokens"]]
        self.assertEqual(ids("--top-k", "1"), ids("--temperature", "0"))
        self.assertEqual(ids("--top-p", "0.000001"), ids("--temperature", "0"))

    def test_text_goes_to_standard_output_and_speed_to_standard_error(self):
        result = self.run_eckart("generate", self.model(), "--prompt", "the cat", "--temperature", "0",
                                 "--max-tokens", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"^eckart: 3 tokens in [0-9.]+ s, [0-9.]+ tokens/s; prompt of 2 tokens in "
                                        r"[0-9.]+ s; ended by max_tokens\n$")
        quiet = self.run_eckart("generate", self.model(), "--prompt", "the cat", "--temperature", "0",
                                "--max-tokens", "3", "--quiet")
        self.assertEqual((quiet.stdout, quiet.stderr), (result.stdout, ""))

    def test_probabilities_are_listed_when_asked(self):
        text = self.succeed("generate", self.model(), "--prompt", "the", "--max-tokens", "3", "--probabilities")
        self.assertEqual(len(text.splitlines()), 3)
        for line in text.splitlines():
            self.assertRegex(line, r"^  0\.\d{4}  \S+$|^  1\.0000  \S+$")

    def test_the_end_token_ends_the_text(self):
        folder = self.model()
        first = self.json_of("generate", folder, "--prompt", "the", "--temperature", "0", "--max-tokens", "1")
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [first["tokens"][0]["id"]]}))
        found = self.json_of("generate", folder, "--prompt", "the", "--temperature", "0")
        self.assertEqual((found["tokens"], found["stopped"]), ([], "end"))

    def test_the_context_ends_the_text(self):
        folder = self.model()
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 9_999}))
        found = self.json_of("generate", folder, "--ids", comma([4] * 62), "--temperature", "0")
        self.assertEqual((len(found["tokens"]), found["stopped"]), (3, "context"))

    def test_a_long_prompt_keeps_its_end_when_asked(self):
        ids = [3 + i % 40 for i in range(70)]
        self.assertIn("the text has 70 tokens, but the model's context is 64\nhint: with --truncate the last 32 are "
                      "taken, which leaves room for 32\n",
                      self.fail_with(1, "generate", self.model(), "--ids", comma(ids)))
        result = self.run_eckart("generate", self.model(), "--ids", comma(ids), "--truncate", "--json")
        self.assertEqual(json.loads(result.stdout)["prompt_ids"], ids[-32:])
        result = self.run_eckart("generate", self.model(), "--ids", comma(ids), "--truncate", "--json", "--max-tokens", "5")
        self.assertEqual(json.loads(result.stdout)["prompt_ids"], ids[-59:])

    def test_a_temperature_below_0_is_refused(self):
        self.assertEqual(self.fail_with(2, "generate", self.model(), "--prompt", "the", "--temperature", "-1"),
                         "eckart: error: --temperature is '-1', but must be a number at least 0\n")
        self.assertIn("--top-p is '1.5', but must be a number above 0 and at most 1",
                      self.fail_with(2, "generate", self.model(), "--prompt", "the", "--top-p", "1.5"))

    def test_a_model_without_a_head_is_refused(self):
        self.assertEqual(self.fail_with(1, "generate", self.model("gpt2_base"), "--prompt", "the"),
                         "eckart: error: generate: GPT2Model has no head that predicts tokens\n"
                         "hint: `eckart embed` and `eckart attend` work without one\n")
        self.assertIn("only a causal model reads token by token",
                      self.fail_with(1, "generate", self.model("bert"), "--prompt", "the"))

    def test_a_missing_tensor_is_named(self):
        folder = self.model()
        data = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(
            data.replace(b"model.layers.1.mlp.up_proj.weight", b"model.layers.1.mlp.no_proj.weight"))
        self.assertIn("model.layers.1.mlp.up_proj.weight is not in the file, but config.json implies 40x24",
                      self.fail_with(1, "generate", folder, "--prompt", "the"))


if __name__ == "__main__":
    unittest.main()
