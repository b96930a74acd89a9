"""eckart lora merge and verify: what they write, print and refuse."""

import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import time
import unittest

from support import ECKART, CommandTest, llama_config, llama_tensors, safetensors


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def read(path):
    """Header and data of a safetensors file."""
    content = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + n]), content[8 + n:]


def values_of(path, name):
    header, data = read(path)
    begin, end = header[name]["data_offsets"]
    return list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))


class LoraMerge(CommandTest):
    def base(self, folder="base", tied=False, **changes):
        """A Llama of zeros but for the embedding, which counts."""
        config = llama_config(tie_word_embeddings=tied, **changes)
        self.write(f"{folder}/config.json", json.dumps(config, indent=2))
        tensors = dict(llama_tensors(config))
        vocab, d = config["vocab_size"], config["hidden_size"]
        tensors["model.embed_tokens.weight"] = ("F32", [vocab, d], floats(*range(vocab * d)))
        self.write(f"{folder}/model.safetensors", safetensors(tensors, {"format": "pt"}))
        self.write(f"{folder}/tokenizer.json", "{}")
        self.write(f"{folder}/pytorch_model.bin", "other weights")
        self.write(f"{folder}/1_Pooling/config.json", "{}")
        return config

    def adapter(self, tensors, folder="adapter", **changes):
        config = {"peft_type": "LORA", "r": 1, "lora_alpha": 2, "target_modules": ["q_proj", "lm_head"], **changes}
        self.write(f"{folder}/adapter_config.json", json.dumps(config))
        named = {f"base_model.model.{name}": value for name, value in tensors.items()}
        self.write(f"{folder}/adapter_model.safetensors", safetensors(named, {"format": "pt"}))

    def factors(self, module, out, inner, b=1.0, a=1.0):
        return {f"{module}.lora_A.weight": ("F32", [1, inner], floats(*[a] * inner)),
                f"{module}.lora_B.weight": ("F32", [out, 1], floats(*[b] * out))}

    Q = "model.layers.0.self_attn.q_proj"

    def test_merges_and_carries_the_other_files(self):
        self.base()
        self.adapter(self.factors(self.Q, 16, 16))
        said = self.succeed("lora", "merge", "base", "adapter", "-o", "merged", "--verify")
        self.assertIn("merged   1 tensor merged, 20 copied   ", said)
        self.assertIn("not carried, other weights: pytorch_model.bin\n", said)
        self.assertIn("verified: 1 tensor within one rounding of base + delta", said)
        self.assertEqual(values_of(self.folder / "merged/model.safetensors", self.Q + ".weight"), [2.0] * 256)
        self.assertEqual(sorted(str(path.relative_to(self.folder / "merged"))
                                for path in (self.folder / "merged").rglob("*") if path.is_file()),
                         ["1_Pooling/config.json", "config.json", "model.safetensors", "tokenizer.json"])
        self.assertEqual((self.folder / "merged/config.json").read_bytes(),
                         (self.folder / "base/config.json").read_bytes())
        self.assertFalse((self.folder / "merged.partial").exists())

    def test_json_has_every_tensor_and_the_total(self):
        self.base()
        self.adapter(self.factors(self.Q, 16, 16))
        report = self.json_of("lora", "merge", "base", "adapter", "-o", "merged", "--verify")
        self.assertEqual(report["copied"], 20)
        self.assertEqual([tensor["name"] for tensor in report["tensors"]], [self.Q + ".weight"])
        self.assertEqual(report["tensors"][0]["fate"], "merged")
        self.assertEqual(report["tensors"][0]["delta"]["entries"], 256)
        self.assertEqual(report["total"]["swallowed"], 0)
        self.assertTrue(report["verified"]["ok"])
        self.assertEqual(report["left_out"], ["pytorch_model.bin"])

    def test_weights_are_one_an_adapter(self):
        self.base()
        self.adapter(self.factors(self.Q, 16, 16), "a")
        self.adapter(self.factors(self.Q, 16, 16, b=4.0), "b")
        self.succeed("lora", "merge", "base", "a", "b", "--weights", "1,0.5", "-o", "merged")
        self.assertEqual(values_of(self.folder / "merged/model.safetensors", self.Q + ".weight"), [6.0] * 256)
        said = self.fail_with(2, "lora", "merge", "base", "a", "--weights", "1,2", "-o", "other")
        self.assertIn("--weights has 2 weights, but there is 1 adapter: one each is needed", said)
        self.succeed("lora", "merge", "base", "a", "b", "--weights", "1,0", "-o", "first")
        self.succeed("lora", "merge", "base", "a", "-o", "alone")
        self.assertEqual((self.folder / "first/model.safetensors").read_bytes(),
                         (self.folder / "alone/model.safetensors").read_bytes())
        said = self.fail_with(2, "lora", "merge", "base", "a", "--weights", "1,", "-o", "other")
        self.assertIn("--weights is '1,', but must be numbers with commas between them", said)
        self.write("file", "x")
        self.assertIn("file is no folder", self.fail_with(1, "lora", "merge", "base", "a", "-o", "file/x"))

    def test_a_tied_head_is_written_apart_and_the_config_says_so(self):
        self.base(tied=True)
        self.adapter(self.factors("lm_head", 32, 16))
        said = self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        self.assertIn("config.json: tie_word_embeddings true -> false\n", said)
        merged = self.folder / "merged/model.safetensors"
        embedding = list(map(float, range(512)))
        self.assertEqual(values_of(merged, "model.embed_tokens.weight"), embedding)
        self.assertEqual(values_of(merged, "lm_head.weight"), [x + 2 for x in embedding])
        self.assertFalse(json.loads((self.folder / "merged/config.json").read_text())["tie_word_embeddings"])

    def test_fold_tied_changes_the_shared_tensor(self):
        self.base(tied=True)
        self.adapter(self.factors("lm_head", 32, 16))
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged", "--fold-tied", "--verify")
        merged = self.folder / "merged/model.safetensors"
        self.assertEqual(values_of(merged, "model.embed_tokens.weight"), [x + 2.0 for x in range(512)])
        self.assertNotIn("lm_head.weight", read(merged)[0])
        self.assertTrue(json.loads((self.folder / "merged/config.json").read_text())["tie_word_embeddings"])

    def test_an_adapted_embedding_of_a_tied_model_leaves_the_head(self):
        self.base(tied=True)
        self.adapter({"model.embed_tokens.lora_embedding_A": ("F32", [1, 32], floats(*[1.0] * 32)),
                      "model.embed_tokens.lora_embedding_B": ("F32", [16, 1], floats(*[1.0] * 16))},
                     target_modules=["embed_tokens"])
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        merged = self.folder / "merged/model.safetensors"
        self.assertEqual(values_of(merged, "model.embed_tokens.weight"), [x + 2.0 for x in range(512)])
        self.assertEqual(values_of(merged, "lm_head.weight"), list(map(float, range(512))))

    def test_a_grown_vocabulary_stands_in_the_config(self):
        self.base()
        grown = ("F32", [34, 16], floats(*[1.0] * 544))
        saved = {"model.embed_tokens.weight": grown, "lm_head.weight": grown}
        self.adapter(saved | self.factors(self.Q, 16, 16), modules_to_save=["embed_tokens", "lm_head"],
                     target_modules=["q_proj"])
        self.write("adapter/tokenizer.json", '{"grown": true}')
        self.write("adapter/tokenizer_config.json", "{}")
        said = self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        self.assertIn("config.json: vocab_size 32 -> 34\n", said)
        self.assertEqual(json.loads((self.folder / "merged/config.json").read_text())["vocab_size"], 34)
        self.assertEqual((self.folder / "merged/tokenizer.json").read_text(), '{"grown": true}')
        self.assertEqual(read(self.folder / "merged/model.safetensors")[0]["lm_head.weight"]["shape"], [34, 16])
        self.succeed("inspect", "merged")

    def test_a_vocabulary_that_grows_on_one_tied_side_needs_folding(self):
        self.base(tied=True)
        self.adapter({"model.embed_tokens.weight": ("F32", [34, 16], floats(*[1.0] * 544))}
                     | self.factors(self.Q, 16, 16), modules_to_save=["embed_tokens"], target_modules=["q_proj"])
        said = self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "merged")
        self.assertIn("has 34 rows in adapter and lm_head.weight would keep 32, but both have a row a token", said)
        self.assertIn("hint: the two are tied in the base: `--fold-tied` keeps them so", said)
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged", "--fold-tied")

    def test_shards_and_index_are_kept(self):
        config = self.base("whole")
        tensors = {name: (dtype, shape) for name, (dtype, shape) in llama_tensors(config).items()}
        names = sorted(tensors)
        shards = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
        for file, held in shards.items():
            self.write(f"base/{file}", safetensors({name: tensors[name] for name in held}, {"format": "pt"}))
        index = json.dumps({"metadata": {"total_size": 7}, "weight_map": {
            name: file for file, held in shards.items() for name in held}}, indent=1)
        self.write("base/model.safetensors.index.json", index)
        self.write("base/config.json", json.dumps(config))
        self.adapter(self.factors(self.Q, 16, 16))
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged", "--verify")
        self.assertEqual((self.folder / "merged/model.safetensors.index.json").read_text(), index)
        for file, held in shards.items():
            self.assertEqual(sorted(set(read(self.folder / "merged" / file)[0]) - {"__metadata__"}), held)
        said = self.succeed("lora", "merge", "base", "adapter", "-o", "half", "--dtype", "BF16")
        self.assertIn("config.json: torch_dtype \"float32\" -> \"bfloat16\"\n", said)
        half = json.loads((self.folder / "half/model.safetensors.index.json").read_text())
        self.assertEqual(half["metadata"]["total_size"],
                         sum(path.stat().st_size - 8 - struct.unpack("<Q", path.read_bytes()[:8])[0]
                             for path in (self.folder / "half").glob("*.safetensors")))

    def test_f8_with_scales_is_written_as_bf16_without_them(self):
        config = llama_config(quantization_config={"quant_method": "fp8"}, num_hidden_layers=1)
        tensors = dict(llama_tensors(config))
        tensors[self.Q + ".weight"] = ("F8_E4M3", [16, 16], b"\x38" * 256)  # ones
        tensors[self.Q + ".weight_scale_inv"] = ("F32", [1, 1], floats(0.5))
        self.write("base/config.json", json.dumps(config))
        self.write("base/model.safetensors", safetensors(tensors))
        self.adapter(self.factors(self.Q, 16, 16))
        said = self.succeed("lora", "merge", "base", "adapter", "-o", "merged", "--verify")
        self.assertIn("config.json: quantization_config removed\n", said)
        header, data = read(self.folder / "merged/model.safetensors")
        self.assertNotIn(self.Q + ".weight_scale_inv", header)
        begin, end = header[self.Q + ".weight"]["data_offsets"]
        self.assertEqual(data[begin:end], b"\x20\x40" * 256)  # 2.5
        self.assertEqual(header["__metadata__"], {"format": "pt"})

    def test_verify_tells_a_wrong_merge(self):
        self.base()
        self.adapter(self.factors(self.Q, 16, 16))
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        self.assertIn("verified: 1 tensor", self.succeed("lora", "verify", "base", "adapter", "merged"))
        path = self.folder / "merged/model.safetensors"
        header, _ = read(path)
        content = bytearray(path.read_bytes())
        data = 8 + struct.unpack("<Q", content[:8])[0]
        at = data + header[self.Q + ".weight"]["data_offsets"][0] + 4 * 19
        content[at:at + 4] = floats(2.001)
        content[data + header["model.norm.weight"]["data_offsets"][0]] ^= 1
        path.write_bytes(content)
        result = self.run_eckart("lora", "verify", "base", "adapter", "merged")
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.Q + ".weight: the entry at (1, 3) is ", result.stdout)
        self.assertIn("model.norm.weight: no adapter changes it, but its bytes are not those of the base",
                      result.stdout)
        self.assertIn("2 problems found\n", result.stdout)
        self.assertFalse(json.loads(self.run_eckart("lora", "verify", "base", "adapter", "merged", "--json").stdout)["ok"])
        self.assertIn("takes a base, at least one adapter and the merged model",
                      self.fail_with(2, "lora", "verify", "base", "adapter"))

    def test_refuses_what_it_cannot_do_and_leaves_nothing(self):
        self.base()
        self.adapter(self.factors(self.Q.replace("q_proj", "q_prj"), 16, 16))
        said = self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "merged")
        self.assertIn(f"changes {self.Q.replace('q_proj', 'q_prj')}, but the base has no tensor of that name", said)
        self.assertIn(f"hint: closest are {self.Q}.weight", said)
        self.adapter(self.factors(self.Q, 16, 17))
        self.assertIn("holds 16x17 (B A), but the base's is 16x16",
                      self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "merged"))
        self.adapter(self.factors(self.Q, 16, 16, b=0.0))
        self.assertIn("the result would be the base",
                      self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "merged"))
        self.adapter(self.factors(self.Q, 16, 16, b=float("nan")))
        self.assertIn("lora_B", self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "merged"))
        self.adapter(self.factors(self.Q, 16, 16))
        self.fail_with(1, "lora", "merge", "nowhere", "adapter", "-o", "merged")
        self.fail_with(1, "lora", "merge", "base", "nowhere", "-o", "merged")
        self.fail_with(2, "lora", "merge", "base", "adapter")
        self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "no/such/place")
        self.assertIn("is there already and not empty",
                      self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "base"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["adapter", "base"])

    def test_a_disk_without_room_is_told_before_any_work(self):
        self.base()
        self.adapter(self.factors(self.Q, 16, 16))

        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        said = self.fail_with(1, "lora", "merge", "base", "adapter", "-o", "merged", preexec_fn=limit_files)
        self.assertIn("can't be written, the file may not grow that large here", said)
        self.assertFalse((self.folder / "merged").exists())
        self.assertFalse((self.folder / "merged.partial").exists())

    def test_a_linked_hub_folder_is_followed(self):
        self.base("blobs")
        snapshot = self.folder / "snapshot"
        snapshot.mkdir()
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            (snapshot / name).symlink_to(pathlib.Path("..") / "blobs" / name)
        self.adapter(self.factors(self.Q, 16, 16))
        self.succeed("lora", "merge", "snapshot", "adapter", "-o", "merged")
        self.assertTrue(all(path.is_file() and not path.is_symlink() for path in (self.folder / "merged").iterdir()))

    def test_a_killed_run_is_gone_on_with(self):
        # Three matrices of 64 MiB, each a batch of its own, so that a kill finds some finished.
        n = 4096
        self.write("base/model.safetensors", safetensors(
            {f"m{i}.weight": ("F32", [n, n]) for i in range(3)}, {"format": "pt"}))
        tensors = {}
        for i in range(3):
            tensors |= self.factors(f"m{i}", n, n)
        self.adapter(tensors, target_modules=["m0", "m1", "m2"])
        process = subprocess.Popen([str(ECKART), "lora", "merge", "base", "adapter", "-o", "merged", "--threads", "1"],
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        manifest = self.folder / "merged.partial/manifest.jsonl"
        while process.poll() is None and not (manifest.exists() and b"m0" in manifest.read_bytes()):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse((self.folder / "merged").exists())
        report = self.json_of("lora", "merge", "base", "adapter", "-o", "merged", "--verify")
        self.assertGreaterEqual(report["resumed"], 1)
        self.assertEqual(len(report["tensors"]), 3)
        self.assertEqual(report["total"]["entries"], 3 * n * n)
        self.assertTrue(report["verified"]["ok"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["adapter", "base", "merged"])


if __name__ == "__main__":
    unittest.main()
