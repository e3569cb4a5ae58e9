"""``python -m gpubench.fleet`` is ``gpubench fleet worker``, which does not mind options of Dask's
own worker here: it stands where a cluster starts ``python -m distributed.cli.dask_worker``."""

from __future__ import annotations

import sys

from gpubench.cli import main
from gpubench.cli.fleet import worker

worker.context_settings = {"ignore_unknown_options": True, "allow_extra_args": True}
main(["fleet", "worker", *sys.argv[1:]], prog_name="gpubench")
