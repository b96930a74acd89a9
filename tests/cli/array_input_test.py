"""How commands read arrays: literals, .npy, .npz, .csv, tensors of checkpoints; and what they refuse."""

import io
import struct
import unittest
import zipfile

from support import EXAMPLE, CommandTest, safetensors

LITERAL_HINT = "hint: a vector is written [3,4], a matrix by its rows, [[2,1],[1,-1]]\n"


def npy(shape, values, descr="<f8", code="d"):
    """Bytes of a .npy file."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{len(values)}{code}", *values))


class ArrayInput(CommandTest):
    def norm_of(self, argument):
        return self.json_of("norm", argument)["norm"]

    def refusal(self, argument):
        return self.fail_with(1, "norm", argument)

    def test_literals_are_vectors_and_matrices(self):
        self.assertEqual(self.norm_of("[3,4]"), 5)
        self.assertEqual(self.norm_of(" [[3, 0],[0, -4.0e0]] "), 5)
        self.assertEqual(self.norm_of("[]"), 0)
        self.assertEqual(self.norm_of("[[],[]]"), 0)
        self.assertEqual(self.succeed("norm", "[[3,0],[0,4]]"), "a  2x2\nnorm fro  5\n")

    def test_bad_literals_are_named(self):
        for literal, what in {
                "[[1,2],[3]]": "has 1 element in row 2, but 2 in row 1",
                '[1,"x"]': 'holds "x" at column 2, but every element is a number',
                "[[1,2],[3,null]]": "holds null at row 2, column 2, but every element is a number",
                "[[1],[[2]]]": "holds [2] at row 2, column 1, but every element is a number",
                "[[1],2]": "has a row and, in place of row 2, 2",
                "[1,[2]]": "holds [2] at column 2, but every element is a number",
                "[1,2": "is no JSON list (character 5)",
                "[1,2] x": "is no JSON list (character 7)",
                "[1,nan]": "is no JSON list (character 5)",
                "[01]": "is no JSON list (character 3)",
                "[1e999]": "holds a number beyond the range of double"}.items():
            self.assertEqual(self.refusal(literal), f"eckart: error: norm: {literal} {what}\n{LITERAL_HINT}")

    def test_npy_files_of_any_number_format(self):
        self.write("d.npy", npy([2], [3, 4]))
        self.write("i.npy", npy([1, 2], [3, 4], "<i8", "q"))
        self.write("f.npy", npy([], [-7], "<f4", "f"))
        self.assertEqual(self.norm_of("d.npy"), 5)
        self.assertEqual(self.norm_of("i.npy"), 5)
        self.assertEqual(self.norm_of("f.npy"), 7)

    def test_digits_that_a_float_lacks_are_kept(self):
        self.write("i.npy", npy([1], [2**24 + 1], "<i8", "q"))
        self.assertEqual(self.norm_of("i.npy"), 2**24 + 1)
        self.assertEqual(self.norm_of("[16777217]"), 2**24 + 1)

    def test_npy_files_that_are_no_numbers(self):
        self.write("text.npy", npy([1], [], "<U1", "f") + b"abcd")
        self.assertIn("text.npy", self.refusal("text.npy"))
        self.write("short.npy", npy([3], [1, 2]))
        self.assertIn("short.npy", self.refusal("short.npy"))
        self.assertEqual(self.refusal("gone.npy"),
                         "eckart: error: gone.npy: can't be opened: No such file or directory\n")
        self.write("x.npy", npy([2], [3, 4]))
        self.assertEqual(self.refusal("x.npy:a"),
                         "eckart: error: norm: x.npy is a file of one array, but a of it is asked for\n"
                         "hint: leave out the colon and what follows it\n")

    def test_a_matrix_larger_than_memory_is_refused_before_it_is_read(self):
        path = self.write("huge.npy", npy([1_000_000, 1_000_000], []))
        with path.open("r+b") as file:
            try:
                file.truncate(128 + 8 * 1_000_000**2)
            except OSError:
                self.skipTest("the file system has no sparse files of this size")
        self.assertRegex(self.refusal("huge.npy"),
                         r"^eckart: error: norm: huge\.npy is 1000000x1000000, which takes 8\.00 TB as double, "
                         r"but this machine has [0-9.]+ [GT]B of memory\n$")

    def write_npz(self, name, arrays):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for array, content in arrays.items():
                archive.writestr(array + ".npy", content)
        self.write(name, data.getvalue())

    def test_npz_archives_by_name_or_the_only_one(self):
        self.write_npz("one.npz", {"w": npy([2], [3, 4])})
        self.write_npz("two.npz", {"a": npy([2], [3, 4]), "b": npy([1], [7])})
        self.assertEqual(self.norm_of("one.npz"), 5)
        self.assertEqual(self.norm_of("two.npz:b"), 7)
        self.assertEqual(self.refusal("two.npz"),
                         "eckart: error: norm: two.npz holds 2 arrays, but one is wanted\n"
                         "hint: write two.npz:NAME, where NAME is one of a, b\n")
        self.assertIn('has no array "c"', self.refusal("two.npz:c"))
        self.write_npz("none.npz", {})
        self.assertIn("none.npz", self.refusal("none.npz"))

    def test_csv_tables_with_and_without_a_header(self):
        self.write("x.csv", "a;b\n3;0\n0;4\n")
        self.assertEqual(self.norm_of("x.csv"), 5)
        self.assertEqual(self.json_of("matmul", "x.csv", "[1,1]"), {"values": [3, 4], "shape": [2]})
        self.write("column.csv", "x\n3\n4\n")
        self.assertEqual(self.succeed("norm", "column.csv"), "a  2\nnorm 2  5\n")

    def test_bad_tables_are_named_by_row_and_column(self):
        self.write("ragged.csv", "a,b\n1,2\n3\n")
        self.assertEqual(self.refusal("ragged.csv"), "eckart: error: ragged.csv: row 3, column 2: the row has 1 cell, "
                                                     "but the first row has 2\n")
        self.write("word.csv", "1,2\n3,four\n")
        self.assertEqual(self.refusal("word.csv"), "eckart: error: word.csv: row 2, column 2: 'four' is no number\n")
        self.write("empty.csv", "")
        self.assertIn("the file is empty", self.refusal("empty.csv"))
        self.write("nul.csv", b"1,2\0\n")
        self.assertIn("holds a NUL at byte 3", self.refusal("nul.csv"))
        self.write("latin.csv", b"gr\xf6\xdfe\n1\n")
        self.assertIn("is not UTF-8 at byte 2", self.refusal("latin.csv"))

    def test_tensors_of_a_checkpoint(self):
        self.write("m.safetensors", safetensors({"w.weight": ("F32", [2], struct.pack("<2f", 3, 4)),
                                                 "v": ("BF16", [1], b"\x40\x40")}))
        self.assertEqual(self.norm_of("m.safetensors:w.weight"), 5)
        self.assertEqual(self.norm_of("m.safetensors:v"), 3)
        self.assertEqual(self.norm_of(f".:w.weight"), 5)
        self.assertEqual(self.succeed("norm", f"{EXAMPLE}:lm_head.weight").splitlines()[0], "a  1024x128")
        self.assertEqual(self.refusal("m.safetensors"),
                         "eckart: error: norm: m.safetensors holds 2 tensors, but one is wanted\n"
                         "hint: write m.safetensors:NAME, where NAME is one of v, w.weight\n")
        self.assertEqual(self.refusal("m.safetensors:w.weigth"),
                         "eckart: error: checkpoint: w.weigth is no tensor of m.safetensors, which holds 2\n"
                         "hint: did you mean w.weight?\n")
        self.assertEqual(self.refusal("m.safetensors:wei"),
                         "eckart: error: checkpoint: wei is no tensor of m.safetensors, which holds 2\n"
                         "hint: its tensors with that in their name: w.weight\n")

    def test_a_file_with_a_colon_in_its_name(self):
        self.write("a:b.npy", npy([2], [3, 4]))
        self.assertEqual(self.norm_of("a:b.npy"), 5)


if __name__ == "__main__":
    unittest.main()
