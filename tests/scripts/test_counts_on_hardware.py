"""``scripts/counts_on_hardware.py``: what it makes of what ``ncu`` and ``gpubench count`` wrote."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "counts_on_hardware.py"
ADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
FMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
UNITS = {"ID": "", "Kernel Name": "", SECTORS: "sector", ADD: "inst", FMA: "inst"}
LAUNCHES = [
    ("first", "1,000", "8", "4"),
    ("second", "24", "0", "0"),
    ("case_ends", "0", "0", "0"),
    ("of a case that failed", "7", "7", "7"),
    ("case_ends", "0", "0", "0"),
    ("third", "5", "0", "0"),
    ("case_ends", "0", "0", "0"),
]


def case(name: str, **totals: int) -> dict[str, object]:
    return {"name": name, "counts": {"missing": None, "totals": totals}}


def test_launches_of_a_case_add_up_and_are_held_against_its_counts(tmp_path: Path) -> None:
    with (tmp_path / "launches.csv").open("w") as file:
        file.write("==PROF== Connected to process 1\n")
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(UNITS)
        writer.writerow(UNITS.values())
        writer.writerows((str(i), *launch) for i, launch in enumerate(LAUNCHES))
    (tmp_path / "cases.json").write_text(json.dumps(["a", "", "b"]))
    counts = [
        case("a", global_load_sectors=1024, flops_float32=16),
        case("b", global_load_sectors=4),
        {"name": "c", "counts": None},
    ]
    (tmp_path / "counts.json").write_text(json.dumps({"cases": counts}))
    command = [sys.executable, SCRIPT, "--keep", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    (sectors,) = [i for i, line in enumerate(lines) if " global_load_sectors " in line]
    assert lines[sectors].split()[:4] == ["1", "of", "2", "alike"]
    assert lines[sectors + 1].strip() == "b: counted 4, measured 5"
    (flops,) = [line for line in lines if "flops_float32" in line]
    assert flops.split()[:4] == ["2", "of", "2", "alike"]  # an fma is two
