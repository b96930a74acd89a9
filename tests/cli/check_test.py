"""eckart check: findings as text and as JSON, exit statuses, files that were taken for weights."""

import json
import os
import struct
import unittest

from support import EXAMPLE, MINILM, CommandTest, safetensors

GOOD = {"w": ("F32", [2, 2])}


class Check(CommandTest):
    def findings(self, *paths):
        result = self.run_eckart("check", *paths, "--json")
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if report["ok"] else 1)
        for finding in report["findings"]:
            self.assertLessEqual({"severity", "file", "tensor", "begin", "end", "rule", "message"}, set(finding))
        return report

    def rules(self, *paths):
        return {finding["rule"] for finding in self.findings(*paths)["findings"]}

    def test_sound_files_are_ok(self):
        self.assertEqual(self.findings(EXAMPLE), {"ok": True, "findings": [], "omitted": 0})
        self.assertEqual(self.succeed("check", EXAMPLE), f"{EXAMPLE}: ok: 3 files, 39 tensors, 1.80 MB; values not read\n")
        if MINILM.is_dir():
            self.assertTrue(self.findings(MINILM)["ok"])

    def test_a_truncated_download_says_how_much_is_missing(self):
        path = self.write("model.safetensors", safetensors(GOOD)[:-3])
        result = self.run_eckart("check", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("3 bytes", result.stdout)
        self.assertTrue(result.stdout.endswith("1 error, 0 warnings\n"), result.stdout)

    def test_the_duplicate_of_118_bytes_is_named(self):
        header = (b'{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
                  b'"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}')
        path = self.write("dup.safetensors", struct.pack("<Q", len(header)) + header + b"\0" * 4)
        self.assertIn("duplicate_name", self.rules(path))
        finding = self.findings(path)["findings"][0]
        self.assertEqual(finding["tensor"], "w")

    def test_files_that_are_something_else_are_recognised(self):
        for content, rule in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n",
                               "git_lfs_pointer"),
                              (b"<!DOCTYPE html><html>404</html>", "html_page"),
                              (b"GGUF\x03\0\0\0" + b"\0" * 16, "gguf"),
                              (b"PK\x03\x04" + b"\0" * 30, "zip_or_pickle"),
                              (b"", "header_too_small")):
            with self.subTest(rule=rule):
                self.assertIn(rule, self.rules(self.write("x.safetensors", content)))

    def test_paths_that_leave_the_folder_are_refused_before_anything_is_opened(self):
        secret = self.write("secret.safetensors", safetensors(GOOD))
        for shard in ("../secret.safetensors", str(secret), "link.safetensors"):
            with self.subTest(shard=shard):
                link = self.folder / "model/link.safetensors"
                if shard.startswith("link") and not link.exists():
                    link.symlink_to(secret)
                self.write("model/model.safetensors.index.json", json.dumps({"weight_map": {"w": shard}}))
                found = self.rules(self.folder / "model/model.safetensors.index.json")
                self.assertTrue(found & {"index_shard_name", "index_symlink"}, found)

    def test_an_index_and_its_shards_are_held_against_each_other(self):
        self.write("m/a.safetensors", safetensors({"w": ("F32", [1]), "extra": ("F32", [1])}))
        index = {"metadata": {"total_size": 999}, "weight_map": {"w": "a.safetensors", "gone": "a.safetensors",
                                                                 "lost": "b.safetensors"}}
        self.write("m/model.safetensors.index.json", json.dumps(index))
        found = self.rules(self.folder / "m")
        self.assertLessEqual({"index_missing_shard", "index_missing_tensor", "index_unlisted_tensor"}, found)

    def test_shards_that_are_lfs_pointers_are_one_error_each(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
        self.write("m/a.safetensors", pointer)
        self.write("m/b.safetensors", pointer)
        index = {"metadata": {"total_size": 999}, "weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}
        self.write("m/model.safetensors.index.json", json.dumps(index))
        found = [finding["rule"] for finding in self.findings(self.folder / "m")["findings"]]
        self.assertEqual(found, ["git_lfs_pointer", "git_lfs_pointer"])

    def test_one_shard_of_many_is_whole_by_itself(self):
        self.assertTrue(self.findings(EXAMPLE / "model-00002-of-00003.safetensors")["ok"])
        alone = self.write("m/model-00002-of-00003.safetensors", safetensors(GOOD))
        self.assertIn("missing_shard", self.rules(alone.parent))

    def test_keys_that_stand_twice_in_an_index_are_named(self):
        self.write("m/a.safetensors", safetensors(GOOD))
        self.write("m/model.safetensors.index.json",
                   '{"dtype": "F32", "dtype": "F16", "weight_map": {"w": "a.safetensors"}}')
        self.assertEqual(self.rules(self.folder / "m"), {"duplicate_name"})

    def test_many_paths_are_checked_and_one_error_fails(self):
        good = self.write("good.safetensors", safetensors(GOOD))
        bad = self.write("bad.safetensors", b"\xff" * 20)
        result = self.run_eckart("check", good, bad, "no-such-file")
        self.assertEqual(result.returncode, 1)
        self.assertIn("good.safetensors: ok", result.stdout)
        self.assertIn("no-such-file", result.stdout)

    def test_arrays_and_archives(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
        header += b" " * ((64 - (10 + len(header) + 1) % 64) % 64) + b"\n"
        npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 8
        self.assertTrue(self.findings(self.write("a.npy", npy))["ok"])
        self.assertEqual(self.succeed("check", "a.npy"), "a.npy: ok: 1 file, 1 array, 8 B; values not read\n")
        self.assertIn("npy_size", self.rules(self.write("b.npy", npy[:-1])))
        self.assertFalse(self.findings(self.write("c.npz", b"PK\x03\x04nonsense"))["ok"])

    def test_a_pipe_is_refused_and_does_not_hang(self):
        os.mkfifo(self.folder / "pipe.safetensors")
        self.assertFalse(self.findings("pipe.safetensors")["ok"])

    def test_what_the_index_leaves_out_is_unknown_where_the_index_is_refused(self):
        self.write("m/a.safetensors", safetensors(GOOD))
        self.write("m/b.safetensors", safetensors({"v": ("F32", [2])}))
        name = "m/model.safetensors.index.json"
        for weight_map, rule in (({"w": "a.safetensors", "v": "../b.safetensors"}, "index_shard_name"),
                                 ({"w": "a.safetensors", "v": 5}, "index_json")):
            self.write(name, json.dumps({"metadata": {"total_size": 24}, "weight_map": weight_map}))
            self.assertEqual(self.rules("m"), {rule})
        self.write(name, '{"weight_map": {"w": "a.safetensors", ')
        self.assertEqual(self.rules("m"), {"index_json"})
        self.write(name, json.dumps({"weight_map": {"w": "a.safetensors"}}))
        self.assertEqual(self.rules("m"), {"extra_file"})

    def test_a_config_is_told_from_an_index(self):
        self.write("m/config.json", json.dumps({"model_type": "llama"}))
        self.write("m/model.safetensors", safetensors(GOOD))
        findings = self.findings("m/config.json")["findings"]
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("a model's config", findings[0]["message"])
        self.assertIn("folder", findings[0]["hint"])

    def test_an_index_that_says_nothing_is_not_ok(self):
        self.write("m/model.safetensors.index.json", '{"metadata": 5, "weight_map": {}}')
        self.assertEqual(self.rules("m"), {"index_metadata", "index_empty"})
        self.write("m/model.safetensors.index.json", b'\xef\xbb\xbf{"weight_map": {}}')
        self.assertIn("byte order mark", self.findings("m")["findings"][0]["message"])

    def test_a_file_that_ends_in_zeros_is_warned_of(self):
        n = 100_000
        for values, zeros, found in ((n, 0, set()), (n - 10_000, 10_000, set()), (n - 40_000, 40_000, {"zero_bytes"})):
            data = b"\x07" * (2 * values) + b"\0" * (2 * zeros)
            self.write("w.safetensors", safetensors({"w": ("F16", [n], data)}))
            self.assertEqual(self.rules("w.safetensors"), found)
        # A tensor that is zero as a whole may be meant, unless it is large.
        for size, found in ((40_000, set()), (2_000_000, {"zero_bytes"})):
            self.write("w.safetensors", safetensors({"w": ("U8", [n], b"\x07" * n), "z": ("U8", [size])}))
            self.assertEqual(self.rules("w.safetensors"), found)

    def test_names_of_any_bytes(self):
        path = os.fsencode(self.folder) + b"/\xff\xfe.safetensors"
        with open(path, "wb") as file:
            file.write(safetensors(GOOD))
        self.assertTrue(self.findings(os.fsdecode(path))["ok"])


if __name__ == "__main__":
    unittest.main()
