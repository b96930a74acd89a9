"""The command line as such: usage, help, man page, completions, exit statuses."""

import os
import re
import subprocess
import unittest

from support import ECKART, EXAMPLE, CommandTest, safetensors


class Command(CommandTest):
    def test_help_shows_an_example_first_for_every_command(self):
        commands = re.findall(r"^  (\w+)  ", self.succeed("--help"), re.MULTILINE)
        self.assertEqual(sorted(commands), [
            "attend", "check", "completion", "cosine", "count", "diff", "eigh", "embed", "generate", "inspect", "lora",
            "lowrank", "lstsq", "man", "matmul", "norm", "pca", "project", "rank", "shapes", "solve", "spectrum", "svd",
            "trace"])
        for command in commands:
            text = self.succeed(command, "--help")
            self.assertTrue(text.startswith(f"Example:\n  $ eckart {command}"), text)
            self.assertIn(f"Usage: eckart {command}", text)

    def test_wrong_usage_is_status_2_and_names_the_way_out(self):
        self.assertIn("eckart --help", self.fail_with(2, "explode"))
        self.assertIn("eckart count --help", self.fail_with(2, "count", EXAMPLE, "--nonsense"))
        self.assertIn("--context", self.fail_with(2, "count", EXAMPLE, "--context", "many"))
        self.assertIn("PATH is missing", self.fail_with(2, "inspect"))
        self.assertIn("no command 'cuont'; did you mean count?", self.fail_with(2, "cuont", EXAMPLE))
        self.assertIn("no option --lora_rank; did you mean --lora-rank?",
                      self.fail_with(2, "count", "--lora_rank", "8"))
        self.assertIn("'extra'", self.fail_with(2, "inspect", EXAMPLE, "extra"))

    def test_numbers_are_decimal_and_in_range_or_refused(self):
        self.assertEqual(self.json_of("count", EXAMPLE, "--context", "0512")["context"], 512)
        for command, option in (("count", "--context"), ("count", "--batch"), ("count", "--lora-rank"),
                                ("shapes", "--tokens"), ("shapes", "--batch"), ("inspect", "--threads")):
            for value in ("0x10", "32k", "-1", "0", "", "1.5", "99999999999999999999", "8192,"):
                with self.subTest(option=option, value=value):
                    message = self.fail_with(2, command, EXAMPLE, option, value)
                    self.assertIn(f"{option} is {value}" if value.strip("-").isdigit() else option, message)
                    self.assertIn(value, message)
        self.assertIn("--layer", self.fail_with(2, "shapes", EXAMPLE, "--layer", "-1"))

    def test_an_empty_value_is_wrong_usage(self):
        for option in ("--fit", "--context", "--dtype", "--kv-dtype", "--activation-dtype"):
            self.assertIn(option + " is empty", self.fail_with(2, "count", EXAMPLE, option, ""))
        self.assertIn("--lora-targets is empty",
                      self.fail_with(2, "count", EXAMPLE, "--lora-rank", 2, "--lora-targets", ""))
        for command in ("inspect", "check", "count", "shapes"):
            self.assertIn("is empty", self.fail_with(2, command, ""))

    def test_standard_error_that_cannot_be_written_leaves_the_status(self):
        for redirection in ("2>/dev/full", "2>&-", ">&- 2>&-"):
            for arguments, status in (("inspect no-such-file", 1), ("explode", 2)):
                result = subprocess.run(["bash", "-c", f"{ECKART} {arguments} {redirection}"], check=False)
                self.assertEqual(result.returncode, status, (redirection, arguments))
        result = subprocess.run(["bash", "-c", f"{ECKART} inspect {EXAMPLE} >&-"], capture_output=True, check=False)
        self.assertEqual(result.returncode, 1)

    def test_the_command_line_does_not_steer_the_terminal(self):
        for arguments in (("\x1b[31mred",), ("count", EXAMPLE, "--\x1b[31m"), ("count", EXAMPLE, "--dtype", "\x1b[31m"),
                          ("inspect", "\x1b[31m"), ("inspect", "\udcff\udcfe")):
            result = self.run_eckart(*arguments)
            self.assertIn(result.returncode, (1, 2))
            self.assertNotIn("\x1b", result.stderr)
            result.stderr.encode()  # UTF-8

    def test_exit_statuses_stand_in_every_help(self):
        for command in ("inspect", "check", "count", "shapes"):
            self.assertIn("Exit status: 0 success; 1 an error", self.succeed(command, "--help"))
        self.assertIn("eckart completion bash|zsh|fish [OPTIONS]", self.succeed("completion", "--help"))
        self.assertNotIn("{bash", self.succeed("completion", "--help") + self.succeed("man"))

    def test_without_a_command_it_shows_its_help(self):
        result = self.run_eckart()
        self.assertEqual(result.returncode, 2)
        self.assertIn("Commands:", result.stdout)

    def test_the_version_is_printed(self):
        self.assertRegex(self.succeed("--version"), r"^eckart \d+\.\d+\.\d+\n$")

    def test_the_manual_page_names_every_command_and_option(self):
        page = self.succeed("man").replace("\\-", "-")
        for word in ("eckart inspect", "eckart check", "eckart count", "--lora-rank", "--fit", "EXIT STATUS"):
            self.assertIn(word, page)

    def test_completions_are_valid_scripts_that_offer_the_options(self):
        bash = self.succeed("completion", "bash")
        self.assertEqual(subprocess.run(["bash", "-n"], input=bash, text=True, check=False).returncode, 0)
        script = bash + "\nCOMP_WORDS=(eckart count --lo); COMP_CWORD=2; _eckart; echo ${COMPREPLY[@]}"
        offered = subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True).stdout
        self.assertIn("--lora-rank", offered)

        def offers(*words):
            line = " ".join(f"'{word}'" for word in words)
            script = f"{bash}\ncompopt() {{ :; }}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _eckart; " \
                     "printf '%s\\n' \"${COMPREPLY[@]}\""
            return subprocess.run(["bash", "-c", script], cwd=self.folder, text=True, capture_output=True,
                                  check=True).stdout.splitlines()
        self.write("my model.safetensors", b"")
        self.assertEqual(offers("eckart", "inspect", "my"), ["my model.safetensors"])
        self.assertEqual(offers("eckart", "completion", ""), ["bash", "zsh", "fish"])
        self.assertIn("BF16", offers("eckart", "count", "x", "--dtype", ""))
        self.assertEqual(offers("eckart", "count", "x", "--context", ""), [""])
        for shell in ("zsh", "fish"):
            self.assertIn("--lora-rank" if shell == "zsh" else "lora-rank", self.succeed("completion", shell))
        self.fail_with(2, "completion", "tcsh")

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([str(ECKART), "inspect", str(EXAMPLE)], stdout=full, stderr=subprocess.PIPE,
                                    text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output: can't be written: No space left on device", result.stderr)
        # More than a buffer: the write that fails is not the last one.
        self.write("w.safetensors", safetensors({f"t{i}": ("U8", [1]) for i in range(5000)}))
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([str(ECKART), "inspect", "w.safetensors", "--tensors"], stdout=full, check=False,
                                    stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.assertIn("No space left on device", result.stderr)

    def test_a_path_that_is_not_there_is_named(self):
        for command in ("inspect", "count", "shapes"):
            self.assertIn("no-such-model", self.fail_with(1, command, "no-such-model"))

    def test_no_colour_outside_a_terminal(self):
        self.assertNotIn("\x1b", self.succeed("inspect", EXAMPLE))

    def test_tables_fit_the_terminal(self):
        command = f"stty cols 70 2>/dev/null; COLUMNS=70 {ECKART} inspect {EXAMPLE}"
        shown = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True,
                               check=True).stdout
        table = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "").split("\n\n")[1]
        self.assertIn("…", table)
        self.assertLessEqual(max(map(len, table.split("\n"))), 70)

    def test_the_command_does_not_need_a_locale(self):
        environment = {**os.environ, "LC_ALL": "xx_YY.UTF-8"}
        self.assertEqual(self.succeed("inspect", EXAMPLE, env=environment), self.succeed("inspect", EXAMPLE))


if __name__ == "__main__":
    unittest.main()
