"""Observers of other packages are found by entry point, and none of ours knows of another."""

import ast
import sys
from pathlib import Path

import pytest
from timed import scripted_cases

from gpubench import entry_points
from gpubench.measure import observers
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.observers.protocol import EVENTS, Observer
from gpubench.measure.recorder import run_facts

RECIPE = (Path(__file__).parents[2] / "docs" / "adding-an-observer.md").read_text(encoding="utf-8")
EXAMPLE = RECIPE.partition("```python\n")[2].partition("```")[0]
"""The observer of the document, word for word."""

ROOM = Path(observers.__file__).parent
SHARED = {"protocol"}
"""What every observer may know."""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Returns what lays out a package with an observer, as ``pip install --target`` does."""

    def forget():
        entry_points._installed.cache_clear()
        entry_points.declared.cache_clear()

    def install(source, entry="switches:SwitchObserver", module="switches"):
        folder = tmp_path / "packages"
        info = folder / "switch_counter-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: switch-counter\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(f"[gpubench.observers]\nswitches = {entry}\n")
        monkeypatch.syspath_prepend(folder)
        forget()

    yield install
    monkeypatch.undo()
    sys.modules.pop("switches", None)
    forget()


def record_of(folder):
    (base,) = scripted_cases(folder, sampling="rounds: 1, repeat: 2")
    return take_turn(Job(base)).record


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not count switches so")
def test_the_observer_of_the_document_puts_on_record_what_it_counts(tmp_path, installed):
    installed(EXAMPLE)
    record = record_of(tmp_path)
    assert record.status == "ok", record.reason
    assert isinstance(record.conditions["involuntary_switches"], int)


def test_where_none_is_installed_nothing_of_it_is_on_record(tmp_path):
    assert "involuntary_switches" not in record_of(tmp_path).conditions
    assert "observers" not in run_facts()


def test_which_observers_a_run_has_is_a_fact_of_it(installed):
    """They may move a time."""
    installed(EXAMPLE)
    assert run_facts()["observers"] == "switches of switch-counter 1.0"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import sensors_of_nobody",
            "observer 'switches' of switch-counter cannot be loaded from switches:SwitchObserver: "
            "ModuleNotFoundError: No module named 'sensors_of_nobody'; "
            "fix or uninstall switch-counter",
        ),
        (
            "class SwitchObserver: pass",
            "observer 'switches' of switch-counter is no gpubench.measure.observers.protocol."
            "Observer; derive it from that class, which has a method for each event",
        ),
        (
            EXAMPLE.replace("ru_nivcsw", "ru_nothing"),
            "observer 'switches' of switch-counter failed in on_sample_begin: AttributeError: "
            "'resource.struct_rusage' object has no attribute 'ru_nothing'; fix or uninstall it",
        ),
    ],
    ids=["missing module", "no observer", "fails"],
)
def test_an_observer_that_cannot_be_used_fails_the_case_with_one_line(
    tmp_path, installed, source, reason
):
    installed(source)
    record = record_of(tmp_path)
    assert (record.status, record.reason) == ("failed", reason)


def test_the_document_names_every_event():
    named = {event for event in EVENTS if f"`{event}" in RECIPE}
    methods = {name for name in vars(Observer) if name.startswith("on_")}
    assert named == set(EVENTS) == methods


def imported_observers(path):
    """Names of the modules of the room that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, module = node.module.rpartition(".")
            if node.module == observers.__name__:
                found |= {alias.name for alias in node.names}
            elif package == observers.__name__:
                found.add(module)
    return found


def test_no_observer_knows_of_another():
    files = [path for path in ROOM.glob("*.py") if path.stem not in ("registry", "__init__")]
    assert len(files) > 6
    assert {path.stem: imported_observers(path) - SHARED for path in files} == {
        path.stem: set() for path in files
    }
