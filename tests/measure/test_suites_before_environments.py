"""asv's plugin reads the suites before asv makes an environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench import asv_plugin

SUITE = """\
version: 1
suite: scale
kernels:
  scale:
    sizes: {n: [8]}
    arrays: {a: {shape: [n], dtype: float32, intent: inout}}
    call: [a]
    implementations: {numpy: {function: "at_another_commit:f"}}
presets: {smoke: {sizes: {n: [2]}}}
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    monkeypatch.delenv("GPUBENCH_SUITES", raising=False)
    asv_plugin.refuse_faulty_suites()  # without any it has nothing to say
    path = tmp_path / "suites/scale.yaml"
    path.parent.mkdir()
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_what_is_sound_is_measured_whatever_the_commit_holds(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asv_plugin.refuse_faulty_suites()
    monkeypatch.setenv("GPUBENCH_PRESET", "smoke")
    asv_plugin.refuse_faulty_suites()


def test_a_fault_ends_asv_with_its_place(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_text(SUITE.replace("call:", "cal:"), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        asv_plugin.refuse_faulty_suites()
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "suites/scale.yaml:7:5: unknown field 'cal' in kernel 'scale'; did you mean 'call'?",
        "gpubench: 1 fault in suites; nothing is measured",
    ]


def test_an_unknown_preset_ends_asv(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUBENCH_PRESET", "smok")
    with pytest.raises(SystemExit):
        asv_plugin.refuse_faulty_suites()
    assert "unknown preset 'smok'; did you mean 'smoke'?" in capsys.readouterr().err
