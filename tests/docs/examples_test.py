"""Runs every example of the documents and compares what it prints with what the document shows.

A fenced block marked `console` holds commands after `$ ` and, below each, exactly what it prints
(standard output and standard error together). `./run` stands for the command itself. All run in one
scratch folder that shows the project's files, so that an example may write where it likes and the next
one finds it. A block marked `cpp` must stand, paragraph for paragraph, in one file of docs/examples or src, which are built.

usage: examples_test.py            checks
       examples_test.py --update   writes what the commands print now into the documents
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ECKART = pathlib.Path(os.environ.get("ECKART", ROOT / "build/release/eckart"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]
# Commands that only make sense typed by a person: they install, build or change the machine.
NOT_RUN = ("./test", "git ", "cd ", "tools/", "cmake ", "sudo ", "./run\n")


def blocks(document, language):
    text = document.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if match.group(1) == language:
            line = text.count("\n", 0, match.start()) + 1
            yield line, match.group(2)


def scratch_folder():
    """A folder that looks like the root of the project, as a context that removes it."""
    folder = tempfile.TemporaryDirectory(prefix="eckart-docs-")
    for path in ROOT.iterdir():
        if path.name not in ("build", ".git"):
            (pathlib.Path(folder.name) / path.name).symlink_to(path)
    return folder


def output_of(command, folder):
    """What the command prints, or None when it is not to be run."""
    if (command + "\n").startswith(NOT_RUN):
        return None
    if "models/" in command and not (ROOT / "models/all-MiniLM-L6-v2").is_dir():
        raise unittest.SkipTest("the real checkpoint was not fetched (tools/fetch_minilm)")
    words = command.replace("./run ", "eckart ", 1)
    if not words.startswith("eckart "):
        raise AssertionError(f"not a command of eckart: {command}")
    words = shlex.quote(str(ECKART)) + words[len("eckart"):]
    return subprocess.run(["bash", "-c", words], cwd=folder, text=True, timeout=120, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def commands(block):
    """Pairs of a command and the text below it."""
    found = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:].rstrip("\n"), ""])
        elif found:
            found[-1][1] += line
    return found


class Examples(unittest.TestCase):
    maxDiff = None

    def run_block(self, document, line, block, folder):
        for command, shown in commands(block):
            with self.subTest(document=str(document.relative_to(ROOT)), line=line, command=command):
                printed = output_of(command, folder)
                if printed is not None:
                    self.assertEqual(printed, shown)

    def test_console_blocks_print_what_they_show(self):
        n = 0
        for document in DOCUMENTS:
            with scratch_folder() as folder:
                for line, block in blocks(document, "console"):
                    self.run_block(document, line, block, folder)
                    n += 1
        self.assertGreater(n, 0, "no document has an example")

    def test_cpp_blocks_are_built_examples(self):
        files = [*(ROOT / "docs/examples").glob("*.cpp"), *(ROOT / "src").rglob("*.cpp")]
        sources = [path.read_text(encoding="utf-8") for path in sorted(files)]
        for document in DOCUMENTS:
            for line, block in blocks(document, "cpp"):
                with self.subTest(document=str(document.relative_to(ROOT)), line=line):
                    paragraphs = block.strip("\n").split("\n\n")
                    self.assertTrue(any(all(p in source for p in paragraphs) for source in sources),
                                    "this block stands in no file of docs/examples or src")

    def test_links_between_documents_lead_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
                with self.subTest(document=str(document.relative_to(ROOT)), target=target):
                    self.assertTrue((document.parent / target).exists())


def update():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        with scratch_folder() as folder:
            for _, block in blocks(document, "console"):
                fresh = ""
                for command, shown in commands(block):
                    printed = output_of(command, folder)
                    fresh += f"$ {command}\n" + (shown if printed is None else printed)
                text = text.replace(f"```console\n{block}", f"```console\n{fresh}", 1)
        document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if "--update" in sys.argv:
        update()
        sys.exit()
    if not ECKART.exists():
        sys.exit(f"{ECKART} is not built")
    unittest.main()
