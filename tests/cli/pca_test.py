"""eckart pca: models that are fitted, applied and drawn."""

import subprocess
import unittest
import xml.etree.ElementTree as ElementTree
import zipfile

from support import ROOT, CommandTest

FIVE = "[[1,1],[2,2.1],[3,2.9],[4,4.2],[5,4.8]]"
EMBEDDINGS = ROOT / "tests/golden/worked_examples/embeddings_2000x300.npy"
SVG = "{http://www.w3.org/2000/svg}"


class Fit(CommandTest):
    def test_the_model_of_five_points(self):
        model = self.json_of("pca", "fit", FIVE, "-k", 2)
        self.assertEqual(list(model), ["mean", "scale", "components", "explained_variance", "explained_variance_ratio",
                                       "total_variance", "n_samples", "whiten", "rank", "solver", "converged",
                                       "iterations", "residual", "warnings"])
        self.assertEqual(model["mean"], [3, 3])
        self.assertAlmostEqual(model["components"][0][0], 0.7162, 4)
        self.assertAlmostEqual(model["explained_variance_ratio"][0], 0.9976, 4)
        self.assertEqual(model["solver"], "covariance")
        self.assertEqual(model["warnings"], [])
        self.assertIsNone(model["scale"])

    def test_the_table_shows_shapes_shares_and_the_solver(self):
        text = self.succeed("pca", "fit", FIVE)
        self.assertIn("x  5x2\n", text)
        self.assertIn("covariance solver", text)
        self.assertRegex(text, r"1 +4\.8633 +99\.8% +99\.8%\n")
        self.assertRegex(text, r"2 +0\.011695 +0\.2% +100\.0%\n")

    def test_a_share_says_how_many_components(self):
        model = self.json_of("pca", "fit", EMBEDDINGS, "--share", "0.9")
        self.assertEqual(len(model["components"]), 18)
        text = self.succeed("pca", "fit", EMBEDDINGS, "-k", 50)
        self.assertIn("…", text)
        self.assertRegex(text, r"\n +50 ")

    def test_columns_of_different_units_are_a_warning_that_scaling_ends(self):
        units = "[[1000,1],[2000,2.1],[3000,2.9],[4000,4.2],[5000,4.8]]"
        self.assertIn("warning  column 0 varies", self.succeed("pca", "fit", units))
        self.assertNotIn("warning", self.succeed("pca", "fit", units, "--scale"))

    def test_what_cannot_be_fitted_is_named(self):
        error = self.fail_with(1, "pca", "fit", FIVE, "-k", 3)
        self.assertIn("k is 3, but x is 5x2", error)
        self.assertIn("hint: leave -k out for all of them", error)
        self.assertIn("(1, 0)", self.fail_with(1, "pca", "fit", self.write("x.csv", "1,2\nnan,4\n5,6\n")))
        self.assertIn("one row", self.fail_with(1, "pca", "fit", "[[1,2]]"))
        self.assertIn("to an .npz file", self.fail_with(2, "pca", "fit", FIVE, "-o", "model.npy"))
        for arguments in (("-k", 2, "--share", "0.5"), ("--share", "2"), ("--share", "x"), ("-k", 0)):
            self.fail_with(2, "pca", "fit", FIVE, *arguments)
        self.assertEqual(list(self.folder.glob("*.np*")), [])


