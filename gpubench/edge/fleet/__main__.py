"""``python -m gpubench.edge.fleet`` is ``gpubench fleet worker``, which takes options of Dask's own
worker too: it stands where a cluster starts ``python -m distributed.cli.dask_worker``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click

from gpubench.cli import main
from gpubench.edge.fleet.command import worker

if find_spec("distributed"):  # without, the command says how to install it
    from distributed.cli.dask_worker import main as dask_worker

    # They are parsed, so that no value of theirs is taken for the scheduler's address.
    taken = {name for parameter in worker.params for name in parameter.opts}
    for parameter in dask_worker.params:
        if isinstance(parameter, click.Option) and taken.isdisjoint(parameter.opts):
            parameter.expose_value = False
            worker.params.append(parameter)
main(["fleet", "worker", *sys.argv[1:]], prog_name="gpubench")
