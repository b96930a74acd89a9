"""eckart lowrank: what it prints, writes and refuses."""

import json
import unittest

from support import CommandTest


class Lowrank(CommandTest):
    def test_prints_rank_error_and_values(self):
        said = self.succeed("lowrank", "[[2,1],[1,2]]", "--rank", "1")
        self.assertIn("rank            1\n", said)
        self.assertIn("relative_error  0.316228   ||a - b a||_F = 1 of 3.16228\n", said)

    def test_json_has_the_factors(self):
        found = json.loads(self.succeed("lowrank", "[[2,1],[1,2]]", "--rank", "1", "--json"))
        self.assertEqual(found["rank"], 1)
        self.assertAlmostEqual(found["relative_error"], 0.1 ** 0.5)
        product = [[found["b"][i][0] * found["a"][0][j] for j in range(2)] for i in range(2)]
        for row in product:
            for entry in row:
                self.assertAlmostEqual(entry, 1.5)

    def test_takes_a_share_of_the_energy_or_an_error(self):
        diagonal = "[[3,0,0],[0,2,0],[0,0,1]]"  # energies 9/14, 13/14, 1
        self.assertEqual(json.loads(self.succeed("lowrank", diagonal, "--energy", "0.9", "--json"))["rank"], 2)
        self.assertEqual(json.loads(self.succeed("lowrank", diagonal, "--energy", "0.6", "--json"))["rank"], 1)
        self.assertEqual(json.loads(self.succeed("lowrank", diagonal, "--error", "0.3", "--json"))["rank"], 2)

    def test_writes_product_and_factors(self):
        self.succeed("lowrank", "[[2,1],[1,2]]", "--rank", "1", "-o", "w.npy", "--b", "b.npy", "--a", "a.npy")
        norm = json.loads(self.succeed("norm", "w.npy", "--json"))["norm"]
        self.assertAlmostEqual(norm, 3)
        again = json.loads(self.succeed("matmul", "b.npy", "a.npy", "--json"))
        self.assertEqual(again["shape"], [2, 2])
        self.assertAlmostEqual(again["values"][0][1], 1.5)

    def test_refuses_what_it_cannot_do(self):
        self.assertIn("lowrank: a is 2x2 and rank is 3, but it must be from 1 to 2",
                      self.fail_with(1, "lowrank", "[[2,1],[1,2]]", "--rank", "3"))
        self.assertIn("nothing says how much to keep, but one of --rank, --energy and --error must\n",
                      self.fail_with(2, "lowrank", "[[2,1],[1,2]]"))
        for arguments in (["--energy", "1.5"], ["--energy", "0"], ["--error", "0"], ["--rank", "0"], ["--rank", "x"],
                          ["--tolerance", "0"], ["--rank", "1", "--seed", "-1"],
                          ["--rank", "1", "--b", "q.npy", "--a", "q.npy"]):
            result = self.run_eckart("lowrank", "[[2,1],[1,2]]", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(arguments[-1], result.stderr)
        both = self.run_eckart("lowrank", "[[2,1],[1,2]]", "--rank", "1", "--energy", "0.5")
        self.assertEqual(both.returncode, 2)
        self.assertIn("are both given, but only one of them is taken", both.stderr)
        self.fail_with(2, "lowrank", "[[2,1],[1,2]]", "--rank", "1", "--b", "q.npy", "--a", "./q.npy")

    def test_nothing_is_written_on_an_error(self):
        self.run_eckart("lowrank", "[[2,1],[1,2]]", "--rank", "3", "-o", "w.npy")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_files_of_one_result_appear_together_or_not_at_all(self):
        self.assertIn("nowhere", self.fail_with(1, "lowrank", "[[2,1],[1,2]]", "--rank", "1", "-o", "w.npy",
                                                "--b", "b.npy", "--a", "nowhere/a.npy"))
        self.assertEqual(list(self.folder.iterdir()), [])
        self.fail_with(2, "lowrank", "[[2,1],[1,2]]", "--rank", "1", "--b", "b.npy", "--a", "a.txt")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
