"""``python -m gpubench`` is ``gpubench``."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is imported ends it as at any other moment."""
    try:
        # Missing where another distribution has overwritten gpubench/__init__.py.
        from gpubench import __version__  # noqa: F401
        from gpubench.cli import main as commands
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)  # Exit.INTERRUPTED, whose module may not be there yet
    except ImportError as error:
        from gpubench.distribution import describe_conflict, describe_loss

        # Another distribution has overwritten gpubench/__init__.py, or has taken it along.
        reason = describe_conflict() or (describe_loss() if error.name == "gpubench" else None)
        if reason is None:
            raise
        print(f"gpubench: {reason}", file=sys.stderr)
        sys.exit(2)  # Exit.REFUSED
    except (EOFError, TypeError, ValueError) as error:
        from gpubench.distribution import describe_damage

        if (reason := describe_damage(error)) is None:
            raise
        print(f"gpubench: {reason}", file=sys.stderr)
        sys.exit(2)
    try:
        commands(prog_name="gpubench")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # pressed while Python ends, it ends at once
        gc.freeze()  # Python searches all that is left for garbage, a seventh of `gpubench plan`


if __name__ == "__main__":
    main()
