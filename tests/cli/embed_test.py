"""eckart embed."""

import json
import math
import struct
import unittest

from run_support import RunTest

MODULES = json.dumps([
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])


class Embed(RunTest):
    def encoder(self):
        """A BERT whose words are letters, with the files of sentence-transformers."""
        folder = self.model("bert", tokenizer=False)
        letters = [chr(ord("a") + i) for i in range(26)]
        (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]) + "\n")
        (folder / "modules.json").write_text(MODULES)
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 8}))
        return folder

    def rows_of(self, *arguments):
        return self.json_of("embed", self.encoder(), *arguments)["embeddings"]

    def test_vectors_have_length_1_where_the_folder_says_so(self):
        rows = self.rows_of("--text", "a b", "--text", "c")
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(len(row), 24)
            self.assertAlmostEqual(math.fsum(x * x for x in row), 1, places=5)

    def test_writes_an_npy_file(self):
        out = self.succeed("embed", self.encoder(), "--text", "a b", "-o", "x.npy")
        self.assertEqual(out, "x.npy: 1x24 (text, embedding) embeddings, mean of the tokens' states, length 1\n")
        data = (self.folder / "x.npy").read_bytes()
        n = struct.unpack("<H", data[8:10])[0]
        self.assert_near(struct.unpack("<24f", data[10 + n:]), self.rows_of("--text", "a b")[0])

    def test_a_file_has_a_text_a_line(self):
        self.write("texts.txt", "a b\n\nc\r\n")
        rows = self.rows_of("--file", "texts.txt")
        self.assertEqual(len(rows), 3)
        self.assert_near(rows[2], self.rows_of("--text", "c")[0])

    def test_pooling_can_be_chosen(self):
        # Of one token between its special ones, the mean is none of the three.
        mean, cls, last = (self.rows_of("--text", "a", *options)[0]
                           for options in ((), ("--pooling", "cls"), ("--pooling", "last")))
        self.assertNotEqual(mean, cls)
        self.assertNotEqual(cls, last)

    def test_a_long_text_is_cut_only_when_asked(self):
        self.assertEqual(self.fail_with(1, "embed", self.encoder(), "--text", "a b c d e f g"),
                         "eckart: error: embed: the text has 9 tokens, but the model takes at most 8\n"
                         "hint: with --truncate its beginning is embedded\n")
        result = self.run_eckart("embed", self.encoder(), "--text", "a b c d e f g", "--truncate", "--json")
        found = json.loads(result.stdout)
        self.assertEqual((found["n_tokens"], found["truncated"]), ([8], [0]))
        self.assertEqual(result.stderr, "eckart: embed: 1 text was cut to what the model takes, the first of them "
                                        "text 1\n")
        self.assert_near(found["embeddings"][0], self.rows_of("--text", "a b c d e f")[0])

    def test_without_texts_is_wrong_usage(self):
        self.assertIn("embed: there is no text", self.fail_with(2, "embed", self.encoder()))
        self.write("empty.txt", "")
        self.assertIn("empty.txt has no lines", self.fail_with(1, "embed", self.encoder(), "--file", "empty.txt"))

    def test_invalid_utf8_names_text_and_byte(self):
        self.write("texts.txt", b"a\nb \xff\n")
        error = self.fail_with(1, "embed", self.encoder(), "--file", "texts.txt")
        self.assertIn("text 2", error)
        self.assertIn("byte 2", error)


if __name__ == "__main__":
    unittest.main()
