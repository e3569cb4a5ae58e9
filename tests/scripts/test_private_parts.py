"""What gpubench uses of others' private parts is listed, and the installed releases have it."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOFTCUDA = ROOT / "softcuda/softcuda"
sys.path.insert(0, str(ROOT / "scripts"))

from private_parts import PARTS, find_missing, is_private, used_parts  # noqa: E402


def test_the_list_is_what_the_code_uses() -> None:
    assert used_parts() == PARTS


def test_one_module_of_a_distribution_uses_a_part() -> None:
    softcuda = {*SOFTCUDA.rglob("*.py")}
    names = {"/".join(path.with_suffix("").parts[-2:]) for path in softcuda}
    for modules in PARTS.values():
        assert len(modules - names) <= 1 >= len(modules & names)


def test_installed_packages_have_all_parts() -> None:
    assert [part for part in PARTS if find_missing(part)] == []


def test_a_part_that_is_gone_is_found() -> None:
    assert find_missing("asv.step_detect.no_such_function") is True
    assert find_missing("no_such_package._inner") is None


def test_private_is_what_nobody_promises_to_keep(tmp_path: Path) -> None:
    assert is_private("ray._private.ray_constants")
    assert not is_private("numba.config")
    assert not is_private("os.__file__")
    text = 'from asv.repo import get_repo\nimport a._b\nx = import_module("numba.core.typing")\n'
    text += "code = 'import asv.util'\n_own = get_repo.dvcs._hidden._own\nx._replace(a=1)\n"
    (tmp_path / "module.py").write_text(text)
    found = {"asv.repo.get_repo", "a._b", "numba.core.typing", "asv.util", "an object's _hidden"}
    assert {*used_parts(tmp_path)} == found
