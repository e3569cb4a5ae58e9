"""``scripts/new_user.py`` types what a page shows, and finds what nobody prints of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT / "scripts"))

import new_user  # noqa: E402
from new_user import Command, NewFile, find_difference, play, read_page  # noqa: E402

sys.path.remove(str(CHECKOUT / "scripts"))

PAGE = """\
Write `notes/a.txt`:

```text
three words here
```

```console
$ cat notes/a.txt
three words here
$ cd notes
$ seq 3; wc a.txt
1
...
9 4 20 a.txt
```
"""


def test_a_page_is_files_and_commands_with_what_they_print() -> None:
    assert [*read_page(PAGE)] == [
        NewFile("notes/a.txt", "three words here\n"),
        Command("cat notes/a.txt", ("three words here",)),
        Command("cd notes", ()),
        Command("seq 3; wc a.txt", ("1", "...", "9 4 20 a.txt")),
    ]


def test_commands_run_in_one_shell_in_the_folder_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    environment = {"PATH": os.environ["PATH"]}

    def played(page: str) -> str | None:
        return play(read_page(page), tmp_path, environment)

    assert played(PAGE) is None
    changed = PAGE.replace("a.txt\n```\n", "b.txt\n```\n")
    assert "b.txt" in str(played(changed))
    assert "exit code 3" in str(played("```console\n$ (exit 3)\n```\n"))


@pytest.mark.parametrize(
    ("expected", "printed", "difference"),
    [
        (["12.5 µs at 3f2a9c1b"], ["8 ms at 0a1b2c3d4e"], None),
        (["a", "...", "c"], ["a", "b", "b", "c"], None),
        (["a", "c"], ["a", "b", "c"], "c"),
        (["a"], ["a", "b"], "b"),
        (["a", "..."], ["a"], None),
        (["a", "b"], ["a"], "b"),
        (["name ..."], ["name 3 of 4"], None),
        (["name ..."], ["another"], "name ..."),
        ([], ["a warning"], "a warning"),
        ([], ["", " "], None),
    ],
)
def test_outputs_are_compared_in_form(
    expected: list[str], printed: list[str], difference: str | None
) -> None:
    assert find_difference(expected, printed) == difference


def test_the_tutorial_leads_from_installing_to_a_comment() -> None:
    steps = [*read_page((CHECKOUT / "docs/tutorial.md").read_text())]
    lines = [step.line for step in steps if isinstance(step, Command)]
    assert "pip install --quiet gpubench-suite" in lines
    assert lines.index("cat comment.md") > lines.index("gpubench report")
    files = [step.path for step in steps if isinstance(step, NewFile)]
    assert files == ["pyproject.toml", "mine/norms.py", "mine/norms.py"]


def test_the_second_page_finds_decides_names_and_explains() -> None:
    steps = [*read_page((CHECKOUT / "docs/tutorial-2.md").read_text())]
    lines = [step.line for step in steps if isinstance(step, Command)]
    words = ("compare main", "compare --measure", "since", "count norms --cpu", "count saxpy")
    places = [
        next(place for place, line in enumerate(lines) if line.startswith(f"gpubench {word}"))
        for word in words
    ]
    assert places == sorted(places)
    assert "tutorial-2.md" in (CHECKOUT / "docs/tutorial.md").read_text()


def test_the_readme_gets_from_pip_to_a_speedup_in_five_commands() -> None:
    _, _, section = (CHECKOUT / "README.md").read_text().partition("## In your own project\n")
    commands = section.split("```")[1].strip().splitlines()
    assert len(commands) <= 5
    assert commands[0].startswith("pip install gpubench-suite")
    assert commands[-1].startswith("gpubench time ")


def test_each_kind_of_project_gets_to_a_report() -> None:
    _, *kinds = new_user.PROJECTS.read_text().split("\n## ")
    assert [kind.partition("\n")[0] for kind in kinds] == [
        "A package in `src`",
        "Scripts without a package",
        "A project that has asv",
        "Several projects in one repository",
    ]
    for kind in kinds:
        lines = [step.line for step in read_page(kind) if isinstance(step, Command)]
        for word in ("init", "add", "report"):
            assert any(line.startswith(f"gpubench {word}") for line in lines), (kind, word)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_the_tutorial_is_true_as_far_as_it_installs_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["new_user.py", "--here"])
    assert new_user.main() == 0
    typed = [line for line in capfd.readouterr().out.splitlines() if line.startswith("$ ")]
    for word in (
        "init",
        "add",
        "check",
        "verify",
        "time",
        "report",
        "init --ci",
        "compare",
        "count",
    ):
        assert any(line.startswith(f"$ gpubench {word}") for line in typed), word
    assert any("asv run --environment existing:" in line for line in typed)


@pytest.mark.thorough
@pytest.mark.end_to_end
@pytest.mark.parametrize("pages", [[], ["--page", str(new_user.PROJECTS)]])
def test_the_pages_are_true(monkeypatch: pytest.MonkeyPatch, pages: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["new_user.py", *pages])
    assert new_user.main() == 0
