"""eckart lstsq: the closest answer, plain and held back."""

import unittest

from support import CommandTest


class Lstsq(CommandTest):
    def test_a_line_through_three_points(self):
        fit = self.json_of("lstsq", "[[0,1],[1,1],[2,1]]", "[1,2,2]")
        self.assertEqual(list(fit), ["x", "residual_norm", "rank", "condition_number", "method"])
        self.assertAlmostEqual(fit["x"][0], 0.5, delta=1e-15)
        self.assertAlmostEqual(fit["x"][1], 7 / 6, delta=1e-15)
        self.assertAlmostEqual(fit["residual_norm"], (1 / 6) ** 0.5, delta=1e-15)
        self.assertEqual((fit["rank"], fit["method"]), (2, "qr"))

    def test_a_dependent_column_gives_the_smallest_answer(self):
        fit = self.json_of("lstsq", "[[1,2],[2,4]]", "[3,6]")
        self.assertAlmostEqual(fit["x"][1], 1.2, delta=1e-14)
        self.assertEqual((fit["rank"], fit["method"], fit["condition_number"]), (1, "svd", None))

    def test_text_says_how(self):
        text = self.succeed("lstsq", "[[1,0],[0,2]]", "[1,2]", "--ridge", 1)
        self.assertTrue(text.startswith("a  2x2   b  2\nx  2\n"), text)
        self.assertIn("rank  2   condition_number  2   ridge of strength 1\n", text)
        self.assertIn("   by qr\n", self.succeed("lstsq", "[[1,0],[0,2]]", "[1,2]"))

    def test_ridge(self):
        fit = self.json_of("lstsq", "[[1,0],[0,2]]", "[1,2]", "--ridge", 1)
        self.assertAlmostEqual(fit["x"][0], 0.5, delta=1e-15)
        self.assertAlmostEqual(fit["x"][1], 0.8, delta=1e-15)
        self.assertEqual((fit["rank"], fit["strength"]), (2, 1.0))

    def test_ridge_chooses_its_strength(self):
        fit = self.json_of("lstsq", "[[1],[1],[1],[1]]", "[3,-3,2,-2]", "--ridge", "loo")
        self.assertEqual(len(fit["strengths"]), 25)
        best = fit["loo_errors"].index(min(fit["loo_errors"]))
        self.assertEqual(fit["strength"], fit["strengths"][best])
        self.assertEqual(fit["strength"], max(fit["strengths"]))  # there is nothing to learn
        self.assertIn("chosen of 25", self.succeed("lstsq", "[[1],[2]]", "[3,5]", "--ridge", "loo"))

    def test_the_answer_is_written_and_read(self):
        self.succeed("lstsq", "[[1,0],[0,2]]", "[1,2]", "-o", "x.npy")
        self.assertAlmostEqual(self.json_of("project", "x.npy", "[1,1]")["projection"][0], 1, delta=1e-14)

    def test_bad_strengths_are_refused(self):
        self.assertIn("--ridge is 'much', but must be a number or loo",
                      self.fail_with(2, "lstsq", "[[1]]", "[1]", "--ridge", "much"))
        self.assertIn("--ridge is '-1', but must be a number at least 0",
                      self.fail_with(2, "lstsq", "[[1]]", "[1]", "--ridge=-1"))
        self.assertIn("hint: with a transposed it fits: x is then 3\n",
                      self.fail_with(1, "lstsq", "[[1,2],[3,4],[5,6]]", "[1,2]"))


if __name__ == "__main__":
    unittest.main()