class Transform(CommandTest):
    def test_scores_come_back_as_the_rows(self):
        self.succeed("pca", "fit", FIVE, "-o", "model.npz")
        scores = self.json_of("pca", "transform", "model.npz", FIVE, "-o", "scores.npy")
        self.assertEqual(scores["shape"], [5, 2])
        self.assertAlmostEqual(abs(scores["scores"][0][0]), 2.8282, 4)
        back = self.json_of("pca", "transform", "--inverse", "model.npz", "scores.npy")
        for row, expected in zip(back["x"], [[1, 1], [2, 2.1], [3, 2.9], [4, 4.2], [5, 4.8]]):
            self.assertAlmostEqual(row[0], expected[0], 10)
            self.assertAlmostEqual(row[1], expected[1], 10)

    def test_scaling_and_whitening_are_kept_in_the_model(self):
        self.succeed("pca", "fit", FIVE, "--scale", "--whiten", "-o", "model.npz")
        scores = self.json_of("pca", "transform", "model.npz", FIVE)["scores"]
        for component in range(2):
            self.assertAlmostEqual(sum(row[component] ** 2 for row in scores) / 4, 1, 10)

    def test_the_model_is_an_archive_that_other_programs_read(self):
        self.succeed("pca", "fit", FIVE, "-o", "model.npz")
        with zipfile.ZipFile(self.folder / "model.npz") as archive:
            self.assertIsNone(archive.testzip())
            self.assertIn("components.npy", archive.namelist())
            self.assertTrue(archive.read("mean.npy").startswith(b"\x93NUMPY\x01\x00"))

    def test_what_is_no_model_and_what_does_not_fit_is_named(self):
        self.succeed("pca", "fit", FIVE, "-o", "model.npz")
        self.assertIn("x is 1x3", self.fail_with(1, "pca", "transform", "model.npz", "[[1,2,3]]"))
        with zipfile.ZipFile(self.folder / "other.npz", "w"):
            pass
        self.assertIn("no model", self.fail_with(1, "pca", "transform", "other.npz", FIVE))
        self.fail_with(1, "pca", "transform", "missing.npz", FIVE)
        self.succeed("matmul", "[[1,2],[3,4]]", "[[1,0],[0,1]]", "-o", "rand.npy")
        self.assertEqual(self.fail_with(1, "pca", "transform", "rand.npy", FIVE),
                         "eckart: error: pca: rand.npy is no model of principal components: a model is an .npz file\n"
                         "hint: `eckart pca fit X.npy -o model.npz` writes one\n")
        self.assertIn("pca: [[1,2]] is no model of principal components",
                      self.fail_with(1, "pca", "transform", "[[1,2]]", "model.npz"))

    def test_axes_without_a_name_are_not_shown(self):
        self.assertNotIn("?", self.succeed("pca", "fit", FIVE, "-o", "model.npz"))
        for arguments in ((FIVE,), ("--inverse", "[[0,0]]")):
            self.assertNotIn("?", self.succeed("pca", "transform", "model.npz", *arguments))

    def test_values_too_small_for_their_variance_are_refused(self):
        error = self.fail_with(1, "pca", "fit", "[[1e-300,0],[0,1e-300],[3e-300,1e-300]]")
        self.assertIn("pca fit: the largest element of x is 3e-300, whose square is below the range of double", error)
        self.assertIn("hint: divide x by its largest element", error)
        self.assertIn("1e-120", self.succeed("pca", "fit", "[[1e-60],[3e-60],[2e-60]]"))
        self.succeed("pca", "fit", "[[0],[0],[0]]")


