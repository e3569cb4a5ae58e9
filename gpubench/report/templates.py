"""Compile the templates of pages, once for each folder of templates, and fill them."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec
from jinja2 import (
    BytecodeCache,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2 import __version__ as jinja2_version
from jinja2.bccache import Bucket
from jinja2.loaders import split_template_path
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gpubench.analysis.direction import direction_word
from gpubench.distribution import VERSION
from gpubench.errors import GpubenchError
from gpubench.files import replace_file
from gpubench.links import leads_out
from gpubench.report import comparison_columns, comparison_view, count_view, figures, lists, text
from gpubench.report.freshness import packaged_templates, stamp_of
from gpubench.report.page import ReportFile
from gpubench.report.pages import all_pages
from gpubench.statuses import DECLARED_STATUSES

_PLAIN = (str, int, float, list, tuple, dict, set, frozenset)


def packaged_environment() -> Environment:
    """Return what the shipped templates are rendered with."""
    return page_environment(None)


def read_packaged(name: str) -> str:
    """Return the text of a shipped script or style."""
    return (packaged_templates() / name).read_text(encoding="utf-8")


class ProjectLoader(FileSystemLoader):
    """Templates of a project, which may be anybody's: a link out of their folder is not read."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        folder = Path(self.searchpath[0])
        path = folder.joinpath(*split_template_path(template))
        if leads_out(path, folder):
            raise GpubenchError(f"{path} is a symbolic link out of {folder}; copy the file there")
        return super().get_source(environment, template)


class ProjectEnvironment(ImmutableSandboxedEnvironment):
    """Templates of a project, which may be anybody's, compute from what they are given and reach
    nothing else (https://jinja.palletsprojects.com/en/stable/sandbox/)."""

    def is_safe_callable(self, obj: Any) -> bool:
        """Methods of plain values, of views and of Jinja's own things: a view may hold an object
        that can do more, such as write a file."""
        method = getattr(obj, "__wrapped__", obj)  # Jinja wraps str.format
        owner = getattr(method, "__self__", method)
        package = str(getattr(owner, "__module__", "")).partition(".")[0]
        is_known = isinstance(owner, _PLAIN) or package in ("gpubench", "jinja2")
        return (is_known or obj in (range, dict)) and super().is_safe_callable(obj)


class CompiledTemplates(BytecodeCache):
    """Keeps compiled templates: to compile them takes as long as all else of a small report.

    A process keeps all compiled templates for its next report, as ``gpubench serve`` needs them.
    Templates of the package are kept on disk beside the compiled code of the package's modules.
    Compiled code that is read back could do anything, but who may write there may replace modules
    already. A project's templates are never kept there.
    """

    def __init__(self, beside: Path | None = None) -> None:
        """Keep templates of the package beside the compiled code of modules in this one's folder;
        ``None``: not on disk."""
        self._beside = beside
        self._kept: dict[tuple[bool, str], tuple[str, CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket, unless the template's text has changed."""
        checksum, code = self._kept.get(self._key(bucket), (None, None))
        if checksum == bucket.checksum:
            bucket.code = code
        elif path := self._path(bucket):
            with suppress(OSError, EOFError, ValueError, TypeError):  # none, or half of one
                content = path.read_bytes()
                header = self._header()
                if content.startswith(header):
                    bucket.bytecode_from_string(content.removeprefix(header))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._kept[self._key(bucket)] = bucket.checksum, bucket.code
        if (path := self._path(bucket)) and not sys.dont_write_bytecode:
            with suppress(OSError):  # the package is for reading only
                replace_file(path, self._header() + bucket.bytecode_to_string())

    def _path(self, bucket: Bucket) -> Path | None:
        """Return where Python would keep a module that is named by the template's key; ``None`` for
        a template of a project, which is compiled for a sandbox, and without a place."""
        if bucket.environment.sandboxed or self._beside is None:
            return None
        return Path(cache_from_source(str(self._beside.with_name(f"template_{bucket.key}.py"))))

    def _header(self) -> bytes:
        """Return what compiled templates depend on beside their texts: Jinja, and settings."""
        made_by = f"{jinja2_version} {stamp_of([Path(__file__)])}"
        return hashlib.sha256(made_by.encode()).digest()

    def _key(self, bucket: Bucket) -> tuple[bool, str]:
        """Return another key in a sandbox: there a template becomes code that asks before each
        call."""
        return bucket.environment.sandboxed, bucket.key


def page_environment(overrides: Path | None) -> Environment:
    others = [page.folder for page in all_pages() if page.folder]
    packaged = FileSystemLoader([packaged_templates(), *others])
    own = [ProjectLoader(overrides)] if overrides else []
    environment = (ProjectEnvironment if overrides else Environment)(
        loader=ChoiceLoader([*own, packaged, PrefixLoader({"packaged": packaged})]),
        autoescape=True,
        auto_reload=False,  # which asks the disk for each block of a page
        bytecode_cache=_COMPILED,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A chart has thousands of numbers: msgspec writes them in a tenth of the time of json.
    environment.policies["json.dumps_function"] = lambda value: msgspec.json.encode(value).decode()
    environment.policies["json.dumps_kwargs"] = {}
    filters = (
        direction_word,
        text.seconds, text.seconds_interval, text.speedup, text.ratio, text.interval, text.factor,
        text.factor_interval, text.level, text.rate, text.digits, text.error, text.score,
        text.plural, text.status_label, text.time_label, text.sizes, text.share, text.launch,
        text.layouts, text.broken, text.disturbed, text.memory, text.measured, text.quantity,
        comparison_columns.look_of, comparison_columns.side_words,
        comparison_view.difference_listed, lists.grouped,
        figures.history_figure, figures.size_figure, figures.roofline_figure,
    )  # fmt: skip
    environment.filters |= {function.__name__: function for function in filters}
    environment.globals["statuses"] = {status.name: status for status in DECLARED_STATUSES}
    environment.globals["comparison_columns"] = comparison_columns.PAGE_COLUMNS
    environment.globals["sure"] = comparison_columns.SURE
    environment.globals["counts_title"] = count_view.TITLE
    return environment


def fill_template(environment: Environment, page: ReportFile, mark: str, selection: str) -> str:
    shown = {"page": page.make(), "address": page.address, "selection": selection}
    try:
        template = environment.get_template(page.template)
        return _squeezed(template.render(**shown, version=VERSION, sources=mark))
    except TemplateSyntaxError as error:
        place = f"{error.filename or error.name}:{error.lineno}"
        raise GpubenchError(f"{place}: {error.message}; mend or remove that template") from error
    except GpubenchError:
        raise
    except Exception as error:  # a template can raise anything
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        message = f"the template of {page.address} ({page.template}) fails: {kind}{error}"
        raise GpubenchError(
            f"{message}; mend or remove the project's own {page.template}"
        ) from error


def _squeezed(page: str) -> str:
    """Return a page without the blanks that a template has at the beginnings of lines, outside of
    text that shows them: with thousands of rows they are a tenth of a page."""
    pieces = re.split(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", page, flags=re.DOTALL)
    pieces[::2] = [re.sub(r"\s*\n\s*", "\n", piece) for piece in pieces[::2]]
    return "".join(pieces)


_COMPILED = CompiledTemplates(Path(__file__))
