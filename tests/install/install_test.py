"""Installs a build into an empty place and uses it as somebody else would.

usage: tests/install/install_test.py BUILD      BUILD: a built folder, as build/release
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLE = ROOT / "examples/tiny-llama"
# What an installation puts in place; {lib} is lib or, as Debian has it, lib/x86_64-linux-gnu.
INSTALLED = (
    "bin/eckart",
    "{lib}/libeckart.a",
    "{lib}/cmake/eckart/eckart-config.cmake",
    "{lib}/cmake/eckart/eckart-config-version.cmake",
    "{lib}/cmake/eckart/eckart-targets.cmake",
    "{lib}/cmake/eckart/FindPCRE2.cmake",
    "{lib}/cmake/eckart/FindUtf8proc.cmake",
    "include/eckart/eckart.h",
    "share/man/man1/eckart.1",
    "share/bash-completion/completions/eckart",
    "share/zsh/site-functions/_eckart",
    "share/fish/vendor_completions.d/eckart.fish",
)


def run(*command, cwd=None):
    """Exit status and all output of a command."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


class Install(unittest.TestCase):
    maxDiff = None
    build = ROOT / "build/release"

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="eckart-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.prefix = cls.scratch / "prefix"
        status, said = run("cmake", "--install", cls.build, "--prefix", cls.prefix)
        if status != 0:
            raise AssertionError(f"cmake --install failed:\n{said}")

    def succeed(self, *command, cwd=None):
        status, said = run(*command, cwd=cwd)
        self.assertEqual(status, 0, f"{' '.join(map(str, command))} failed:\n{said}")
        return said

    def headers(self):
        return sorted(path.relative_to(self.prefix / "include")
                      for path in (self.prefix / "include").rglob("*.h"))

    def test_everything_is_in_its_place(self):
        configs = list(self.prefix.rglob("eckart-config.cmake"))
        self.assertEqual(len(configs), 1)
        lib = configs[0].parents[2].relative_to(self.prefix)
        missing = [name for name in INSTALLED if not (self.prefix / name.format(lib=lib)).is_file()]
        self.assertEqual(missing, [])

    def test_the_installed_headers_are_those_of_the_whole_library(self):
        source = self.scratch / "whole.cpp"
        source.write_text("#include <eckart/eckart.h>\n", encoding="utf-8")
        include = self.prefix / "include"
        words = self.succeed("g++", "-std=c++20", "-M", "-I", include, source).split()
        reached = {str(pathlib.Path(word).relative_to(include)) for word in words
                   if word.startswith(str(include))}
        self.assertEqual({str(header) for header in self.headers()}, reached)

    def test_every_header_compiles_by_itself(self):
        def compile_alone(header):
            source = self.scratch / (str(header).replace("/", "_") + ".cpp")
            source.write_text(f"#include <{header}>\n", encoding="utf-8")
            return run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                       "-I", self.prefix / "include", source)

        headers = self.headers()
        self.assertGreater(len(headers), 10)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for header, (status, said) in zip(headers, pool.map(compile_alone, headers)):
                with self.subTest(header=str(header)):
                    self.assertEqual(status, 0, said)

    def test_a_strangers_project_finds_builds_and_runs_it(self):
        source, build = self.scratch / "stranger", self.scratch / "stranger-build"
        shutil.copytree(HERE / "stranger", source)
        self.succeed("cmake", "-G", "Ninja", "-S", source, "-B", build,
                     f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_CXX_COMPILER=g++")
        self.succeed("cmake", "--build", build)
        self.assertEqual(self.succeed(build / "stranger", EXAMPLE), (
            "39 tensors, 1804544 bytes\n"
            "model.norm.weight 128\n"
            "llama, 4 layers\n"
            "an error reaches its catch\n"))

    def test_nothing_installed_names_the_source_tree(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".cmake", ".h", ".1"):
                with self.subTest(file=str(path.relative_to(self.prefix))):
                    self.assertNotIn(str(ROOT), path.read_text(encoding="utf-8"))

    def test_the_installed_command_runs_from_anywhere(self):
        said = self.succeed(self.prefix / "bin/eckart", "--version", cwd=self.scratch)
        self.assertRegex(said, r"\Aeckart \d+\.\d+\.\d+\n\Z")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        Install.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
