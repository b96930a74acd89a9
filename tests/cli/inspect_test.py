"""eckart inspect: the table, the three sources, the values."""

import json
import os
import struct
import unittest

from support import EXAMPLE, MINILM, CommandTest, llama_config, llama_tensors, safetensors


class Inspect(CommandTest):
    def model(self, config, tensors):
        self.write("config.json", json.dumps(config))
        self.write("model.safetensors", safetensors(tensors))

    def differences(self):
        return {d["kind"]: d for d in self.report_of("inspect", ".")["differences"]}

    def test_repeated_layers_fold_and_axes_have_names(self):
        text = self.succeed("inspect", EXAMPLE)
        self.assertIn("model.layers.{0..3}", text)
        self.assertRegex(text, r"self_attn.q_proj +128x128 \(heads, d_model\)")
        self.assertRegex(text, r"mlp.down_proj +128x288 \(d_model, d_ff\)")
        self.assertIn("config.json, the index and the headers agree", text)

    def test_all_tensors_are_listed_on_request(self):
        text = self.succeed("inspect", EXAMPLE, "--tensors")
        self.assertEqual(text.count("self_attn.q_proj"), 4)
        listed = self.json_of("inspect", EXAMPLE, "--tensors")["tensors"]
        self.assertEqual(sum(t["end"] - t["begin"] for t in listed), 1_804_544)

    def test_the_real_model_has_22713216_parameters(self):
        if not MINILM.is_dir():
            self.skipTest("the real checkpoint was not fetched (tools/fetch_minilm)")
        found = self.json_of("inspect", MINILM)
        self.assertEqual(found["parameters"], {"total": 22_713_216, "active": 22_713_216})
        self.assertEqual(found["bytes"], 90_856_960)
        self.assertEqual([d for d in found["differences"] if d["level"] != "note"], [])
        self.assertEqual(found["not_counted"][0]["name"], "embeddings.position_ids")

    def test_a_checkpoint_that_agrees_has_no_differences(self):
        config = llama_config()
        self.model(config, llama_tensors(config))
        self.assertEqual(self.differences(), {})

    def test_a_missing_and_an_extra_tensor_are_named(self):
        config = llama_config()
        tensors = llama_tensors(config)
        del tensors["model.layers.1.mlp.up_proj.weight"]
        tensors["model.layers.0.mlp.side_proj.weight"] = ("F32", [4, 16])
        self.model(config, tensors)
        found = self.differences()
        self.assertEqual(found["missing_tensor"]["tensor"], "model.layers.1.mlp.up_proj.weight")
        self.assertEqual(found["extra_tensor"]["tensor"], "model.layers.0.mlp.side_proj.weight")

    def test_a_wrong_head_size_is_explained(self):
        config = llama_config()
        self.model({**config, "head_dim": 8}, llama_tensors(config))
        found = self.differences()["shape_differs"]
        self.assertIn("d_head", found["message"] + found["hint"])

    def test_a_tied_head_that_is_stored_too_is_explained_and_not_counted(self):
        config = llama_config()
        self.model({**config, "tie_word_embeddings": True}, llama_tensors(config))
        found = self.json_of("inspect", ".")
        self.assertIn("tied_stored", [d["kind"] for d in found["differences"]])
        self.model(config, llama_tensors(config))
        self.assertEqual(self.json_of("inspect", ".")["parameters"]["total"] - found["parameters"]["total"], 32 * 16)

    def test_rotary_buffers_are_not_counted(self):
        config = llama_config()
        tensors = llama_tensors(config)
        total = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for _, shape in tensors.values())
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = ("F32", [2])
        self.model(config, tensors)
        found = self.json_of("inspect", ".")
        self.assertEqual(found["parameters"]["total"], total)
        self.assertEqual(found["not_counted"][0]["elements"], 2)

    def test_what_contradicts_is_status_1(self):
        config = llama_config()
        self.model({**config, "vocab_size": 33}, llama_tensors(config))
        self.assertEqual(self.run_eckart("inspect", ".").returncode, 1)

    def test_an_index_that_lies_is_told_once(self):
        config = llama_config()
        self.write("m/config.json", json.dumps(config))
        self.write("m/a.safetensors", safetensors(llama_tensors(config)))
        names = {name: "a.safetensors" for name in [*llama_tensors(config), "ghost"]}
        self.write("m/model.safetensors.index.json", json.dumps({"weight_map": names}))
        text = self.run_eckart("inspect", "m").stdout
        self.assertEqual(text.count("ghost"), 1, text)

    def test_a_tensor_in_another_shard_than_the_index_says_is_an_error(self):
        config = llama_config()
        tensors = llama_tensors(config)
        head = {"lm_head.weight": tensors.pop("lm_head.weight")}
        self.write("m/config.json", json.dumps(config))
        self.write("m/a.safetensors", safetensors(tensors))
        self.write("m/b.safetensors", safetensors(head))
        names = {name: "a.safetensors" for name in tensors} | {"lm_head.weight": "b.safetensors"}
        name = "m/model.safetensors.index.json"
        self.write(name, json.dumps({"metadata": {"total_parameters": 7}, "weight_map": names}))
        text = self.succeed("inspect", "m")
        self.assertIn("the index says total_parameters 7", text)
        self.write(name, json.dumps({"weight_map": names | {"model.norm.weight": "b.safetensors"}}))
        result = self.run_eckart("inspect", "m")
        self.assertEqual(result.returncode, 1)
        self.assertIn("differ: 1 error, 0 warnings", result.stdout)
        self.assertEqual(result.stdout.count("model.norm.weight is in a.safetensors, but the index names b.safetensors"),
                         1, result.stdout)

    def test_more_layers_than_the_config_says(self):
        config = llama_config()
        self.model({**config, "num_hidden_layers": 1}, llama_tensors(config))
        self.assertIn("extra_layers", self.differences())
        self.model({**config, "num_hidden_layers": 3}, llama_tensors(config))
        self.assertIn("missing_layers", self.differences())

    def test_values_that_are_no_numbers_are_located(self):
        nan, infinity = struct.pack("<f", float("nan")), struct.pack("<f", float("inf"))
        one, zero = struct.pack("<f", 1.0), struct.pack("<f", 0.0)
        self.write("w.safetensors", safetensors({"a": ("F32", [2, 3], one * 4 + nan + infinity),
                                                 "b": ("F32", [5], zero * 5), "c": ("F32", [2], one * 2)}))
        values = self.report_of("inspect", "w.safetensors", "--values")["values"]
        self.assertEqual([t["tensor"] for t in values["tensors"]], ["a", "b"])
        self.assertEqual(values["tensors"][0]["first_nan"], 4)
        result = self.run_eckart("inspect", "w.safetensors", "--values")
        self.assertEqual(result.returncode, 1)
        text = result.stdout
        self.assertIn("a: 1 NaN (first at [1, 1]), 1 infinite (first at [1, 2]) of 6 values", text)
        self.assertIn("b: all 5 values are zero", text)

    def test_a_single_shard_is_shown_without_a_comparison(self):
        text = self.succeed("inspect", EXAMPLE / "model-00002-of-00003.safetensors")
        self.assertIn("not compared with a config", text)

    def test_a_config_that_cannot_be_read_does_not_hide_the_file(self):
        config = llama_config()
        self.model(config, llama_tensors(config))
        self.write("config.json", "{broken")
        found = self.report_of("inspect", ".")
        self.assertIn("config.json", found["no_architecture"])
        self.assertGreater(found["parameters"]["total"], 0)

    def test_a_config_that_cannot_be_used_is_an_error_that_says_what_it_is(self):
        config = llama_config()
        self.model(config, llama_tensors(config))
        whole = json.dumps(config)
        contents = {"{broken": "byte", whole[:100]: "byte", "": "empty", " \n": "blank",
                    "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n": "Git LFS pointer",
                    "<!DOCTYPE html><html>404</html>": "web page", "Entry not found": "plain text", "[1]": "object",
                    "\ufeff" + whole: "byte order mark",
                    json.dumps({**config, "num_attention_heads": 5}): "5 attention heads",
                    json.dumps({**config, "model_type": 7}): "model_type"}
        for content, word in contents.items():
            self.write("config.json", content)
            for command in ("inspect", "count"):
                with self.subTest(content=content[:40], command=command):
                    result = self.run_eckart(command, ".")
                    self.assertEqual(result.returncode, 1)
                    self.assertIn(word, result.stdout)
                    self.assertIn("error", result.stdout)
                    self.assertTrue(self.report_of(command, ".")["is_config_broken"])
        path = self.folder / "config.json"
        for make, word in ((lambda: os.mkfifo(path), "pipe"), (path.mkdir, "folder"),
                           (lambda: path.symlink_to("nowhere"), "link to a file that is not there")):
            path.rmdir() if path.is_dir() else path.unlink()
            make()
            with self.subTest(word=word):
                result = self.run_eckart("inspect", ".")
                self.assertEqual(result.returncode, 1)
                self.assertIn(word, result.stdout)
                self.assertNotIn("there is no config", result.stdout)
        path.unlink()
        self.write("config.json", '{"model_type": "zebra"}')
        self.assertFalse(self.json_of("inspect", ".")["is_config_broken"])

    def test_a_config_stands_for_its_folder(self):
        config = llama_config()
        self.model(config, llama_tensors(config))
        self.assertEqual(self.json_of("inspect", "config.json")["parameters"]["total"],
                         self.json_of("inspect", ".")["parameters"]["total"])

    def test_a_tied_matrix_that_is_stored_too_is_compared_with_the_values(self):
        config = llama_config()
        tensors = llama_tensors(config)
        self.model({**config, "tie_word_embeddings": True}, tensors)
        self.assertIn("lm_head.weight equals model.embed_tokens.weight", self.succeed("inspect", ".", "--values"))
        tensors["lm_head.weight"] = ("F32", [32, 16], struct.pack("<f", 1.0) * 512)
        self.model({**config, "tie_word_embeddings": True}, tensors)
        self.assertIn("differs from model.embed_tokens.weight", self.succeed("inspect", ".", "--values"))
        self.assertEqual(self.json_of("inspect", ".", "--values")["values"]["tied"],
                         [{"tensor": "lm_head.weight", "tied_to": "model.embed_tokens.weight", "equal": False}])

    def test_names_of_many_numbers_are_listed_and_not_unfolded(self):
        names = [".".join(str((i * 7919 + j * 104729) % 1000003) for j in range(3)) for i in range(10_200)]
        self.write("w.safetensors", safetensors({name: ("U8", [1]) for name in names}))
        text = self.succeed("inspect", "w.safetensors")
        self.assertIn("the names make more than 10,000 modules, so the tensors are listed; 200 more are in --tensors",
                      text)
        found = self.json_of("inspect", "w.safetensors")
        self.assertEqual((len(found["modules"]), found["modules_omitted"]), (10_000, 200))
        self.assertEqual(found["parameters"]["total"], 10_200)

    def test_an_array_in_a_checkpoints_place_gets_a_way_out(self):
        self.write("a.npy", b"\x93NUMPY\x01\x00" + b" " * 100)
        for command in ("inspect", "count", "shapes"):
            self.assertIn("`eckart check FILE` reads arrays", self.fail_with(1, command, "a.npy"))

    def test_json_holds_names_as_they_are(self):
        config = llama_config()
        self.write("m\x1b[31m/config.json", json.dumps(config))
        self.write("m\x1b[31m/model.safetensors", safetensors(llama_tensors(config)))
        for command in ("inspect", "count", "shapes"):
            self.assertEqual(self.json_of(command, "m\x1b[31m")["name"], "m\x1b[31m")
            self.assertNotIn("\x1b", self.succeed(command, "m\x1b[31m"))

    def test_an_empty_file_of_tensors(self):
        self.write("empty.safetensors", safetensors({}))
        self.assertIn("no tensors", self.succeed("inspect", "empty.safetensors"))

    def test_folders_without_weights_say_what_is_there(self):
        self.write("pytorch_model.bin", b"PK\x03\x04")
        self.assertIn("pytorch_model.bin", self.fail_with(1, "inspect", "."))
        self.write("config.json", json.dumps(llama_config()))
        self.assertIn("eckart count", self.fail_with(1, "inspect", "."))

    def test_names_with_control_characters_stay_printable(self):
        self.write("w.safetensors", safetensors({"evil\x1b[31m\nname": ("U8", [1])}))
        for config in (None, {**llama_config(), "architectures": ["\x1b[31mLlamaForCausalLM"]},
                       {"model_type": "\x1b[31mzebra"}):
            if config:
                self.write("config.json", json.dumps(config))
            for command in ("inspect", "count", "shapes"):
                result = self.run_eckart(command, "." if config else "w.safetensors")
                self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertEqual(self.json_of("inspect", "w.safetensors", "--tensors")["tensors"][0]["name"],
                         "evil\x1b[31m\nname")


if __name__ == "__main__":
    unittest.main()
