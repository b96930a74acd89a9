"""How many tests a program ran, told from what it printed: GoogleTest, unittest, or ctest of these."""
import dataclasses
import re

CTEST_LINE = re.compile(r"^(\d+): (.*)$")
# `1/3 Test  #2: io ......   Passed    0.01 sec`, `2/3 Test #1: core .....***Failed  0.01 sec`
CTEST_RESULT = re.compile(
    r"^ *\d+/\d+ Test +#(\d+): (\S+) \.*( +Passed|\*\*\*.*?) +[\d.]+ sec")


@dataclasses.dataclass
class Counts:
    """Tests that passed, failed and were left out."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed,
                      self.skipped + other.skipped)


def count_program(text):
    """The tests of one GoogleTest or unittest program, or None when it is neither."""
    gtest = [sum(int(n) for n in re.findall(rf"^\[  {word} \] (\d+) tests?[.,]", text, re.MULTILINE))
             for word in ("PASSED ", "FAILED ", "SKIPPED")]
    if any(gtest) or re.search(r"^\[==========\] Running", text, re.MULTILINE):
        return Counts(*gtest)
    python = re.findall(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED)(.*)$", text, re.MULTILINE)
    if not python:
        return None
    total = Counts()
    for ran, _, rest in python:
        kinds = {kind: int(n) for kind, n in re.findall(r"(\w+)=(\d+)", rest)}
        skipped = kinds.get("skipped", 0)
        failed = kinds.get("failures", 0) + kinds.get("errors", 0)
        # One test with subtests may fail more than once.
        total += Counts(max(int(ran) - failed - skipped, 0), failed, skipped)
    return total


def count_ctest(text):
    """Counts of `ctest --verbose`: each program's own tests, or the program itself as one.

    Returns the counts and the output of every program that failed, by name.
    """
    output, total, failures = {}, Counts(), {}
    for line in text.splitlines():
        said = CTEST_LINE.match(line)
        if said:
            output.setdefault(said[1], []).append(said[2])
            continue
        result = CTEST_RESULT.match(line)
        if not result:
            continue
        number, name, status = result[1], result[2], result[3].strip(" *")
        lines = output.get(number, [])
        counts = count_program("\n".join(lines) + "\n")
        if status == "Passed":
            total += counts or Counts(passed=1)
        elif status == "Skipped":
            total += Counts(skipped=1)
        else:
            counts = counts or Counts()
            # A program that crashed, or leaked at its end, has told of no failure.
            total += dataclasses.replace(counts, failed=max(counts.failed, 1))
            failures[name] = [f"{name}: {status}", *lines]
    return total, failures
