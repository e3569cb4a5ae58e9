"""The stepwise fit of asv comes without the rest of asv, which can be imported afterwards."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """\
import sys
import numpy as np
from gpubench.analysis.changes import levels_of

(levels,) = levels_of([np.log(np.repeat([1.0, 2.0], 20))])
print(len(levels), "asv" in sys.modules, "asv.commands" in sys.modules)

from asv import step_detect
from asv.commands import make_argparser

print(len(step_detect.detect_steps([1.0] * 10 + [2.0] * 10)), callable(make_argparser))
"""


def test_a_fit_imports_no_commands_of_asv_and_leaves_asv_whole() -> None:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False", "False", "2", "True"]
