"""packaging/Containerfile, read into stages of instructions."""
import re
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
FILE = TOP / "packaging/Containerfile"


@dataclass
class Stage:
    base: str
    name: str
    steps: list = field(default_factory=list)  # (instruction, the rest of its line)

    def all(self, instruction):
        return [rest for word, rest in self.steps if word == instruction]

    def one(self, instruction):
        found = self.all(instruction)
        assert len(found) == 1, f"{len(found)} lines {instruction} in the stage {self.name or 'at the end'}"
        return found[0]


def stages(text):
    found = []
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if not line.strip():
            continue
        word, rest = line.split(None, 1)
        if word == "FROM":
            words = rest.split()
            found.append(Stage(words[0], words[2] if len(words) == 3 and words[1] == "AS" else ""))
        else:
            found[-1].steps.append((word, rest.strip()))
    return found
