"""eckart matmul: products and the arrangements that would fit."""

import unittest

from support import CommandTest


class Matmul(CommandTest):
    def test_the_product_with_its_shape(self):
        self.assertEqual(self.json_of("matmul", "[[1,2,3],[4,5,6]]", "[[7,8],[9,10],[11,12]]"),
                         {"values": [[58, 64], [139, 154]], "shape": [2, 2]})
        self.assertEqual(self.succeed("matmul", "[[2,1],[0,3]]", "[[1,-1],[2,0]]"),
                         "a  2x2   b  2x2\na b  2x2\n   4  -2\n   6   0\n")

    def test_vectors_give_a_vector_or_a_number(self):
        self.assertEqual(self.json_of("matmul", "[[1,2],[3,4]]", "[1,-1]"), {"values": [-1, -1], "shape": [2]})
        self.assertEqual(self.json_of("matmul", "[3,4]", "[4,3]"), {"values": 24, "shape": []})
        self.assertEqual(self.succeed("matmul", "[3,4]", "[4,3]"), "a  2   b  2\na b  24\n")

    def test_shapes_that_do_not_fit(self):
        self.assertEqual(self.fail_with(1, "matmul", "[[1,2,3],[4,5,6]]", "[[1,2,3],[4,5,6]]"),
                         "eckart: error: matmul: a is 2x3 and b is 2x3, but a's 3 columns must equal b's 2 rows\n"
                         "hint: with b transposed it fits: 2x3 by 3x2 gives 2x2; "
                         "with a transposed it fits: 3x2 by 2x3 gives 3x3\n")

    def test_the_result_is_written_whole_or_not_at_all(self):
        self.succeed("matmul", "[[1,2],[3,4]]", "[[1],[1]]", "-o", "out.npy")
        self.assertEqual(self.json_of("matmul", "[[1,0],[0,1]]", "out.npy"), {"values": [[3], [7]], "shape": [2, 1]})
        self.assertEqual(self.fail_with(2, "matmul", "[1]", "[1]", "-o", "out.txt"),
                         "eckart: error: matmul: the result can't be written to out.txt, but to a .npy file\n")
        self.fail_with(1, "matmul", "[[1,2]]", "[[1,2]]", "-o", "no.npy")
        self.assertFalse((self.folder / "no.npy").exists())

    def test_many_rows_and_columns_are_folded(self):
        row = "[" + ",".join(["1"] * 200) + "]"
        text = self.succeed("matmul", "[" + ",".join(["[1]"] * 30) + "]", "[" + row + "]")
        lines = text.splitlines()
        self.assertEqual(lines[:2], ["a  30x1   b  1x200", "a b  30x200"])
        self.assertEqual(len(lines), 2 + 20)
        self.assertIn("  …", lines)
        self.assertTrue(all(len(line) <= 100 for line in lines))

    def test_numbers_that_json_lacks_are_null(self):
        self.assertEqual(self.json_of("matmul", "[1e200]", "[1e200]"), {"values": None, "shape": []})


if __name__ == "__main__":
    unittest.main()
