"""Values that an option doesn't take: status 2, the option named, in one voice."""

import os
import resource
import subprocess
import unittest

from support import ECKART, EXAMPLE, CommandTest

MATRIX = "[[2,1],[1,2]]"


class OptionValues(CommandTest):
    def test_bad_values_are_wrong_usage_and_name_the_option(self):
        lowrank = ("lowrank", MATRIX, "--rank", 1)
        for arguments, option, value, rule in (
                (("eigh", MATRIX), "--k", "-1", "--k is -1, but must be from 0 to"),
                (("eigh", MATRIX), "--k", "two", "'two' is no whole number"),
                (("eigh", MATRIX), "--which", "middle", "but must be largest or smallest"),
                (("solve", MATRIX, "[1,2]"), "--kind", "foo", "general, positive-definite, lower or upper"),
                (("rank", MATRIX), "--tolerance", "-1", "but must be a number at least 0"),
                (("rank", MATRIX), "--tolerance", "x", "but must be a number at least 0"),
                (("rank", MATRIX), "--tolerance", "inf", "but must be a number at least 0"),
                (("rank", MATRIX), "--tolerance", "1e999", "but must be a number at least 0"),
                (("norm", MATRIX), "--ord", "7", "but must be 1, 2, inf, fro, nuc or spectral"),
                (("cosine", "[1]", "[1]"), "--zero", "maybe", "but must be error, zero or nan"),
                (("lstsq", MATRIX, "[1,2]"), "--ridge", "-1", "but must be a number at least 0"),
                (("lstsq", MATRIX, "[1,2]"), "--ridge", "much", "but must be a number or loo"),
                (lowrank, "--tolerance", "0", "but must be a number above 0 and below 1"),
                (lowrank, "--tolerance", "x", "but must be a number above 0 and below 1"),
                (("lowrank", MATRIX), "--energy", "1", "but must be a number above 0 and below 1"),
                (("lowrank", MATRIX), "--error", "nan", "but must be a number above 0 and below 1"),
                (lowrank, "--seed", "-1", "but must be from 0 to"),
                (lowrank, "--seed", "99999999999999999999", "but must be from 0 to"),
                (("spectrum", EXAMPLE), "--top", "-1", "--top is -1, but must be from 0 to"),
                (("spectrum", EXAMPLE), "--bootstrap", "x", "is no whole number"),
                (("spectrum", EXAMPLE), "--seed", "-1", "but must be from 0 to"),
                (("spectrum", EXAMPLE), "--seed", "1.5", "is no whole number"),
                (("pca", "fit", MATRIX), "--share", "0", "but must be a number above 0 and at most 1"),
                (("pca", "fit", MATRIX), "--solver", "magic", "covariance, svd or randomized"),
                (("pca", "fit", MATRIX), "--seed", "-1", "but must be from 0 to"),
                (("matmul", MATRIX, MATRIX), "-o", "x.txt", "but to a .npy file"),
                (("norm", MATRIX), "-o", "x", "but to a .npy file"),
                (("lowrank", MATRIX, "--rank", 1), "--b", "b.npz", "but to a .npy file"),
                (("pca", "transform", "model.npz", MATRIX), "-o", "x.csv", "but to a .npy file"),
                (("pca", "fit", MATRIX), "-o", "x.npy", "but to an .npz file")):
            with self.subTest(command=arguments[0], option=option, value=value):
                message = self.fail_with(2, *arguments, option, value)
                self.assertIn(rule, message)
                self.assertIn(value, message)
                if option != "-o" and option != "--b":
                    self.assertIn(option, message)
                self.assertEqual(os.listdir(self.folder), [])

    def test_an_option_without_a_value_or_with_two_and_a_flag_with_one(self):
        self.assertIn("--k takes a value, K, but none follows", self.fail_with(2, "eigh", MATRIX, "--k"))
        self.assertIn("--output takes a value, PATH, but none follows", self.fail_with(2, "solve", MATRIX, "[1,2]", "-o"))
        self.assertIn("--rank is given 2 times, but takes one value",
                      self.fail_with(2, "lowrank", MATRIX, "--rank", 1, "--rank", 2))
        self.assertIn("--json is a flag and takes no value", self.fail_with(2, "rank", MATRIX, "--json=maybe"))

    def test_options_that_rule_each_other_out(self):
        for arguments in (("lowrank", MATRIX, "--rank", 1, "--energy", 0.5), ("lowrank", MATRIX, "--energy", 0.5, "--error", 0.5),
                          ("spectrum", EXAMPLE, "--csv", "--json"), ("spectrum", EXAMPLE, "--csv", "--html", "x.html")):
            message = self.fail_with(2, *arguments)
            self.assertRegex(message, r"--\w+ and --\w+ are both given, but only one of them is taken\n")
        self.assertIn("--lora-targets is given without --lora-rank, which it needs",
                      self.fail_with(2, "count", EXAMPLE, "--lora-targets", "w_q"))

        self.assertIn("--solver randomized is given without -k, which it needs",
                      self.fail_with(2, "pca", "fit", MATRIX, "--solver", "randomized"))

    def test_the_seed_takes_every_number_of_63_bits(self):
        self.succeed("lowrank", MATRIX, "--rank", 1, "--seed", 2**63 - 1)

    def test_a_folder_that_is_missing_is_known_before_the_work(self):
        for arguments in (("solve", MATRIX, "[1,2]", "-o", "nowhere/x.npy"), ("svd", MATRIX, "--values", "-o", "nowhere/s.npy"),
                          ("pca", "fit", MATRIX, "-o", "nowhere/m.npz"), ("pca", "plot", MATRIX, "-o", "nowhere/p.svg"),
                          ("spectrum", "no-such-model", "--html", "nowhere/page.html")):
            self.assertIn("nowhere", self.fail_with(1, *arguments))
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_limit_on_the_size_of_files_is_an_error_like_a_full_disk(self):
        matrix = self.write("x.csv", "".join(",".join(str(i * j % 7) for j in range(100)) + "\n" for i in range(100)))
        result = subprocess.run(
            [str(ECKART), "matmul", str(matrix), str(matrix), "-o", "product.npy"], cwd=self.folder, text=True,
            capture_output=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("the file may not grow that large here", result.stderr)
        self.assertIn("ulimit -f", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["x.csv"])


if __name__ == "__main__":
    unittest.main()
