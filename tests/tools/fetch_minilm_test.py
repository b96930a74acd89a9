"""tools/fetch_minilm on made-up packages, without a network."""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load_tool():
    sys.dont_write_bytecode = True  # no cache beside the tool
    loader = importlib.machinery.SourceFileLoader("fetch_minilm", str(ROOT / "tools/fetch_minilm"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_minilm", loader))
    loader.exec_module(module)
    return module


def zip_bytes(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


class FetchMinilm(unittest.TestCase):
    def setUp(self):
        self.tool = load_tool()
        self.tool.SHA256 = {"sub/a.json": hashlib.sha256(b"a").hexdigest()}
        self.tool.VOCABULARY = {"vocab.txt": hashlib.sha256(b"v").hexdigest()}
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.wheel = pathlib.Path(scratch.name, "some.whl")
        self.target = pathlib.Path(scratch.name, "target")

    def unpack(self, files, inside, nested):
        self.wheel.write_bytes(zip_bytes(files))
        self.tool.unpack(self.wheel, inside, nested, self.target)
        return {str(path.relative_to(self.target)): path.read_bytes()
                for path in self.target.rglob("*") if path.is_file()}

    def failure(self, files):
        """Exit status and message of an unpacking that fails."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as caught:
            self.unpack(files, "m/", None)
        return caught.exception.code, said.getvalue()

    def test_the_model_files_alone_are_taken(self):
        files = {"m/sub/a.json": b"a", "m/vocab.txt": b"v", "m/code.py": b"print()"}
        self.assertEqual(self.unpack(files, "m/", None), {"sub/a.json": b"a", "vocab.txt": b"v"})
        self.assertTrue(self.tool.is_in_place(self.target))

    def test_a_zip_within_the_wheel_is_opened(self):
        files = {"m/model.zip": zip_bytes({"sub/a.json": b"a"})}
        self.assertEqual(self.unpack(files, "", "m/model.zip"), {"sub/a.json": b"a"})

    def test_other_bytes_are_refused_with_both_digests(self):
        status, said = self.failure({"m/sub/a.json": b"b"})
        self.assertEqual(status, 1)
        self.assertIn(f"sub/a.json of some.whl has SHA-256 {hashlib.sha256(b'b').hexdigest()}, "
                      f"but it must be {hashlib.sha256(b'a').hexdigest()}", said)
        self.assertFalse(self.tool.is_in_place(self.target))

    def test_a_missing_file_is_told(self):
        status, said = self.failure({"m/other.json": b"a"})
        self.assertEqual(status, 1)
        self.assertIn("some.whl can't be unpacked", said)


if __name__ == "__main__":
    unittest.main()
