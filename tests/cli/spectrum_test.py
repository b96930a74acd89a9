"""eckart spectrum: the figures of every matrix, and what is said of those without."""

import csv
import html.parser
import io
import json
import math
import os
import random
import re
import struct
import subprocess
import unittest

from support import ECKART, EXAMPLE, MINILM, CommandTest, safetensors


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def diagonal(*values):
    n = len(values)
    return ("F32", [n, n], f32(*(values[i] if i == j else 0 for i in range(n) for j in range(n))))


class Spectrum(CommandTest):
    def of(self, tensors, *options):
        self.write("model.safetensors", safetensors(tensors))
        return self.json_of("spectrum", "model.safetensors", *options)

    def test_a_diagonal_matrix_has_its_entries_for_singular_values(self):
        one = self.of({"w": diagonal(4, 2, 1, 1)})["tensors"][0]
        self.assertEqual([one["name"], one["shape"]], ["w", [4, 4]])
        self.assertAlmostEqual(one["frobenius_norm"], math.sqrt(22))
        self.assertAlmostEqual(one["spectral_norm"], 4)
        self.assertAlmostEqual(one["stable_rank"], 22 / 16)
        p = [4 / 8, 2 / 8, 1 / 8, 1 / 8]
        self.assertAlmostEqual(one["effective_rank"], math.exp(-sum(x * math.log(x) for x in p)))
        self.assertEqual(one["numerical_rank"], 4)
        for found, expected in zip(one["top"], [4, 2, 1, 1]):
            self.assertAlmostEqual(found, expected)
        self.assertEqual(one["energy_ranks"], {"0.5": 1, "0.9": 2, "0.99": 4})
        self.assertTrue(one["is_exact"])
        self.assertEqual(one["errors"]["effective_rank"], 0)

    def test_every_matrix_of_the_bundled_example_is_there(self):
        found = self.json_of("spectrum", EXAMPLE)
        inspected = self.json_of("inspect", EXAMPLE, "--tensors")["tensors"]
        matrices = [tensor["name"] for tensor in inspected if len(tensor["shape"]) == 2]
        self.assertEqual([tensor["name"] for tensor in found["tensors"]], matrices)
        self.assertEqual(len(found["left_out"]), len(inspected) - len(matrices))
        self.assertEqual(found["skipped"], [])
        for tensor in found["tensors"]:
            self.assertAlmostEqual(sum(tensor["density"]["counts"]), min(tensor["shape"]))
            self.assertLessEqual(tensor["stable_rank"], tensor["effective_rank"] * 1.0001 + min(tensor["shape"]))

    def test_a_pattern_and_top_choose_what_is_listed(self):
        tensors = self.json_of("spectrum", EXAMPLE, "--tensor", "*q_proj*", "--top", 3)["tensors"]
        self.assertEqual(len(tensors), 4)
        self.assertTrue(all(len(tensor["top"]) == 3 for tensor in tensors))
        self.assertIn("'*proj_q*'", self.fail_with(1, "spectrum", EXAMPLE, "--tensor", "proj_q"))

    def test_nan_is_named_with_its_place_and_status_1(self):
        self.write("model.safetensors", safetensors({"w": ("F32", [2, 2], f32(1, 2, math.nan, 4))}))
        result = self.run_eckart("spectrum", "model.safetensors")
        self.assertEqual(result.returncode, 1)
        self.assertIn("1 NaN (first at [1, 0]): no singular values", result.stdout)
        one = self.report_of("spectrum", "model.safetensors")["tensors"][0]
        self.assertIsNone(one["spectral_norm"])
        self.assertIsNone(one["frobenius_norm"])
        self.assertRegex(result.stdout, r"Frobenius norm +-\n")
        row = next(csv.DictReader(io.StringIO(self.run_eckart("spectrum", "model.safetensors", "--csv").stdout)))
        self.assertEqual([row["frobenius_norm"], row["n_nan"]], ["", "1"])
        self.assertEqual(one["nan"], {"count": 1, "first": [1, 0]})

    def test_a_zero_matrix_has_no_ratios(self):
        one = self.of({"w": ("F32", [3, 2])})["tensors"][0]
        self.assertIsNone(one["stable_rank"])
        self.assertEqual([one["spectral_norm"], one["numerical_rank"]], [0, 0])
        self.assertIn("every entry is 0", self.succeed("spectrum", "model.safetensors"))

    def test_what_cannot_be_read_is_named_with_its_reason(self):
        packed = {"model.layers.0.mlp.up_proj.qweight": ("I32", [4, 32]),
                  "model.layers.0.mlp.up_proj.qzeros": ("I32", [1, 4]),
                  "model.layers.0.mlp.up_proj.scales": ("F16", [1, 32]),
                  "model.layers.0.mlp.up_proj.g_idx": ("I32", [32]), "w": diagonal(2, 1)}
        found = self.of(packed)
        self.assertEqual([tensor["name"] for tensor in found["tensors"]], ["w"])
        self.assertEqual(found["skipped"][0]["name"], "model.layers.0.mlp.up_proj.weight")
        self.assertIn("quantized", found["skipped"][0]["reason"])
        self.assertIn("skipped model.layers.0.mlp.up_proj.weight", self.succeed("spectrum", "model.safetensors"))

    def test_large_matrices_are_estimated_with_errors_that_hold(self):
        n = 800
        numbers = random.Random(1)
        values = [numbers.gauss(0, 1) for _ in range(n * n)]
        self.write("model.safetensors", safetensors({"w": ("F32", [n, n], f32(*values))}))
        estimate = self.json_of("spectrum", "model.safetensors")["tensors"][0]
        exact = self.json_of("spectrum", "model.safetensors", "--exact")["tensors"][0]
        self.assertFalse(estimate["is_exact"])
        self.assertTrue(exact["is_exact"])
        self.assertLessEqual(estimate["passes"] + 1, 25)
        for figure in ("spectral_norm", "stable_rank", "effective_rank", "numerical_rank"):
            self.assertGreater(estimate["errors"][figure], 0)
            self.assertLessEqual(abs(estimate[figure] - exact[figure]), estimate["errors"][figure], figure)
            self.assertEqual(exact["errors"][figure], 0)
        for share, rank in exact["energy_ranks"].items():
            self.assertLessEqual(abs(estimate["energy_ranks"][share] - rank), estimate["errors"]["energy_ranks"][share])
        text = self.succeed("spectrum", "model.safetensors")
        self.assertRegex(text, r"effective rank +~\d+\.?\d* \+- \d")
        again = self.json_of("spectrum", "model.safetensors", "--threads", 1)["tensors"][0]
        self.assertEqual(again, estimate)

    def test_one_matrix_is_drawn(self):
        text = self.succeed("spectrum", EXAMPLE, "--tensor", "lm_head*")
        self.assertIn("effective rank", text)
        self.assertRegex(text, "[\u2801-\u28ff]{3}")
        self.assertNotRegex(self.succeed("spectrum", EXAMPLE), "[\u2801-\u28ff]")

    def test_drawings_fit_the_terminal(self):
        command = f"stty cols 60 2>/dev/null; COLUMNS=60 {ECKART} spectrum {EXAMPLE} --tensor 'lm_head*'"
        shown = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True,
                               check=True).stdout
        drawn = [line.rstrip("\r") for line in shown.split("\n") if "|" in line]
        self.assertEqual(len(drawn), 12)
        self.assertLessEqual(max(map(len, drawn)), 60)

    def test_csv_has_a_header_and_a_line_a_matrix(self):
        rows = list(csv.DictReader(io.StringIO(self.succeed("spectrum", EXAMPLE, "--csv"))))
        tensors = self.json_of("spectrum", EXAMPLE)["tensors"]
        self.assertEqual(len(rows), len(tensors))
        for row, tensor in zip(rows, tensors):
            self.assertEqual(row["name"], tensor["name"])
            self.assertAlmostEqual(float(row["stable_rank"]), tensor["stable_rank"])
            self.assertEqual(float(row["energy_rank_0.9"]), tensor["energy_ranks"]["0.9"])

    def test_the_page_asks_for_nothing_and_escapes_names(self):
        self.write("model.safetensors", safetensors({"<script>alert(1)</script>": diagonal(100, *range(1, 20))}))
        self.succeed("spectrum", "model.safetensors", "--html", "report.html")
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        self.assertNotIn("<script>alert", page)
        self.assertNotRegex(page, r"(src|href)=\"(?!#)|url\(|https?://|@import")
        for word in ("<svg", 'class="sigma"', "noise edge", "prefers-color-scheme", "<title>"):
            self.assertIn(word, page)
        for path in re.findall(r' d="([^"]*)"', page):
            self.assertRegex(path, r"^(M[\d. ]+)(L[\d. ]+)*$")
        Tags(self).feed(page)

    def test_a_page_that_cannot_be_written_is_an_error(self):
        self.assertIn("nowhere", self.fail_with(1, "spectrum", EXAMPLE, "--html", "nowhere/report.html"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_csv_and_html_exclude_each_other(self):
        self.fail_with(2, "spectrum", EXAMPLE, "--csv", "--html", "x.html")
        self.assertIn("--json and --csv are both given, but only one of them is taken",
                      self.fail_with(2, "spectrum", EXAMPLE, "--csv", "--json"))

    def test_values_whose_squares_overflow_keep_their_figures(self):
        values = [2.0**700 / (i + 1) for i in range(12)]
        entries = [values[i] if i == j else 0 for i in range(12) for j in range(12)]
        one = self.of({"w": ("F64", [12, 12], struct.pack("<144d", *entries))})["tensors"][0]
        law = one["power_law"]
        self.assertIsNone(law["xmin"])
        self.assertLess(min(abs(law["sigma_min"] / value - 1) for value in values), 1e-12)
        self.assertEqual(one["energy_ranks"]["0.5"], 1)
        self.succeed("spectrum", "model.safetensors", "--html", "page.html")
        self.assertIn(f"from sigma {law['sigma_min']:.2e} on", self.succeed("spectrum", "model.safetensors"))

    def test_goodness_of_fit_comes_on_request(self):
        law = self.json_of("spectrum", EXAMPLE, "--tensor", "lm_head*", "--bootstrap", 20)["tensors"][0]["power_law"]
        self.assertTrue(0 <= law["p_value"] <= 1)
        self.assertAlmostEqual(law["standard_error"], (law["alpha"] - 1) / math.sqrt(law["n_tail"]))
        self.assertIsNone(self.json_of("spectrum", EXAMPLE, "--tensor", "lm_head*")["tensors"][0]["power_law"]["p_value"])

    def test_inspect_shows_the_medians_beside_the_tree(self):
        text = self.succeed("inspect", EXAMPLE, "--spectrum")
        for word in ("stable rank", "effective rank", "alpha"):
            self.assertIn(word, text)
        spectra = self.json_of("spectrum", EXAMPLE)["tensors"]
        ranks = sorted(t["stable_rank"] for t in spectra if t["name"].endswith("q_proj.weight"))
        layers = [m for m in self.json_of("inspect", EXAMPLE, "--spectrum")["modules"] if "layers" in m["path"]]
        found = {}

        def walk(node):
            if "stable_rank" in node:
                found[node["path"]] = node["stable_rank"]
            for child in node.get("modules", []):
                walk(child)

        for layer in layers:
            walk(layer)
        query = next(value for path, value in found.items() if path.endswith("q_proj"))
        self.assertAlmostEqual(query, (ranks[1] + ranks[2]) / 2)

    @unittest.skipUnless(MINILM.exists(), "models/all-MiniLM-L6-v2 is not there")
    def test_minilm_has_a_spectrum_of_every_matrix(self):
        tensors = {t["name"]: t for t in self.json_of("spectrum", MINILM)["tensors"]}
        self.assertEqual(len(tensors), 40)
        words = tensors["embeddings.word_embeddings.weight"]
        self.assertEqual(words["shape"], [30522, 384])
        self.assertLess(words["stable_rank"], words["effective_rank"])


class Tags(html.parser.HTMLParser):
    """Every element that is opened is closed in its turn."""

    def __init__(self, test):
        super().__init__()
        self.test, self.open = test, []

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "input", "html"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag != "html":
            self.test.assertEqual(self.open.pop(), tag)


if __name__ == "__main__":
    unittest.main()
