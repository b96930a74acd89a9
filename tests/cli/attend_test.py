"""eckart attend."""

import json
import unittest

from run_support import RunTest, comma, flat, floats_of


class Attend(RunTest):
    def test_json_has_the_weights_that_transformers_has(self):
        for name in ("gemma2", "qwen3", "qwen2_yarn"):
            found = self.json_of("attend", self.model(name, tokenizer=False), "--ids", comma(self.ids_of(name)))
            self.assertEqual(found["ids"], self.ids_of(name))
            expected = self.expected(name)
            for layer in range(2):
                weights = [head["weights"] for head in found["heads"] if head["layer"] == layer]
                self.assert_near(flat(weights), floats_of(expected[f"attention.{layer}"]), name)

    def test_every_row_of_weights_sums_to_1(self):
        found = self.json_of("attend", self.model(), "--text", "the cat sat on the mat")
        self.assertEqual(len(found["heads"]), 8)
        self.assertEqual(found["tokens"], ["the", "cat", "sat", "on", "the", "mat"])
        for head in found["heads"]:
            for row in head["weights"]:
                self.assertAlmostEqual(sum(row), 1, places=5)
            weights = head["weights"][head["strongest"]["query"]]
            self.assertEqual(max(weights), weights[head["strongest"]["key"]])
            self.assertGreaterEqual(head["entropy_bits"], 0)

    def test_text_lists_every_head(self):
        text = self.succeed("attend", self.model(), "--text", "the cat sat on the mat")
        self.assertIn("6 tokens; entropy in bits", text)
        for head in ("0.0", "0.3", "1.0", "1.3"):
            self.assertRegex(text, rf"(?m)^  {head} ")

    def test_one_head_shows_its_weights(self):
        text = self.succeed("attend", self.model(), "--text", "the cat sat", "--layer", "1", "--head", "2")
        self.assertIn("weights of head 1.2, a row for each token that looks", text)
        self.assertRegex(text, r"(?m)^  the \[0\] +1\.00 *$")
        self.assertNotRegex(text, r"(?m)^  1\.1 ")

    def test_html_is_one_file_with_all_heads(self):
        out = self.succeed("attend", self.model(), "--text", "the cat </script>", "--html", "page.html")
        self.assertEqual(out, "page.html: the attention of 8 heads on 5 tokens\n")
        page = (self.folder / "page.html").read_text()
        self.assertNotIn("http", page)
        data = page.split('id="data">')[1].split("</script>")[0]
        self.assertEqual(len(json.loads(data)["heads"]), 8)

    def test_a_layer_or_head_out_of_range_is_named(self):
        self.assertEqual(self.fail_with(1, "attend", self.model(), "--text", "the", "--layer", "2"),
                         "eckart: error: attend: layer 2, but the model has those from 0 to 1\n")
        self.assertEqual(self.fail_with(1, "attend", self.model(), "--text", "the", "--head", "4"),
                         "eckart: error: attend: head 4, but each layer has those from 0 to 3\n")

    def test_no_text_is_wrong_usage(self):
        self.assertEqual(self.fail_with(2, "attend", self.model()),
                         'eckart: error: attend: there is no text\nhint: give --text "…", or --ids 1,2,3\n')
        self.assertIn("--text is empty", self.fail_with(2, "attend", self.model(), "--text", ""))

    def test_text_without_tokens_is_an_error(self):
        self.assertEqual(self.fail_with(1, "attend", self.model(), "--text", "  "),
                         "eckart: error: attend: the text has no tokens, but must have at least one\n")

    def test_an_id_out_of_range_is_named(self):
        self.assertIn("token 1 of the sequence has the id 48, but the model has those from 0 to 47",
                      self.fail_with(1, "attend", self.model(), "--ids", "4,48"))

    def test_ids_are_numbers(self):
        self.assertIn("--ids is '1,x', but must be whole numbers with commas between them",
                      self.fail_with(2, "attend", self.model(), "--ids", "1,x"))

    def test_invalid_utf8_names_the_byte(self):
        error = self.fail_with(1, "attend", self.model(), "--text", b"the \xff cat".decode(errors="surrogateescape"))
        self.assertIn("byte 4", error)

    def test_long_text_is_cut_only_when_asked(self):
        text = " ".join(["the cat"] * 40)
        error = self.fail_with(1, "attend", self.model(), "--text", text)
        self.assertEqual(error, "eckart: error: attend: the text has 80 tokens, but the model's context is 64\n"
                                "hint: with --truncate the first 64 are taken\n")
        result = self.run_eckart("attend", self.model(), "--text", text, "--truncate", "--json")
        self.assertEqual(len(json.loads(result.stdout)["ids"]), 64)
        self.assertEqual(result.stderr, "eckart: attend: the text has 80 tokens, but the model's context is 64: "
                                        "the first 64 are taken\n")

    def test_another_family_is_refused_by_name(self):
        folder = self.model()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "phi"}))
        self.assertIn("is of the family phi, but it has no forward pass yet\nhint: families with one: bert, gemma,",
                      self.fail_with(1, "attend", folder, "--text", "the"))

    def test_a_folder_without_tokenizer_takes_ids_alone(self):
        folder = self.model(tokenizer=False)
        self.assertEqual(self.json_of("attend", folder, "--ids", "4,5")["tokens"], ["#4", "#5"])
        self.assertIn("tokenizer.json", self.fail_with(1, "attend", folder, "--text", "the"))


if __name__ == "__main__":
    unittest.main()
