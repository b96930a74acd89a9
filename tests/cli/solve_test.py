"""eckart solve: answers, and matrices that have none."""

import struct
import unittest

from support import CommandTest


class Solve(CommandTest):
    def test_the_worked_example(self):
        found = self.json_of("solve", "[[2,1],[1,-1]]", "[5,1]")
        self.assertEqual(list(found), ["x"])
        for value, expected in zip(found["x"], [2, 1]):
            self.assertAlmostEqual(value, expected, delta=1e-12)

    def test_text_shows_the_shapes(self):
        text = self.succeed("solve", "[[2,0],[0,4]]", "[[2,4],[4,8]]")
        self.assertEqual(text.splitlines()[:2], ["a  2x2   b  2x2", "x  2x2"])

    def test_kinds_use_their_triangle_or_refuse(self):
        lower = self.json_of("solve", "[[2,9],[1,4]]", "[2,9]", "--kind", "lower")
        self.assertEqual(lower["x"], [1.0, 2.0])
        definite = self.json_of("solve", "[[2,0],[0,4]]", "[2,4]", "--kind", "positive-definite")
        for found in definite["x"]:
            self.assertAlmostEqual(found, 1, delta=1e-15)
        error = self.fail_with(1, "solve", "[[1,2],[2,1]]", "[1,1]", "--kind", "positive-definite")
        self.assertIn("its pivot 2 is -3", error)
        self.assertIn("hint: without --kind it takes any square matrix\n", error)

    def test_a_singular_matrix_says_why_and_what_to_do(self):
        error = self.fail_with(1, "solve", "[[1,2],[2,4]]", "[1,2]", "-o", "x.npy")
        self.assertIn("solve: a is 2x2 and singular: row 2 is 2 times row 1", error)
        self.assertIn("hint: eckart lstsq gives the closest answer, which is exact where its residual_norm is 0\n",
                      error)
        self.assertFalse((self.folder / "x.npy").exists())

    def test_the_answer_is_written(self):
        self.succeed("solve", "[[2,0],[0,4]]", "[4,4]", "-o", "x.npy")
        self.assertEqual(struct.unpack("<2d", (self.folder / "x.npy").read_bytes()[-16:]), (2.0, 1.0))

    def test_shapes_that_do_not_fit_are_named(self):
        self.assertIn("as many rows as columns\nhint: eckart lstsq solves systems of any shape\n",
                      self.fail_with(1, "solve", "[[1,2]]", "[1]"))
        self.assertIn("b's 3 elements must equal a's 2 rows\n",
                      self.fail_with(1, "solve", "[[1,2],[3,4]]", "[1,2,3]"))
        self.assertIn("b's 1 row must equal a's 2 rows\nhint: with b transposed it fits: x is then 2x1\n",
                      self.fail_with(1, "solve", "[[1,2],[3,4]]", "[[5,6]]"))
        self.assertIn("a must be a matrix\nhint: with a and b swapped it fits: x is then 2\n",
                      self.fail_with(1, "solve", "[5,6]", "[[1,2],[3,4]]"))

    def test_wrong_usage(self):
        self.assertEqual(self.fail_with(2, "solve", "[[1]]", "[1]", "--kind", "banded"),
                         "eckart: error: --kind is 'banded', but must be general, positive-definite, lower or upper\n")
        self.fail_with(2, "solve", "[[1]]")


if __name__ == "__main__":
    unittest.main()
