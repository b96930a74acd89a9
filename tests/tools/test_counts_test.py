"""tools/test_counts on what the programs print."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True  # no cache beside the tool
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from test_counts import Counts, count_ctest, count_program  # noqa: E402

GTEST_GOOD = """[==========] Running 3 tests from 1 test suite.
[       OK ] Shape.Some (0 ms)
[==========] 3 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Model.Real
"""
GTEST_BAD = """[==========] Running 5 tests from 1 test suite.
[  FAILED  ] Shape.Some (0 ms)
[==========] 5 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 3 tests.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Shape.Some
[  FAILED  ] Shape.Other
"""


class ProgramCounts(unittest.TestCase):
    def test_a_gtest_program_tells_its_tests(self):
        self.assertEqual(count_program(GTEST_GOOD), Counts(2, 0, 1))
        self.assertEqual(count_program(GTEST_BAD), Counts(3, 2, 0))

    def test_a_gtest_program_that_broke_off_has_no_result(self):
        self.assertEqual(count_program("[==========] Running 3 tests from 1 test suite.\n"), Counts())

    def test_a_unittest_program_tells_its_tests(self):
        self.assertEqual(count_program("....\n\nRan 4 tests in 0.1s\n\nOK\n"), Counts(4, 0, 0))
        self.assertEqual(count_program("Ran 9 tests in 1s\n\nFAILED (failures=2, errors=1, skipped=3)\n"),
                         Counts(3, 3, 3))

    def test_anything_else_is_no_test_program(self):
        self.assertIsNone(count_program("all is well\n"))


class CtestCounts(unittest.TestCase):
    def test_each_programs_own_tests_are_summed(self):
        text = "".join(f"1: {line}\n" for line in GTEST_GOOD.splitlines())
        text += "1/2 Test #1: core .............................   Passed    0.01 sec\n"
        text += "test 2\n2: it compiles not, as it must\n"
        text += "2/2 Test #2: must_not_compile.view ............   Passed    0.01 sec\n"
        self.assertEqual(count_ctest(text), (Counts(3, 0, 1), {}))

    def test_a_failure_brings_its_output(self):
        text = "".join(f"7: {line}\n" for line in GTEST_BAD.splitlines())
        text += " 7/12 Test  #7: io ...............................***Failed    0.01 sec\n"
        counts, failures = count_ctest(text)
        self.assertEqual(counts, Counts(3, 2, 0))
        self.assertEqual(failures, {"io": ["io: Failed", *GTEST_BAD.splitlines()]})

    def test_a_crash_is_one_failure(self):
        text = ("3: [==========] Running 5 tests from 1 test suite.\n"
                "1/1 Test #3: core .....***Exception: SegFault  0.10 sec\n")
        counts, failures = count_ctest(text)
        self.assertEqual(counts, Counts(0, 1, 0))
        self.assertEqual(failures["core"][0], "core: Exception: SegFault")

    def test_a_program_that_fails_after_its_tests_passed_is_a_failure_more(self):
        text = "".join(f"1: {line}\n" for line in GTEST_GOOD.splitlines())
        counts, _ = count_ctest(text + "1/1 Test #1: core .....***Failed   0.10 sec\n")
        self.assertEqual(counts, Counts(2, 1, 1))

    def test_a_program_that_could_not_run_is_a_failure(self):
        counts, _ = count_ctest("1/1 Test #3: core .....***Not Run   0.00 sec\n")
        self.assertEqual(counts, Counts(0, 1, 0))

    def test_a_skipped_program_is_skipped(self):
        counts, _ = count_ctest("1/1 Test #3: core .....***Skipped   0.00 sec\n")
        self.assertEqual(counts, Counts(0, 0, 1))


if __name__ == "__main__":
    unittest.main()
