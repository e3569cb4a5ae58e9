"""``gpubench init --ci``: what the workflows say, and how they post their comment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from workflow_steps import read_workflow, steps_of

from gpubench.asv_config import read_configuration
from gpubench.cli import main
from gpubench.report.pull_request import MARKER
from gpubench.scaffold import continuous_integration

GITHUB = Path(".github/workflows/gpubench.yml")
COMMENT = Path(".github/workflows/gpubench-comment.yml")
GITLAB = Path(".gitlab/gpubench.yml")


def init(folder: Path, host: str, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["init", str(folder), "--ci", host, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(continuous_integration, "default_branch", lambda folder: "trunk")
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    return folder


def validate(schema_name: str, content: Any) -> None:
    """Validate against a schema that check-jsonschema brings."""
    import jsonschema

    schemas = pytest.importorskip("check_jsonschema.builtin_schemas")
    schema = schemas.get_builtin_schema(schema_name)
    jsonschema.validators.validator_for(schema)(schema).validate(content)


def test_githubs_workflows_fit_its_schema(project: Path) -> None:
    printed = init(project, "github")

    for path in (GITHUB, COMMENT):
        assert f"wrote {project / path}" in printed
        validate("vendor.github-workflows", json.loads(json.dumps(read_workflow(project / path))))


def test_gitlabs_jobs_fit_its_schema_and_are_included(project: Path) -> None:
    init(project, "gitlab")

    validate("vendor.gitlab-ci", yaml.safe_load((project / GITLAB).read_text()))
    included = yaml.safe_load((project / ".gitlab-ci.yml").read_text())
    assert included == {"include": [{"local": ".gitlab/gpubench.yml"}]}


def test_kernels_are_verified_then_counted_then_timed_in_one_job(project: Path) -> None:
    init(project, "github")
    steps = steps_of(read_workflow(project / GITHUB), "pull-request")

    install, verify, count, times, comment = steps
    assert "gpubench-suite[cuda]" in install.script
    assert "gpubench verify" in verify.script
    assert "--fail-on counts --markdown" in count.script
    assert 'gpubench compare --measure "$BASE" "$HEAD"' in times.script
    assert times.variables["BASE"] == "HEAD^1"
    assert times.variables["GPUBENCH_PRESET"] == "smoke"
    assert times.condition == "${{ !cancelled() && steps.verify.outcome == 'success' }}"
    assert comment.condition == "${{ !cancelled() }}"
    assert MARKER in comment.script


def test_code_of_a_pull_request_may_write_nothing_and_the_comment_runs_none(project: Path) -> None:
    init(project, "github")
    workflow, commenting = (read_workflow(project / path) for path in (GITHUB, COMMENT))

    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow["on"]) == {"pull_request", "push"}
    assert all("permissions" not in job for job in workflow["jobs"].values())
    assert commenting["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert commenting["on"]["workflow_run"]["workflows"] == [workflow["name"]]
    uses = [step.get("uses", "") for step in commenting["jobs"]["comment"]["steps"]]
    assert not any("checkout" in action for action in uses)
    # What an event says could hold a command: it reaches the shell by variables alone.
    for content in (workflow, commenting):
        for job in content["jobs"].values():
            assert all("${{" not in step.get("run", "") for step in job["steps"])


def test_only_downloads_are_cached_and_results_of_each_run_apart(project: Path) -> None:
    init(project, "github")
    jobs = read_workflow(project / GITHUB)["jobs"]

    assert not any("actions/cache" in str(step) for step in jobs["pull-request"]["steps"])
    (cache,) = [step["with"] for step in jobs["history"]["steps"] if "cache@" in str(step)]
    assert cache["path"] == ".asv/results"
    assert cache["key"].endswith("${{ github.run_id }}-${{ github.run_attempt }}")
    assert cache["key"].startswith(cache["restore-keys"])


def test_what_is_there_is_kept_and_said(project: Path) -> None:
    for path in (GITHUB, Path(".gitlab-ci.yml")):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("mine: {}\n")

    github, gitlab = init(project, "github"), init(project, "gitlab")

    assert (project / GITHUB).read_text() == "mine: {}\n"
    assert f"kept  {project / GITHUB}" in github
    assert f"{project / GITHUB} was there and is kept: remove or rename it" in github
    assert (project / ".gitlab-ci.yml").read_text() == "mine: {}\n"
    assert "add under its `include:` the line `- local: .gitlab/gpubench.yml`" in gitlab


def test_a_project_below_its_repository_has_its_workflow_at_the_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "python/mine"
    folder.mkdir(parents=True)

    init(folder, "github")
    init(folder, "gitlab")

    workflow = read_workflow(tmp_path / GITHUB)
    assert workflow["defaults"]["run"]["working-directory"] == "python/mine"
    assert "python/mine/.asv/ci/comment.md" in (tmp_path / GITHUB).read_text()
    assert "cd python/mine" in (tmp_path / GITLAB).read_text()


def test_asv_installs_cuda_for_the_device_in_software(project: Path) -> None:
    printed = init(project, "github")

    assert '"numba-cuda": [],' in (project / "asv.conf.json").read_text()
    assert "installs no softcuda" not in printed


def test_a_configuration_of_init_without_cuda_gets_it(project: Path) -> None:
    CliRunner().invoke(main, ["init", str(project)])
    path = project / "asv.conf.json"
    before = read_configuration(path)

    printed = init(project, "github")

    after = read_configuration(path)
    assert "added to asv.conf.json: softcuda" in printed
    assert "installs no softcuda" not in printed
    assert after["matrix"]["req"] == {**before["matrix"]["req"], "numba-cuda": []}
    assert after["install_command"][1:] == before["install_command"]
    assert "softcuda" in after["install_command"][0]
    assert "// Compiles Numba's functions on all processors" in path.read_text()
    assert "added to asv.conf.json" not in init(project, "github")


def test_a_configuration_that_cannot_be_added_to_is_named_and_kept(project: Path) -> None:
    CliRunner().invoke(main, ["init", str(project)])
    path = project / "asv.conf.json"
    twice = path.read_text().replace("{", '{\n/*\n"install_command": [\n*/', 1)
    path.write_text(twice)

    assert "asv.conf.json installs no softcuda" in init(project, "github")
    assert path.read_text() == twice


def test_without_the_quick_preset_none_is_named(project: Path) -> None:
    CliRunner().invoke(main, ["init", str(project)])
    suite = project / "suites/saxpy.yaml"
    suite.write_text(suite.read_text().partition("\npresets:")[0])

    init(project, "github")
    init(project, "gitlab")

    assert "env" not in read_workflow(project / GITHUB)
    assert "GPUBENCH_PRESET" not in (project / GITLAB).read_text()


TIMES = f"{MARKER}\n**1 slower**\n"
COUNTS = f"{MARKER}\n**2 grew**\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"times.md": TIMES, "counts.md": COUNTS, "verify.txt": "```@all 1 right"},
            [TIMES, "<summary>gpubench verify", "    ```@all 1 right"],
        ),
        ({"times.md": TIMES}, [TIMES]),
        ({"times.md": "", "counts.md": COUNTS}, [COUNTS, "No times: the log of the job"]),
        (
            {"verify.txt": "table\n  wrong: add numba n=4: off\n2 cases: 1 right, 1 wrong\n"},
            ["**Verifying failed", "      wrong: add numba", "    2 cases: 1 right", "</summary>"],
        ),
        ({"verify.txt": "1 right", "verified": ""}, ["**Nothing was compared: the log of the job"]),
    ],
    ids=["all there is", "times alone", "no times", "a wrong kernel", "no comparison"],
)
def test_the_comment_holds_times_counts_and_what_verify_said(
    project: Path, tmp_path: Path, files: dict[str, str], said: list[str]
) -> None:
    init(project, "github")
    comment = steps_of(read_workflow(project / GITHUB), "pull-request")[-1]
    folder = tmp_path / "checkout/.asv/ci"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    (tmp_path / "git").write_text("#!/bin/sh\necho 12345678\n")  # a base that has asv.conf.json
    (tmp_path / "git").chmod(0o755)
    summary = tmp_path / "summary.md"

    done = comment.run(
        tmp_path / "checkout",
        {
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(summary),
        },
    )

    assert done.returncode == 0, done.stdout
    written = summary.read_text()
    assert written.startswith(MARKER)
    places = [written.find(words) for words in said]
    assert -1 not in places
    assert places == sorted(places)
    assert written.count(MARKER) == 1


FAKE_GH = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in
  *"/pulls -f"*) printf '%s' "$PULLS" ;;
  *"/comments --jq"*) printf '%s' "$COMMENTS" ;;
esac
"""