class Plot(CommandTest):
    def draw(self, *arguments):
        self.succeed("pca", "plot", *arguments, "-o", "plot.svg")
        text = (self.folder / "plot.svg").read_text(encoding="utf-8")
        self.assertEqual(text.count("http"), 1, "the name space alone: no request to anywhere")
        return ElementTree.fromstring(text)

    def texts(self, svg):
        return [text.text for text in svg.iter(SVG + "text")]

    def points(self, svg):
        return [path for path in svg.iter(SVG + "path") if path.get("class").startswith("point")]

    def test_axes_say_what_they_explain(self):
        svg = self.draw(FIVE)
        self.assertIn("component 1 (99.8% of the variance)", self.texts(svg))
        self.assertIn("component 2 (0.2% of the variance)", self.texts(svg))
        self.assertEqual(len(self.points(svg)), 5)

    def test_a_model_is_drawn_with_its_training_set(self):
        self.succeed("pca", "fit", FIVE, "-o", "model.npz")
        self.assertEqual([point.get("transform") for point in self.points(self.draw("model.npz"))],
                         [point.get("transform") for point in self.points(self.draw(FIVE))])

    def test_few_labels_are_groups_that_differ_in_shape_too(self):
        labels = self.write("labels.txt", "cat\ndog\ncat\r\n<b>&\ndog\n")
        svg = self.draw(FIVE, "--labels", labels)
        self.assertEqual([text for text in self.texts(svg) if text in ("cat", "dog", "<b>&")], ["cat", "dog", "<b>&"])
        self.assertEqual(len({point.get("d") for point in self.points(svg)[:5]}), 3)

    def test_labels_that_no_markup_can_hold_are_drawn_as_codes(self):
        labels = self.write("labels.txt", b"a\x1b[31m\nb\xff\nc\xe2\x80\xae\nd\tx\x0b\n\xef\xbf\xbfe\n")
        titles = [title.text for title in self.draw(FIVE, "--labels", labels).iter(SVG + "title")]
        for text in ("a\\x1B[31m", "b\\xFF", "c\\xE2\\x80\\xAE", "d x ", "\\xEF\\xBF\\xBFe"):
            self.assertIn(text, titles)
        # Joiners belong to what is written with them.
        joined = self.write("labels.txt", "".join(f"\u0645\u06cc\u200c\u062e {i}\n" for i in range(5)))
        self.assertIn("\u0645\u06cc\u200c\u062e 1",
                      [title.text for title in self.draw(FIVE, "--labels", joined).iter(SVG + "title")])

    def test_many_labels_stand_beside_their_points(self):
        rows = "[" + ",".join(f"[{i},{i * i % 7}]" for i in range(12)) + "]"
        labels = self.write("labels.txt", "".join(f"word {i}\n" for i in range(12)))
        svg = self.draw(rows, "--labels", labels)
        self.assertTrue({f"word {i}" for i in range(12)} <= set(self.texts(svg)))

    def test_what_cannot_be_drawn_is_named(self):
        labels = self.write("labels.txt", "a\nb\n")
        self.assertIn("2 lines, but there are 5 rows",
                      self.fail_with(1, "pca", "plot", FIVE, "--labels", labels, "-o", "plot.svg"))
        self.assertIn("none.txt", self.fail_with(1, "pca", "plot", FIVE, "--labels", "none.txt", "-o", "plot.svg"))
        self.assertIn("1 component", self.fail_with(1, "pca", "plot", "[[1],[2]]", "-o", "plot.svg"))
        self.assertIn(".svg", self.fail_with(2, "pca", "plot", FIVE, "-o", "plot.png"))
        self.fail_with(2, "pca", "plot", FIVE)
        self.assertEqual(list(self.folder.glob("plot*")), [])


class Nested(CommandTest):
    def test_help_names_the_commands_of_a_group(self):
        text = self.succeed("pca", "--help")
        self.assertIn("Usage: eckart pca COMMAND", text)
        for command in ("fit", "transform", "plot"):
            self.assertIn(f"\n  {command} ", text)
            self.assertIn(f"Usage: eckart pca {command}", self.succeed("pca", command, "--help"))
            self.assertTrue(self.succeed("pca", command, "--help").startswith(f"Example:\n  $ eckart pca {command}"))

    def test_wrong_words_are_answered_by_the_group(self):
        self.assertIn("no command 'fot' of pca; did you mean fit?", self.fail_with(2, "pca", "fot"))
        self.assertIn("eckart pca --help", self.fail_with(2, "pca"))
        self.assertIn("eckart pca fit --help", self.fail_with(2, "pca", "fit", FIVE, "--nonsense"))
        self.assertIn("X is missing", self.fail_with(2, "pca", "fit"))

    def test_man_page_and_completions_know_them(self):
        page = self.succeed("man").replace("\\-", "-")
        self.assertIn(".SS eckart pca fit X [OPTIONS]", page)
        self.assertIn("--share", page)
        bash = self.succeed("completion", "bash")

        def offered(*words):
            script = bash + f"\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _eckart; echo ${{COMPREPLY[@]}}"
            return subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True).stdout.split()

        self.assertEqual(offered("eckart", "pca", "tr"), ["transform"])
        self.assertEqual(offered("eckart", "pca", "fit", "x.npy", "--sha"), ["--share"])
        self.assertEqual(offered("eckart", "pca", "fit", "--solver", "cov"), ["covariance"])
        self.assertIn("pca", offered("eckart", "p"))
        zsh = self.succeed("completion", "zsh")
        self.assertIn('"pca fit") _arguments', zsh)
        self.assertIn("__fish_seen_subcommand_from pca; and __fish_seen_subcommand_from fit",
                      self.succeed("completion", "fish"))


if __name__ == "__main__":
    unittest.main()
