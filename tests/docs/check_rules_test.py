"""docs/check.md lists exactly the rules that the sources report."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The forms in which the sources name a rule: a field of a finding, the first argument of a function
# that makes one, the first member of an aggregate.
FORMS = [
    r'\brule = (?:\w+ \? )?"([a-z][a-z0-9_]+)"',
    r'\brule = \w+ \? "[a-z0-9_]+" : "([a-z][a-z0-9_]+)"',
    r'\b(?:add_error|error|warn)\(\s*"([a-z][a-z0-9_]+)"',
    r'\b(?:BrokenRule|MistakenFile|ZipFault)\{\s*(?:\w+ \? "[a-z_]+" : )?"([a-z][a-z0-9_]+)"',
    r'\bMistakenFile\{\s*\w+ \? "([a-z][a-z0-9_]+)"',
    r'"(np[yz]_[a-z0-9_]+)"',
]


class CheckRules(unittest.TestCase):
    def setUp(self):
        sources = sorted((ROOT / "src/eckart/io").glob("*.cpp"))
        self.source = "\n".join(path.read_text(encoding="utf-8") for path in sources)
        text = (ROOT / "docs/check.md").read_text(encoding="utf-8")
        first_cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
        self.documented = re.findall(r"`([a-z0-9_]+)`", " ".join(first_cells))

    def test_every_rule_of_the_sources_is_documented(self):
        reported = {rule for form in FORMS for rule in re.findall(form, self.source)}
        self.assertGreater(len(reported), 60)
        self.assertEqual(sorted(reported - set(self.documented)), [])

    def test_every_documented_rule_is_in_the_sources(self):
        missing = [rule for rule in self.documented if f'"{rule}"' not in self.source]
        self.assertEqual(missing, [])

    def test_no_rule_is_documented_twice(self):
        twice = {rule for rule in self.documented if self.documented.count(rule) > 1}
        self.assertEqual(twice, set())


if __name__ == "__main__":
    unittest.main()