@pytest.mark.parametrize(
    ("pulls", "comments", "last"),
    [
        ("7\n", "", "--method POST repos/me/mine/issues/7/comments -F body=@body.md"),
        ("7\n", "90\n91\n", "--method PATCH repos/me/mine/issues/comments/90 -F body=@body.md"),
        ("", "", "repos/me/mine/pulls -f state=open -f head=fork:change"),
    ],
    ids=["the first comment", "one that is there", "a pull request that has moved on"],
)
def test_the_comment_is_updated_in_place(
    project: Path, tmp_path: Path, pulls: str, comments: str, last: str
) -> None:
    init(project, "github")
    (step,) = steps_of(read_workflow(project / COMMENT), "comment")
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    (programs / "gh").write_text(FAKE_GH)
    (programs / "gh").chmod(0o755)
    variables = {"REPOSITORY": "me/mine", "BRANCH": "fork:change", "COMMIT": "c" * 40}

    (tmp_path / "comment.md").write_text(MARKER)

    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step.script],
        cwd=tmp_path,
        env={
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "CALLS": str(calls),
            "PULLS": pulls, "COMMENTS": comments, "MARKER": MARKER, **variables,
        },
        text=True, capture_output=True, check=True,
    )  # fmt: skip

    assert last in calls.read_text().splitlines()[-1], done.stdout
    if not pulls:
        assert "it was closed, or has newer commits" in done.stdout


