"""eckart svd: values and vectors, of literals and of checkpoints."""

import struct
import unittest

from support import EXAMPLE, CommandTest


class Svd(CommandTest):
    def test_the_worked_example(self):
        found = self.json_of("svd", "[[2,1],[1,2]]")
        self.assertEqual(list(found), ["u", "s", "vt"])
        for value, expected in zip(found["s"], [3, 1]):
            self.assertAlmostEqual(value, expected, delta=1e-12)
        product = [[sum(found["u"][i][k] * found["s"][k] * found["vt"][k][j] for k in range(2))
                    for j in range(2)] for i in range(2)]
        for row, expected in zip(product, [[2, 1], [1, 2]]):
            for value, element in zip(row, expected):
                self.assertAlmostEqual(value, element, delta=1e-12)

    def test_values_alone(self):
        self.assertEqual(list(self.json_of("svd", "[[3,0],[0,4]]", "--values")), ["s"])
        self.succeed("svd", "[[3,0],[0,4]]", "--values", "-o", "s.npy")
        self.assertEqual(struct.unpack("<2d", (self.folder / "s.npy").read_bytes()[-16:]), (4.0, 3.0))

    def test_text_shows_the_shapes(self):
        lines = self.succeed("svd", "[[1,0,0],[0,2,0]]").splitlines()
        self.assertEqual(lines[:2], ["a  2x3", "u  2x2"])
        self.assertIn("s  2", lines)
        self.assertIn("vt  2x3", lines)

    def test_a_tensor_of_a_checkpoint(self):
        values = self.json_of("svd", f"{EXAMPLE}:model.layers.0.self_attn.q_proj.weight", "--values")["s"]
        self.assertEqual(len(values), 128)
        self.assertEqual(values, sorted(values, reverse=True))

    def test_bad_input_is_named(self):
        self.assertIn("a matrix is wanted", self.fail_with(1, "svd", "[1,2]"))
        self.assertIn("--output is given without --values, which it needs",
                      self.fail_with(2, "svd", "[[1]]", "-o", "s.npy"))


if __name__ == "__main__":
    unittest.main()
