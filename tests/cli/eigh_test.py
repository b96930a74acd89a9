"""eckart eigh: eigenvalues and vectors of symmetric matrices."""

import unittest

from support import CommandTest

HALF = 0.5**0.5


class Eigh(CommandTest):
    def test_the_worked_example(self):
        found = self.json_of("eigh", "[[2,1],[1,2]]")
        self.assertEqual(list(found), ["values", "vectors"])
        for value, expected in zip(found["values"], [1, 3]):
            self.assertAlmostEqual(value, expected, delta=1e-12)
        for row, expected in zip(found["vectors"], [[HALF, HALF], [-HALF, HALF]]):
            for value, component in zip(row, expected):
                self.assertAlmostEqual(value, component, delta=1e-12)

    def test_some_of_them(self):
        diagonal = "[[5,0,0],[0,-7,0],[0,0,1]]"
        for value, expected in zip(self.json_of("eigh", diagonal, "--k", 2)["values"], [1, 5]):
            self.assertAlmostEqual(value, expected, delta=1e-14)
        smallest = self.json_of("eigh", diagonal, "--k", 1, "--which", "smallest")
        self.assertAlmostEqual(smallest["values"][0], -7, delta=1e-14)
        self.assertEqual([len(row) for row in smallest["vectors"]], [1, 1, 1])
        self.assertAlmostEqual(smallest["vectors"][1][0], 1, delta=1e-14)

    def test_text_shows_the_shapes(self):
        lines = self.succeed("eigh", "[[2,1],[1,2]]").splitlines()
        self.assertEqual(lines[:2], ["a  2x2", "values  2"])
        self.assertIn("vectors  2x2", lines)

    def test_bad_input_is_named(self):
        self.assertIn("a has 1 at (0, 1) and 3 at (1, 0)", self.fail_with(1, "eigh", "[[2,1],[3,2]]"))
        self.assertIn("a has 1.00001 at (0, 1) and 1.00002 at (1, 0), but it must be symmetric\n"
                      "hint: eckart svd takes any matrix; (a + a^T) / 2 is the symmetric part of a\n",
                      self.fail_with(1, "eigh", "[[2,1.00001],[1.00002,2]]"))
        self.assertIn("hint: eckart svd takes matrices of any shape\n", self.fail_with(1, "eigh", "[[2,1]]"))
        self.assertIn("k is 3", self.fail_with(1, "eigh", "[[2,1],[1,2]]", "--k", 3))
        self.assertEqual(self.fail_with(2, "eigh", "[[2]]", "--which", "middle"),
                         "eckart: error: --which is 'middle', but must be largest or smallest\n")


if __name__ == "__main__":
    unittest.main()
