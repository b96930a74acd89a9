"""eckart project: the part along a vector, or in a column space."""

import unittest

from support import CommandTest


class Project(CommandTest):
    def test_the_worked_example(self):
        found = self.json_of("project", "[3,4]", "[2,2]")
        self.assertEqual(list(found), ["projection", "residual", "coefficients", "coefficient_on_unit"])
        self.assertAlmostEqual(found["projection"][0], 3.5, delta=1e-12)
        self.assertAlmostEqual(found["residual"][0], -0.5, delta=1e-12)
        self.assertAlmostEqual(found["coefficient_on_unit"], 4.949747468305833, delta=1e-12)

    def test_onto_columns(self):
        found = self.json_of("project", "[1,2,3]", "[[1,1],[0,1],[0,0]]")
        self.assertEqual(list(found), ["projection", "residual", "coefficients"])
        for value, expected in zip(found["projection"] + found["coefficients"], [1, 2, 0, -1, 2]):
            self.assertAlmostEqual(value, expected, delta=1e-14)

    def test_text_shows_the_shapes(self):
        text = self.succeed("project", "[3,4]", "[1,0]")
        self.assertTrue(text.startswith("a  2   onto  2\nprojection  2\n"), text)
        self.assertIn("residual  2\n", text)

    def test_bad_input_is_named(self):
        self.assertIn("a zero vector has no direction", self.fail_with(1, "project", "[3,4]", "[0,0]"))
        self.assertIn("onto's 3 elements must equal a's 2 elements", self.fail_with(1, "project", "[3,4]", "[1,2,3]"))
        self.assertIn("onto's 1 row must equal a's 2 elements\n"
                      "hint: with onto transposed it fits: its 1 row then spans the space\n",
                      self.fail_with(1, "project", "[1,2]", "[[1,2]]"))
        self.assertIn("a must be a vector\nhint: as a vector of 2 elements it is one\n",
                      self.fail_with(1, "project", "[[3,4]]", "[1,2]"))
        self.assertIn("hint: with a and onto swapped it fits\n", self.fail_with(1, "project", "[[3],[4]]", "[1,2]"))


if __name__ == "__main__":
    unittest.main()
