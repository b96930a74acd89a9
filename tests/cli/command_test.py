"""The command line as such: usage, help, man page, completions, exit statuses."""

import os
import re
import subprocess
import unittest

from support import ECKART, EXAMPLE, CommandTest


class Command(CommandTest):
    def test_help_shows_an_example_first_for_every_command(self):
        commands = re.findall(r"^  (\w+)  ", self.succeed("--help"), re.MULTILINE)
        self.assertEqual(sorted(commands), ["check", "completion", "count", "inspect", "man", "shapes", "spectrum"])
        for command in commands:
            text = self.succeed(command, "--help")
            self.assertTrue(text.startswith(f"Example:\n  $ eckart {command}"), text)
            self.assertIn(f"Usage: eckart {command}", text)

    def test_wrong_usage_is_status_2_and_names_the_way_out(self):
        self.assertIn("eckart --help", self.fail_with(2, "explode"))
        self.assertIn("eckart count --help", self.fail_with(2, "count", EXAMPLE, "--nonsense"))
        self.assertIn("--context", self.fail_with(2, "count", EXAMPLE, "--context", "many"))
        self.assertIn("path", self.fail_with(2, "inspect").lower())

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
        for shell in ("zsh", "fish"):
            self.assertIn("--lora-rank" if shell == "zsh" else "lora-rank", self.succeed("completion", shell))
        self.fail_with(2, "completion", "tcsh")

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([str(ECKART), "inspect", str(EXAMPLE)], stdout=full, stderr=subprocess.PIPE,
                                    text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

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
