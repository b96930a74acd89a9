"""The bundled example is whole: its files agree with each other and with what its README says."""

import json
import re
import unittest

from support import EXAMPLE, CommandTest

FOLDER_BYTES = 2_000_000  # what the example may take in everybody's checkout


def read_json(name):
    return json.loads((EXAMPLE / name).read_text(encoding="utf-8"))


def byte_characters():
    """How byte-level BPE writes each of the 256 bytes: printable ones as themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = 256 - len(printable)
    return {*map(chr, printable), *(chr(0x100 + i) for i in range(others))}


class TinyLlama(CommandTest):
    def test_config_index_and_headers_agree(self):
        found = self.json_of("inspect", EXAMPLE)
        self.assertEqual(found["differences"], [])
        self.assertEqual(found["bytes"], read_json("model.safetensors.index.json")["metadata"]["total_size"])

    def test_no_value_is_missing_or_infinite(self):
        values = self.json_of("inspect", EXAMPLE, "--values")["values"]
        self.assertEqual(values["tensors"], [])

    def test_it_is_bf16_in_three_shards_and_small(self):
        listed = self.json_of("inspect", EXAMPLE, "--tensors")["tensors"]
        self.assertEqual({tensor["dtype"] for tensor in listed}, {"BF16"})
        self.assertEqual(len(list(EXAMPLE.glob("model-*-of-00003.safetensors"))), 3)
        self.assertLessEqual(sum(path.stat().st_size for path in EXAMPLE.iterdir()), FOLDER_BYTES)

    def test_the_tokenizer_numbers_the_rows_of_the_embedding(self):
        vocabulary = read_json("tokenizer.json")["model"]["vocab"]
        self.assertEqual(sorted(vocabulary.values()), list(range(read_json("config.json")["vocab_size"])))

    def test_every_byte_is_a_token_and_every_merge_makes_one(self):
        model = read_json("tokenizer.json")["model"]
        self.assertEqual(byte_characters() - set(model["vocab"]), set())
        for left, right in model["merges"]:
            self.assertLessEqual({left, right, left + right}, set(model["vocab"]))

    def test_the_special_tokens_are_those_of_the_config(self):
        config, names = read_json("config.json"), read_json("tokenizer_config.json")
        added = {token["content"]: token["id"] for token in read_json("tokenizer.json")["added_tokens"]}
        self.assertEqual(added, {names["bos_token"]: config["bos_token_id"], names["eos_token"]: config["eos_token_id"]})
        self.assertEqual(names["model_max_length"], config["max_position_embeddings"])

    def test_the_readme_states_the_sizes_of_the_files(self):
        text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
        config, count = read_json("config.json"), self.json_of("count", EXAMPLE)
        for pattern, value in ((r"([\d,]+) parameters", count["parameters"]["total"]),
                               (r"([\d,]+) layers", config["num_hidden_layers"]),
                               (r"d_model ([\d,]+)", config["hidden_size"]),
                               (r"vocabulary of ([\d,]+)", config["vocab_size"]),
                               (r"context of ([\d,]+)", config["max_position_embeddings"])):
            with self.subTest(pattern=pattern):
                stated = re.search(pattern, text)
                self.assertIsNotNone(stated, text)
                self.assertEqual(int(stated[1].replace(",", "")), value)


if __name__ == "__main__":
    unittest.main()
