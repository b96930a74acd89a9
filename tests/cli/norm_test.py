"""eckart norm: one number, or one for each vector along an axis."""

import unittest

from support import CommandTest


class Norm(CommandTest):
    def test_every_norm_by_its_name(self):
        for ord_, value in {"1": 6, "inf": 7, "fro": 30**0.5, "nuc": (15 + 125**0.5)**0.5 + (15 - 125**0.5)**0.5,
                            "spectral": (15 + 125**0.5)**0.5, "2": (15 + 125**0.5)**0.5}.items():
            self.assertAlmostEqual(self.json_of("norm", "[[1,-2],[3,4]]", "--ord", ord_)["norm"], value, 12)
        for ord_, value in {"1": 7, "2": 5, "inf": 4}.items():
            self.assertEqual(self.json_of("norm", "[3,-4]", "--ord", ord_), {"norm": value})

    def test_the_text_says_the_shape_and_which_norm(self):
        self.assertEqual(self.succeed("norm", "[3,4]", "--ord", "1"), "a  2\nnorm 1  7\n")
        self.assertEqual(self.succeed("norm", "[[3,4]]", "--ord", "nuc"), "a  1x2\nnorm nuc  5\n")

    def test_norms_along_an_axis(self):
        self.assertEqual(self.json_of("norm", "[[3,4],[6,8]]", "--axis", "1"), {"norm": [5, 10]})
        self.assertEqual(self.json_of("norm", "[[3,4],[6,8]]", "--axis=-2", "--ord", "1"), {"norm": [9, 12]})
        self.assertEqual(self.succeed("norm", "[[3,4],[6,8]]", "--axis", "1", "-o", "n.npy"),
                         "a  2x2\nnorm 2  2\n   5  10\n")
        self.assertEqual(self.json_of("norm", "n.npy", "--ord", "1"), {"norm": 15})

    def test_what_is_wrong_is_named(self):
        self.assertEqual(self.fail_with(1, "norm", "[3,4]", "--ord", "nuc"),
                         "eckart: error: norm: a is 2, which has the norms 1, 2 and inf, but not the norm nuc\n")
        self.assertIn("no axis", self.fail_with(1, "norm", "[[3,4]]", "--axis", "token"))
        self.fail_with(1, "norm", "[[3,4]]", "--axis", "2")
        self.assertIn("--ord", self.fail_with(2, "norm", "[3]", "--ord", "7"))
        self.write("nan.csv", "1,nan\n2,3\n")
        self.assertEqual(self.fail_with(1, "norm", "nan.csv", "--ord", "nuc"),
                         "eckart: error: norm: a has a NaN at (0, 1), but every element must be finite\n")
        self.assertEqual(self.json_of("norm", "nan.csv"), {"norm": None})


if __name__ == "__main__":
    unittest.main()