class Notes(BaseHTTPRequestHandler):
    """GitLab's notes of a merge request, on two pages."""

    pages: tuple[list[dict[str, Any]], ...] = ()
    written: list[tuple[str, str, str, str | None]]

    def do_GET(self) -> None:
        number = int(re.findall(r"&page=(\d+)", self.path)[0])
        following = str(number + 1) if number < len(self.pages) else ""
        self._answer(self.pages[number - 1], following)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.written.append((self.command, self.path, body, self.headers["PRIVATE-TOKEN"]))
        self._answer({}, "")

    do_PUT = do_POST

    def _answer(self, content: object, following: str) -> None:
        self.send_response(200)
        self.send_header("X-Next-Page", following)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def gitlab() -> Iterator[str]:
    Notes.written = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Notes)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/api/v4"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("last", "method", "place"),
    [([], "POST", ""), ([{"id": 5, "body": f"{MARKER}\nbefore"}], "PUT", "/5")],
    ids=["the first note", "one on the second page"],
)
def test_gitlabs_note_is_updated_in_place(
    project: Path, gitlab: str, monkeypatch: pytest.MonkeyPatch,
    last: list[dict[str, Any]], method: str, place: str,
) -> None:  # fmt: skip
    init(project, "gitlab")
    (script,) = yaml.safe_load((project / GITLAB).read_text())["gpubench"]["after_script"]
    program = script.partition("python - <<'END'\n")[2].partition("\nEND")[0]
    (project / ".asv/ci").mkdir(parents=True)
    (project / ".asv/ci/comment.md").write_text(f"{MARKER}\nit is slower")
    monkeypatch.setattr(Notes, "pages", ([{"id": 4, "body": "well done"}], last))
    monkeypatch.chdir(project)
    for name, value in (
        ("CI_API_V4_URL", gitlab), ("CI_PROJECT_ID", "3"), ("CI_MERGE_REQUEST_IID", "2"),
        ("GPUBENCH_TOKEN", "secret"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)

    exec(compile(program, "gitlab", "exec"), {})

    path = f"/api/v4/projects/3/merge_requests/2/notes{place}"
    assert Notes.written == [(method, path, f"{MARKER}\nit is slower", "secret")]
