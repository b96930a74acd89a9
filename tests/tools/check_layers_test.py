"""tools/check_layers against made-up trees with one breach each."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

class CheckLayers(unittest.TestCase):
    def check(self, files):
        """Exit status and lines of the tool for a tree of these files."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            done = subprocess.run([ROOT / "tools/check_layers", root], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout.splitlines()

    def assert_breach(self, files, line):
        self.assertEqual(self.check(files), (1, [line]))

    def test_a_tree_that_keeps_the_rules_passes(self):
        self.assertEqual(self.check({
            "src/eckart/core/shape.h": "#include <vector>\n",
            "src/eckart/core/parallel.cpp": '#include "eckart/core/shape.h"\n#include <pthread.h>\n',
            "src/eckart/blas/gemm.cpp": '#include "eckart/core/shape.h"\n#include <cblas.h>\n',
            "src/eckart/io/zip.h": "#include <zlib.h>\n",
            "src/eckart/io/npz.h": '#include "eckart/core/shape.h"\n',
            "src/eckart/io/npz.cpp": '#include "eckart/io/zip.h"\n#include <fmt/format.h>\n',
            "src/eckart/model/count.h": '#include "eckart/io/npz.h"\n',
            "src/eckart/model/families/gpt2.h": "#include <nlohmann/json.hpp>\n",
            "src/eckart/eckart.h": '#include "eckart/io/npz.h"\n',
            "apps/cli/table.h": "#include <fmt/format.h>\n",
            "apps/cli/main.cpp": '#include "table.h"\n#include "eckart/eckart.h"\n',
        }), (0, []))

    def test_core_including_linalg_is_told_with_file_and_line(self):
        self.assert_breach(
            {"src/eckart/core/shape.h": '#pragma once\n\n#include "eckart/linalg/svd.h"\n'},
            "src/eckart/core/shape.h:3: core may not include linalg")

    def test_io_and_linalg_do_not_know_each_other(self):
        self.assert_breach({"src/eckart/io/npy.cpp": '#include "eckart/linalg/svd.h"\n'},
                           "src/eckart/io/npy.cpp:1: io may not include linalg")
        self.assert_breach({"src/eckart/linalg/svd.cpp": '#include "eckart/io/npy.h"\n'},
                           "src/eckart/linalg/svd.cpp:1: linalg may not include io")

    def test_nn_knows_no_checkpoint(self):
        self.assert_breach({"src/eckart/nn/mlp.cpp": '#include "eckart/io/checkpoint.h"\n'},
                           "src/eckart/nn/mlp.cpp:1: nn may not include io")

    def test_a_way_round_by_a_relative_path_is_seen(self):
        self.assert_breach({"src/eckart/io/npy.h": "#pragma once\n",
                            "src/eckart/core/shape.cpp": '#include "../io/npy.h"\n'},
                           "src/eckart/core/shape.cpp:1: core may not include io")

    def test_angle_brackets_do_not_hide_an_own_header(self):
        self.assert_breach({"src/eckart/core/shape.cpp": "#include <eckart/io/npy.h>\n"},
                           "src/eckart/core/shape.cpp:1: core may not include io")

    def test_core_takes_the_standard_library_alone(self):
        self.assert_breach(
            {"src/eckart/core/errors.cpp": "#include <string>\n#include <fmt/format.h>\n"},
            "src/eckart/core/errors.cpp:2: core may not include fmt/format.h, only the standard library")

    def test_blas_headers_stand_in_blas_alone(self):
        for header in ("cblas.h", "lapacke.h", "openblas/cblas.h", "Eigen/Dense"):
            self.assert_breach(
                {"src/eckart/linalg/qr.cpp": f"#include <{header}>\n"},
                f"src/eckart/linalg/qr.cpp:1: linalg may not include {header}, only blas may")

    def test_a_public_header_shows_no_dependency(self):
        for header in ("nlohmann/json.hpp", "fmt/format.h", "hwy/highway.h", "zlib.h"):
            self.assert_breach(
                {"src/eckart/eckart.h": '#include "eckart/io/npz.h"\n',
                 "src/eckart/io/npz.h": '#pragma once\n#include "eckart/io/entry.h"\n',
                 "src/eckart/io/entry.h": f"#include <{header}>\n"},
                f"src/eckart/io/entry.h:1: a public header may not include {header}, "
                "only the standard library")

    def test_an_app_takes_public_headers_and_no_other_app(self):
        self.assert_breach({"src/eckart/eckart.h": '#include "eckart/io/npz.h"\n',
                            "src/eckart/io/npz.h": "#pragma once\n",
                            "src/eckart/io/zip.h": "#pragma once\n",
                            "apps/cli/main.cpp": ('#include "eckart/io/npz.h"\n'
                                                  '#include "eckart/io/zip.h"\n')},
                           "apps/cli/main.cpp:2: apps/cli may not include zip.h, which eckart.h does "
                           "not make public")
        self.assert_breach({"apps/studio/page.h": "#pragma once\n",
                            "apps/cli/main.cpp": '#include "../studio/page.h"\n'},
                           "apps/cli/main.cpp:1: apps/cli may not include apps/studio")

    def test_a_layer_does_not_take_the_whole_library(self):
        self.assert_breach({"src/eckart/io/npy.cpp": '#include "eckart/eckart.h"\n'},
                           "src/eckart/io/npy.cpp:1: io may not include the whole library")

    def test_an_unknown_folder_is_no_layer(self):
        self.assert_breach({"src/eckart/utils/text.h": "#pragma once\n"},
                           "src/eckart/utils/text.h:1: utils is no layer")

    def test_an_include_in_a_comment_is_none(self):
        self.assertEqual(self.check({"src/eckart/core/shape.h": (
            '// #include "eckart/io/npy.h"\n/*\n#include "eckart/io/npy.h"\n*/\n')}), (0, []))


if __name__ == "__main__":
    unittest.main()
