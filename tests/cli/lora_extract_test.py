"""eckart lora extract: adapters from two checkpoints, what they lose, and what is refused."""

import json
import math
import os
import shutil
import signal
import struct
import subprocess
import time
import unittest

from support import ECKART, CommandTest, llama_config, llama_tensors, safetensors


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def numbers(count, seed):
    """Whole numbers from -8 to 8: sums of a few of them are exact in float."""
    state = seed * 2654435761 % 2**32 or 1
    found = []
    for _ in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        found.append(float(state // 65536 % 17 - 8))
    return found


def product(b, a, rows, rank, columns):
    return [sum(b[i * rank + k] * a[k * columns + j] for k in range(rank))
            for i in range(rows) for j in range(columns)]


def read(path):
    """(dtype, shape, bytes) of every tensor of a safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"],
                   data[8 + length + one["data_offsets"][0]:8 + length + one["data_offsets"][1]])
            for name, one in header.items()}


def values(tensor):
    return list(struct.unpack(f"<{len(tensor[2]) // 4}f", tensor[2]))


def float_bound(delta):
    """What an entry of the factors' product is off by at most: a few eps of the largest singular value,
    which is at most the norm."""
    return 8 * 2**-23 * math.sqrt(sum(x * x for x in delta))


class LoraExtract(CommandTest):
    def write_model(self, name, tensors, config=None):
        self.write(f"{name}/model.safetensors", safetensors(tensors, {"format": "pt"}))
        if config is not None:
            self.write(f"{name}/config.json", json.dumps(config))

    def llama_pair(self, rank=2, **changes):
        """A base, and a tuned model whose matrices have changed by that rank."""
        config = llama_config(**changes)
        base, tuned, deltas = {}, {}, {}
        for seed, (name, (dtype, shape)) in enumerate(llama_tensors(config).items(), 1):
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            old = [64 * value for value in numbers(count, seed)]
            new = old
            if len(shape) == 2 and ".layers." in name:
                deltas[name] = product(numbers(shape[0] * rank, seed + 100), numbers(rank * shape[1], seed + 200),
                                       shape[0], rank, shape[1])
                new = [x + y for x, y in zip(old, deltas[name])]
            base[name] = (dtype, shape, floats(old))
            tuned[name] = (dtype, shape, floats(new))
        self.write_model("base", base, config)
        self.write_model("tuned", tuned, config)
        return deltas

    def test_a_change_of_known_rank_is_recovered_in_every_module(self):
        deltas = self.llama_pair()
        report = self.json_of("lora", "extract", "base", "tuned", "--rank", "2", "-o", "adapter")
        self.assertLess(report["error"], 1e-5)
        tensors = read(self.folder / "adapter/adapter_model.safetensors")
        self.assertEqual(len(tensors), 2 * len(deltas))
        for name, delta in deltas.items():
            module = "base_model.model." + name.removesuffix(".weight")
            b, a = tensors[module + ".lora_B.weight"], tensors[module + ".lora_A.weight"]
            found = product(values(b), values(a), b[1][0], 2, a[1][1])
            worst = max(abs(x - y) for x, y in zip(found, delta))
            self.assertLess(worst, float_bound(delta), name)
        config = json.loads((self.folder / "adapter/adapter_config.json").read_text())
        self.assertEqual(config["r"], 2)
        self.assertEqual(config["lora_alpha"], 2)
        self.assertEqual(config["peft_type"], "LORA")
        self.assertEqual(config["task_type"], "CAUSAL_LM")
        self.assertEqual(config["base_model_name_or_path"], "base")
        self.assertEqual(json.loads((self.folder / "adapter/eckart_report.json").read_text()), report)

    def test_text_says_what_was_kept_and_what_was_lost(self):
        self.llama_pair()
        said = self.succeed("lora", "extract", "base", "tuned", "--rank", "1", "-o", "adapter")
        self.assertIn("numbers, ", said)
        self.assertIn("largest rank 1\n", said)
        self.assertIn("error       0.", said)
        self.assertIn("of the difference, after rounding\n", said)
        self.assertIn("model.layers.{0,1}.mlp.up_proj.weight", said)
        self.assertIn("21 tensors: 14 low-rank, 7 unchanged\n", said)

    def test_merging_the_adapter_gives_the_tuned_model(self):
        deltas = self.llama_pair()
        self.succeed("lora", "extract", "base", "tuned", "--rank", "2", "-o", "adapter")
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        merged = read(self.folder / "merged/model.safetensors")
        for name, tensor in read(self.folder / "tuned/model.safetensors").items():
            worst = max(abs(x - y) for x, y in zip(values(merged[name]), values(tensor)))
            # The sum with the base, whose entries are below 1,024, is rounded once more.
            self.assertLessEqual(worst, float_bound(deltas[name]) + 2**-14 if name in deltas else 0, name)

    def test_a_tied_model_gets_its_embedding_once_for_both(self):
        self.llama_pair(tie_word_embeddings=True)
        config = llama_config(tie_word_embeddings=True)
        tensors = read(self.folder / "tuned/model.safetensors")
        dtype, shape, data = tensors["model.embed_tokens.weight"]
        tensors["model.embed_tokens.weight"] = (dtype, shape, floats([x + 1 for x in struct.unpack("<512f", data)]))
        self.write_model("tuned", tensors, config)
        self.succeed("lora", "extract", "base", "tuned", "--rank", "2", "-o", "saved")
        saved = read(self.folder / "saved/adapter_model.safetensors")
        self.assertEqual(saved["base_model.model.lm_head.weight"],
                         saved["base_model.model.model.embed_tokens.weight"])
        self.succeed("lora", "extract", "base", "tuned", "--rank", "2", "--embeddings", "lora", "-o", "lora")
        found = read(self.folder / "lora/adapter_model.safetensors")
        self.assertEqual(found["base_model.model.model.embed_tokens.lora_embedding_A"][1], [1, 32])
        self.assertEqual(found["base_model.model.lm_head.lora_B.weight"][1], [32, 1])
        self.succeed("lora", "merge", "base", "saved", "-o", "merged")
        self.assertEqual(read(self.folder / "merged/model.safetensors")["model.embed_tokens.weight"],
                         tensors["model.embed_tokens.weight"])

    def test_integers_that_differ_are_accounted_for(self):
        def whole(*numbers):
            return "I64", [len(numbers)], struct.pack(f"<{len(numbers)}q", *numbers)

        base = {"l.weight": ("F32", [2, 2], floats([4, 8, 16, 10])), "l.i": whole(1, 2), "l.gone": whole(3),
                "l.same": whole(4), "l.position_ids": whole(0, 1)}
        tuned = {"l.weight": ("F32", [2, 2], floats([4, 8, 17, 10])), "l.i": whole(1, 3), "l.new": whole(5),
                 "l.same": whole(4), "l.flag": ("BOOL", [1], b"\1")}
        self.write_model("base", base)
        self.write_model("tuned", tuned)
        report = self.json_of("lora", "extract", "base", "tuned", "--rank", "1", "-o", "adapter")
        why = "no parameter, so that no adapter holds it: "
        self.assertEqual({one["name"]: one.get("reason") for one in report["tensors"]},
                         {"l.weight": None, "l.i": why + "it is not the base's", "l.gone": why + "only the base has it",
                          "l.new": why + "the base has it not", "l.flag": why + "the base has it not"})

    def test_the_head_of_gpt_neox_has_the_name_of_its_class(self):
        config = {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "vocab_size": 4,
                  "hidden_size": 2, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
                  "max_position_embeddings": 8, "tie_word_embeddings": False}
        layer = "gpt_neox.layers.0.attention.dense.weight"
        base = {layer: ("F32", [2, 2], floats([4, 8, 16, 10])), "embed_out.weight": ("F32", [4, 2], floats(range(8))),
                "gpt_neox.embed_in.weight": ("F32", [4, 2], floats(range(8)))}
        tuned = {**base, layer: ("F32", [2, 2], floats([4, 8, 17, 10])),
                 "embed_out.weight": ("F32", [4, 2], floats(range(1, 9)))}
        self.write_model("base", base, config)
        self.write_model("tuned", tuned, config)
        self.succeed("lora", "extract", "base", "tuned", "--rank", "1", "-o", "adapter")
        self.assertIn("base_model.model.lm_head.weight", read(self.folder / "adapter/adapter_model.safetensors"))
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        self.assertEqual(read(self.folder / "merged/model.safetensors")["embed_out.weight"], tuned["embed_out.weight"])

    def test_what_encoder_and_decoder_share_is_merged_once(self):
        config = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
        base = {"shared.weight": ("F32", [4, 2], floats(range(8))), "encoder.q.weight": ("F32", [2, 2], floats([4, 8, 16, 10])),
                "decoder.q.weight": ("F32", [2, 2], floats([4, 8, 16, 10]))}
        tuned = {**base, "shared.weight": ("F32", [4, 2], floats([x + 0.5 for x in range(8)])),
                 "encoder.q.weight": ("F32", [2, 2], floats([4, 8, 17, 10]))}
        self.write_model("base", base, config)
        self.write_model("tuned", tuned, config)
        self.succeed("lora", "extract", "base", "tuned", "--rank", "1", "-o", "adapter")
        self.succeed("lora", "merge", "base", "adapter", "-o", "merged")
        merged = read(self.folder / "merged/model.safetensors")
        self.assertEqual(set(merged), set(tuned))
        self.assertEqual(merged["shared.weight"], tuned["shared.weight"])

    def test_f8_with_scales_is_read_as_its_numbers(self):
        one, two = 0x38, 0x40  # of F8_E4M3
        self.write_model("base", {"q.weight": ("F8_E4M3", [2, 2], bytes([one, two, two, one])),
                                  "q.weight_scale": ("F32", [2, 1], floats([4, 8]))})
        self.write_model("tuned", {"q.weight": ("F32", [2, 2], floats([4, 8, 17, 10]))})
        self.succeed("lora", "extract", "base", "tuned", "--rank", "1", "-o", "adapter")
        found = read(self.folder / "adapter/adapter_model.safetensors")
        b, a = values(found["base_model.model.q.lora_B.weight"]), values(found["base_model.model.q.lora_A.weight"])
        for entry, wanted in zip(product(b, a, 2, 1, 2), [0, 0, 1, 2]):
            self.assertAlmostEqual(entry, wanted, places=5)

    def test_other_quantized_storage_is_refused_by_name(self):
        self.write_model("base", {"q.weight": ("U8", [8, 1]), "q.weight.absmax": ("F32", [1])})
        self.write_model("tuned", {"q.weight": ("F32", [2, 8])})
        said = self.fail_with(1, "lora", "extract", "base", "tuned", "--rank", "1", "-o", "adapter")
        self.assertIn("q.weight of base is quantized: NF4 in U8, but only floating tensors and F8 with its scales", said)
        self.assertIn("take the checkpoint that it was quantized from", said)

    def test_a_budget_in_bytes_is_kept_and_shared_out(self):
        self.llama_pair(rank=4)
        report = self.json_of("lora", "extract", "base", "tuned", "--budget", "6kB", "-o", "adapter")
        def size_of(folder):
            return (self.folder / folder / "adapter_model.safetensors").stat().st_size

        self.assertLessEqual(size_of("adapter"), 6000)
        # Room is kept for the largest header that all matrices could have: what is left is less than one
        # more rank of any and, a tensor, the axes of a convolution (24 bytes), the longer name of an
        # embedding's factor (3) and 4 digits more for each of 4 sizes.
        one_each = self.json_of("lora", "extract", "base", "tuned", "--rank", "1", "-o", "one_each")
        header = size_of("one_each") - one_each["bytes"]
        n_tensors = len(read(self.folder / "one_each/adapter_model.safetensors"))
        self.assertGreater(report["bytes"] + header, 6000 - 4 * 40 - (24 + 3 + 16) * n_tensors - 8)
        sizes = [len(tensor[2]) for tensor in read(self.folder / "adapter/adapter_model.safetensors").values()]
        self.assertEqual(sum(sizes), report["bytes"])

    def test_for_vllm_states_what_is_lost(self):
        self.llama_pair()
        tensors = read(self.folder / "tuned/model.safetensors")
        dtype, shape, data = tensors["model.norm.weight"]
        tensors["model.norm.weight"] = (dtype, shape, floats([x + 1 for x in struct.unpack("<16f", data)]))
        self.write_model("tuned", tensors, llama_config())
        said = self.succeed("lora", "extract", "base", "tuned", "--rank", "2", "--for", "vllm", "-o", "adapter")
        self.assertIn("left out    0.", said)
        self.assertIn("skipped: vLLM takes no modules_to_save", said)
        config = json.loads((self.folder / "adapter/adapter_config.json").read_text())
        self.assertFalse(config["modules_to_save"])

    def test_a_dry_run_writes_nothing(self):
        self.llama_pair()
        said = self.succeed("lora", "extract", "base", "tuned", "--rank", "2", "--dry-run")
        self.assertIn("21 tensors: 14 low-rank, 7 unchanged\n", said)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["base", "tuned"])

    def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(self):
        size, n = 192, 10
        self.write_model("base", {f"layers.{i}.w.weight": ("F32", [size, size], floats([1.0]) * (size * size))
                                  for i in range(n)})
        changed = {}
        for i in range(n):
            row = floats(numbers(size, i + 1))
            data = bytearray(floats([1.0]) * (size * size))
            for j in range(0, size, 3):
                data[4 * size * j:4 * size * (j + 1)] = floats([1 + x / 64 for x in struct.unpack(f"<{size}f", row)])
            changed[f"layers.{i}.w.weight"] = ("F32", [size, size], bytes(data))
        self.write_model("tuned", changed)
        command = ("lora", "extract", "base", "tuned", "--rank", "8", "-o")
        self.succeed(*command, "whole")
        partial = self.folder / "killed.partial"
        for _ in range(10):  # a run may be faster than the look at its manifest
            process = subprocess.Popen([str(ECKART), *command, "killed"], cwd=self.folder, stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and process.poll() is None:
                manifest = partial / "manifest.jsonl"
                if manifest.exists() and manifest.read_bytes().count(b"\n") >= 4:
                    break
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if not (self.folder / "killed").exists():
                break
            shutil.rmtree(self.folder / "killed")
        self.assertTrue(partial.exists(), "no run could be killed before it ended")
        said = self.succeed(*command, "killed")
        self.assertIn("taken over from a run that was cut off\n", said)
        for name in ("adapter_model.safetensors", "adapter_config.json", "eckart_report.json"):
            self.assertEqual((self.folder / "whole" / name).read_bytes(), (self.folder / "killed" / name).read_bytes())
        self.assertFalse(partial.exists())

    def test_a_result_is_never_overwritten(self):
        self.llama_pair()
        self.write("adapter/note.txt", "mine")
        said = self.fail_with(1, "lora", "extract", "base", "tuned", "--rank", "2", "-o", "adapter")
        self.assertIn("because it is there already and not empty", said)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["adapter", "base", "tuned"])
        said = self.fail_with(1, "lora", "extract", "base", "tuned", "--rank", "2", "-o", "none/adapter")
        self.assertIn("none does not exist", said)

    def test_other_options_do_not_go_on_with_unfinished_work(self):
        self.llama_pair()
        os.mkdir(self.folder / "adapter.partial")
        self.write("adapter.partial/lock", "")
        self.write("adapter.partial/manifest.jsonl", '{"fingerprint":"0","made_by":"eckart"}\n')
        said = self.fail_with(1, "lora", "extract", "base", "tuned", "--rank", "2", "-o", "adapter")
        self.assertIn("holds the unfinished work of a run with other inputs or options", said)

    def test_wrong_usage(self):
        self.llama_pair()
        for arguments, said in (
            ([], "nothing says how much to keep"),
            (["--rank", "0"], "--rank is 0, but must be from 1"),
            (["--energy", "1.5"], "--energy is '1.5', but must be a number above 0 and at most 1"),
            (["--rank", "2", "--energy", "0.5"], "--rank"),
            (["--budget", "much"], "--budget: 'much' is no number of bytes"),
            (["--rank", "2", "--for", "ollama"], "--for is 'ollama', but must be vllm or llama.cpp"),
            (["--rank", "2", "--embeddings", "no"], "--embeddings is 'no', but must be save, lora or skip"),
        ):
            self.assertIn(said, self.fail_with(2, "lora", "extract", "base", "tuned", "-o", "adapter", *arguments))
        self.assertIn("--output is missing", self.fail_with(2, "lora", "extract", "base", "tuned", "--rank", "2"))
        said = self.fail_with(1, "lora", "extract", "base", "tuned", "--rank", "2", "--dtype", "I8", "-o", "adapter")
        self.assertIn("factors can't be written as I8, but as F32, F16 or BF16", said)
        self.assertFalse((self.folder / "adapter.partial").exists())


if __name__ == "__main__":
    unittest.main()
