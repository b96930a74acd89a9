"""tools/check_tree against made-up trees."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckTree(unittest.TestCase):
    def assert_findings(self, files, lines):
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            done = subprocess.run([ROOT / "tools/check_tree", folder], capture_output=True,
                                  text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.splitlines(), done.stderr),
                         (1 if lines else 0, lines, ""))

    def test_a_tree_of_the_design_passes(self):
        self.assert_findings({"run": b"#!/bin/sh\n", "src/eckart/core/shape.h": b"#pragma once\n",
                              "tests/golden/npy/a.npy": b"\x93NUMPY\t ", "build/anything": b"x"}, [])

    def test_a_stray_file_and_a_stray_folder_are_told(self):
        self.assert_findings({"notes.txt": b"", "scratch/a.cpp": b""}, [
            "notes.txt:1: is not a file that the design has at the top",
            "scratch/a.cpp:1: scratch is not a folder of the design"])

    def test_a_name_that_says_nothing_is_told(self):
        self.assert_findings(
            {"src/eckart/core/utils.h": b""},
            ["src/eckart/core/utils.h:1: a name like utils.h says nothing of what is inside"])

    def test_blanks_tabs_and_a_missing_end_of_line_are_told_with_their_line(self):
        self.assert_findings({"docs/a.md": b"one\ntwo \nthree\r\nfo\tur\nfive"}, [
            "docs/a.md:5: the last line has no end", "docs/a.md:2: ends with a blank",
            "docs/a.md:3: ends with a blank", "docs/a.md:4: has a tab"])

    def test_unfinished_work_is_told(self):
        self.assert_findings({"src/eckart/core/a.h": b"\n// TO" b"DO: more\n"},
                             ["src/eckart/core/a.h:2: is unfinished"])

    def test_a_source_file_has_at_most_500_lines_and_a_test_any(self):
        self.assert_findings({"src/eckart/core/a.cpp": b"\n" * 500,
                              "tests/core/a_test.cpp": b"\n" * 501}, [])
        self.assert_findings(
            {"src/eckart/core/a.cpp": b"\n" * 501},
            ["src/eckart/core/a.cpp:501: has 501 lines, but a source file has at most 500"])

    def test_a_large_file_is_told(self):
        self.assert_findings({"examples/a/b.safetensors": b"\0" * ((5 << 19) + 1)}, [
            "examples/a/b.safetensors:1: has 2,621,441 bytes, but a file of the project has at most "
            "2,621,440"])


if __name__ == "__main__":
    unittest.main()
