"""eckart rank."""

import unittest

from support import CommandTest


class Rank(CommandTest):
    def test_the_worked_example(self):
        self.assertEqual(self.json_of("rank", "[[1,2],[2,4]]"), {"rank": 1})
        self.assertEqual(self.succeed("rank", "[[1,2],[2,4]]"), "a  2x2\nrank  1\n")

    def test_the_tolerance_decides(self):
        self.assertEqual(self.json_of("rank", "[[1,0],[0,1e-6]]")["rank"], 2)
        self.assertEqual(self.json_of("rank", "[[1,0],[0,1e-6]]", "--tolerance", "1e-3")["rank"], 1)

    def test_bad_input_is_named(self):
        self.assertIn("matrix", self.fail_with(1, "rank", "[1,2]"))
        self.assertEqual(self.fail_with(2, "rank", "[[1]]", "--tolerance=-1"),
                         "eckart: error: --tolerance is '-1', but must be a number at least 0\n")
        self.fail_with(2, "rank", "[[1]]", "--tolerance", "low")


if __name__ == "__main__":
    unittest.main()
