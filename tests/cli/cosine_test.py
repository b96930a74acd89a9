"""eckart cosine: of two vectors a number, of two matrices a table; zero vectors by policy."""

import unittest

from support import CommandTest


class Cosine(CommandTest):
    def test_of_two_vectors(self):
        self.assertEqual(self.json_of("cosine", "[3,4]", "[4,3]"), {"cosine": 0.96})
        self.assertEqual(self.succeed("cosine", "[3,4]", "[4,3]"), "a  2   b  2\ncosine  0.96\n")

    def test_of_all_pairs_of_rows(self):
        table = self.json_of("cosine", "[[1,0],[3,4]]", "[[3,4],[0,2],[-1,0]]")["cosine"]
        for row, expected in zip(table, [[0.6, 0, -1], [1, 0.8, -0.6]]):
            for value, right in zip(row, expected):
                self.assertAlmostEqual(value, right, 14)

    def test_a_zero_vector_by_policy(self):
        self.assertEqual(self.fail_with(1, "cosine", "[0,0]", "[3,4]"),
                         "eckart: error: cosine: a is a zero vector, but a zero vector has no direction\n"
                         "hint: --zero zero gives 0 in its place, --zero nan gives NaN\n")
        self.assertIn("cosine: row 1 of b is a zero vector",
                      self.fail_with(1, "cosine", "[[1,0]]", "[[1,0],[0,0]]"))
        self.assertEqual(self.json_of("cosine", "[0,0]", "[3,4]", "--zero", "zero"), {"cosine": 0})
        self.assertEqual(self.json_of("cosine", "[[1,0]]", "[[0,0],[1,0]]", "--zero", "nan"), {"cosine": [[None, 1]]})
        self.assertIn("--zero", self.fail_with(2, "cosine", "[1]", "[1]", "--zero", "maybe"))

    def test_shapes_that_do_not_fit(self):
        self.assertIn("must have as many elements", self.fail_with(1, "cosine", "[1,2]", "[1,2,3]"))
        self.assertEqual(self.fail_with(1, "cosine", "[1,2]", "[[1,2]]"),
                         "eckart: error: cosine: a is 2 and b is 1x2, but both must be vectors, or matrices with a "
                         "vector in each row\nhint: with a as one row it fits: 1x2 and 1x2 gives 1x1\n")
        self.assertIn("hint: with b as one row it fits: 3x2 and 1x2 gives 3x1\n",
                      self.fail_with(1, "cosine", "[[1,2],[3,4],[5,6]]", "[1,2]"))
        self.assertNotIn("hint", self.fail_with(1, "cosine", "[1,2,3]", "[[1,2]]"))
        self.assertEqual(self.fail_with(1, "cosine", "[[1,2]]", "[[1],[2]]"),
                         "eckart: error: cosine: a is 1x2 and b is 2x1, but the rows must have as many elements in "
                         "both\nhint: with b transposed it fits: 1x2 and 1x2 gives 1x1; with a transposed it fits: "
                         "2x1 and 2x1 gives 2x2\n")

    def test_the_table_can_be_written(self):
        self.succeed("cosine", "[[2,0],[0,3]]", "[[1,0],[0,1]]", "-o", "table.npy")
        self.assertEqual(self.json_of("matmul", "table.npy", "[[1,2],[3,4]]")["values"], [[1, 2], [3, 4]])


if __name__ == "__main__":
    unittest.main()
