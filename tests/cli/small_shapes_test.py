"""Matrices of no rows or columns, and of one element: right answers or errors, as NumPy has them."""

import pathlib
import struct
import unittest

from support import CommandTest


def npy(*shape):
    """Bytes of a .npy file of zeros."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    count = 1
    for size in shape:
        count *= size
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8 * count)


class SmallShapes(CommandTest):
    def setUp(self):
        super().setUp()
        for shape in ((3, 0), (0, 3), (0, 0), (2, 2, 0)):
            self.write("x".join(map(str, shape)) + ".npy", npy(*shape))
        self.write("0.npy", npy(0))
        self.write("3.npy", npy(3))

    def test_products(self):
        for a, b, shape in (("3x0", "0x3", [3, 3]), ("0x3", "3x0", [0, 0]), ("0x0", "0x0", [0, 0]), ("0", "0", []),
                            ("3x0", "0", [3]), ("2x2x0", "0x3", [2, 2, 3])):
            self.assertEqual(self.json_of("matmul", a + ".npy", b + ".npy")["shape"], shape, (a, b))
        # A sum of nothing is 0.
        self.assertEqual(self.json_of("matmul", "3x0.npy", "0x3.npy")["values"], [[0] * 3] * 3)
        self.assertEqual(self.json_of("matmul", "[[2]]", "[[3]]")["values"], [[6]])
        self.write("scalar.npy", npy())
        self.assertEqual(self.fail_with(1, "matmul", "scalar.npy", "[[1]]"),
                         "eckart: error: matmul: a is scalar and b is 1x1, but a product of matrices takes no scalar\n")
        self.assertIn("a's 0 columns must equal b's 3 rows", self.fail_with(1, "matmul", "3x0.npy", "3x0.npy"))

    def test_norms(self):
        for shape in ("3x0", "0x3", "0x0", "0"):
            self.assertEqual(self.json_of("norm", shape + ".npy")["norm"], 0, shape)
        self.assertEqual(self.json_of("norm", "3x0.npy", "--axis", 1)["norm"], [0, 0, 0])
        self.assertEqual(self.json_of("norm", "3x0.npy", "--axis", 0)["norm"], [])
        self.assertEqual(self.json_of("norm", "[[-2]]", "--ord", "spectral")["norm"], 2)

    def test_cosines(self):
        self.assertEqual(self.json_of("cosine", "0x3.npy", "0x3.npy")["cosine"], [])
        # numpy.linalg.norm is 0 there: no direction.
        self.assertIn("zero vector", self.fail_with(1, "cosine", "3x0.npy", "3x0.npy"))
        self.assertIn("zero vector", self.fail_with(1, "cosine", "0.npy", "0.npy"))
        self.assertEqual(self.json_of("cosine", "[[2]]", "[[-3]]")["cosine"], [[-1]])

    def test_systems(self):
        self.assertEqual(self.json_of("solve", "0x0.npy", "0.npy")["x"], [])
        self.assertEqual(self.json_of("solve", "[[4]]", "[2]")["x"], [0.5])
        self.assertIn("singular", self.fail_with(1, "solve", "[[0]]", "[1]"))
        self.fail_with(1, "solve", "3x0.npy", "3.npy")
        # No columns: nothing to choose, and b is what is left. No rows: the shortest x is 0.
        found = self.json_of("lstsq", "3x0.npy", "3.npy")
        self.assertEqual([found["x"], found["rank"], found["residual_norm"]], [[], 0, 0])
        found = self.json_of("lstsq", "0x3.npy", "0.npy")
        self.assertEqual([found["x"], found["rank"]], [[0, 0, 0], 0])
        self.assertEqual(self.json_of("lstsq", "[[2]]", "[6]")["x"], [3])

    def test_projections(self):
        self.assertEqual(self.json_of("project", "[1,2,3]", "3x0.npy")["projection"], [0, 0, 0])
        self.assertEqual(self.json_of("project", "[3]", "[[2]]")["projection"], [3])
        self.assertIn("rows must equal", self.fail_with(1, "project", "[1,2,3]", "0x3.npy"))

    def test_ranks(self):
        for shape in ("3x0", "0x3", "0x0"):
            self.assertEqual(self.json_of("rank", shape + ".npy")["rank"], 0, shape)
        self.assertEqual([self.json_of("rank", a)["rank"] for a in ("[[0]]", "[[5]]")], [0, 1])

    def test_eigenvalues(self):
        self.assertEqual(self.json_of("eigh", "0x0.npy"), {"values": [], "vectors": []})
        self.assertEqual(self.json_of("eigh", "[[3]]"), {"values": [3], "vectors": [[1]]})
        self.assertEqual(self.json_of("eigh", "[[3]]", "--k", 0), {"values": [], "vectors": [[]]})
        self.assertIn("as many rows as columns", self.fail_with(1, "eigh", "3x0.npy"))

    def test_singular_values(self):
        for shape, factors in (("3x0", {"u": [[], [], []], "s": [], "vt": []}),
                               ("0x3", {"u": [], "s": [], "vt": []}), ("0x0", {"u": [], "s": [], "vt": []})):
            self.assertEqual(self.json_of("svd", shape + ".npy"), factors)
            self.assertEqual(self.json_of("svd", shape + ".npy", "--values"), {"s": []})
        self.assertEqual(self.json_of("svd", "[[-2]]")["s"], [2])

    def test_low_rank(self):
        for shape in ("3x0", "0x3", "0x0"):
            message = self.fail_with(1, "lowrank", shape + ".npy", "--rank", 1)
            self.assertIn(f"lowrank: a is {shape} and rank is 1, but", message)
        found = self.json_of("lowrank", "[[3]]", "--rank", 1)
        self.assertAlmostEqual(found["b"][0][0] * found["a"][0][0], 3)

    def test_principal_components(self):
        self.assertIn("one row has no variance", self.fail_with(1, "pca", "fit", "[[1]]"))
        for shape in ("3x0", "0x3", "0x0"):
            self.assertTrue(self.fail_with(1, "pca", "fit", shape + ".npy").startswith("eckart: error: pca: x is "))

    def test_text_and_files_of_them(self):
        for arguments in (("matmul", "0x3.npy", "3x0.npy"), ("solve", "0x0.npy", "0.npy"), ("svd", "3x0.npy"),
                          ("norm", "3x0.npy", "--axis", "0"), ("lstsq", "3x0.npy", "3.npy")):
            self.assertNotEqual(self.succeed(*arguments), "")
        self.succeed("matmul", "0x3.npy", "3x0.npy", "-o", "none.npy")
        self.assertEqual((self.folder / "none.npy").read_bytes(), npy(0, 0))
        self.assertEqual(pathlib.Path(self.folder / "none.npy").stat().st_size % 64, 0)


if __name__ == "__main__":
    unittest.main()
