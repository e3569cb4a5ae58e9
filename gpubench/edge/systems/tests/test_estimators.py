"""Estimators: the suite is right, its scores tell good from bad, the backends keep their word."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpubench.backends.protocol import DeviceError, Target
from gpubench.backends.registry import get
from gpubench.distribution import require_extra
from gpubench.edge.systems import cuml as cuml_backend
from gpubench.edge.systems.kernels import estimators
from gpubench.edge.systems.xgboost import XGBoostCudaSession
from gpubench.errors import BackendError
from gpubench.kernels import scores
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.verify_cases import Manner, Verified, Verifier
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

pytest.importorskip("sklearn", reason="make test-systems has it")
pytest.importorskip("xgboost", reason="make test-systems has it")

SUITE = Path(__file__).parents[1] / "suites" / "estimators.yaml"

Array = np.ndarray[Any, Any]


def smallest() -> list[Case]:
    """Return the suite's cases on the CPU, one for each implementation."""
    cases: dict[tuple[str, str], Case] = {}
    for case in build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases():
        if case.device == "cpu":
            cases.setdefault((case.kernel_name, case.implementation_name), case)
    return list(cases.values())


def named(case: Case) -> Any:
    return pytest.param(case, id=f"{case.kernel_name}-{case.implementation_name}")


@pytest.fixture(scope="module")
def verified() -> Callable[[Case], Verified]:
    """Verify cases one after another, so that what a baseline computes is computed once."""
    verifier = Verifier(Manner())
    return lambda case: verifier((0, case))


# --- the suite


def test_every_estimator_has_rivals_on_the_cpu_and_one_on_a_gpu() -> None:
    kernels = load_suite(SUITE).suite.kernels
    assert len(kernels) == 10
    for name, kernel in kernels.items():
        assert "scikit_learn" in kernel.implementations
        others = kernel.implementations.keys() & {"numpy", "numba_parallel", "xgboost"}
        assert others and kernel.implementations.keys() & {"cuml", "xgboost"}, name
        assert kernel.check.score is not None


@pytest.mark.parametrize("case", [named(case) for case in smallest()])
def test_every_implementation_is_as_good_as_its_baseline(
    case: Case, verified: Callable[[Case], Verified]
) -> None:
    result = verified(case)
    assert (result.status, result.reason) == ("right", None)
    assert result.score is not None and result.score > 0


@pytest.mark.parametrize("kernel", ["kmeans", "random_forest", "gradient_boosting"])
def test_cases_on_a_gpu_are_skipped_with_the_reason(kernel: str) -> None:
    cases = build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases()
    on_gpu = [case for case in cases if case.kernel_name == kernel and case.device == "cuda:0"]
    assert on_gpu
    for case in on_gpu:
        result = Verifier(Manner())((0, case))
        assert result.status == "skipped" and str(result.reason).startswith("cuda:0: ")


def test_a_time_has_its_score_and_its_conditions_on_record() -> None:
    forest = {
        case.implementation_name: case for case in smallest() if case.kernel_name == "random_forest"
    }
    measured = {name: take_turn(Job(case)).record for name, case in forest.items()}
    for record in measured.values():
        assert record.status == "ok", record.reason
        assert record.score is not None and 0.8 < record.score <= 1
    assert measured["scikit_learn"].conditions["scikit_learn_jobs"] >= 1
    assert measured["xgboost"].conditions["xgboost_cuda"] is False


# --- what the estimators compute


def data_of(kernel: str) -> Mapping[str, Any]:
    """Return the inputs of the suite's smallest case of a kernel, by name."""
    case = next(case for case in smallest() if case.kernel_name == kernel)
    inputs = draw_inputs(case)
    return {**case.values, **inputs.scalars, **inputs.arrays}


def test_lloyds_steps_agree_whoever_makes_them() -> None:
    data = data_of("kmeans")
    of = (data["points"], data["start"], 3)
    labels, centres = estimators.kmeans_numpy(*of)
    for other in (estimators.kmeans_parallel, estimators.kmeans_scikit_learn):
        its_labels, its_centres = other(*of)
        assert np.mean(labels == its_labels) > 0.999
        np.testing.assert_allclose(centres, its_centres, atol=0.01)


def test_more_of_lloyds_steps_are_better() -> None:
    data = data_of("kmeans")

    def after(iterations: int) -> float:
        labels, centres = estimators.kmeans_numpy(data["points"], data["start"], iterations)
        return scores.inertia({"labels": labels, "centres": centres}, data)

    found = [after(iterations) for iterations in (0, 1, 2, 5, 20)]
    assert found == sorted(found, reverse=True) and found[-1] < 0.9 * found[0]


def test_components_are_orthonormal_and_leave_out_what_they_must() -> None:
    data = data_of("pca")
    components = estimators.pca_numpy(data["points"], 8)
    np.testing.assert_allclose(components @ components.T, np.eye(8), atol=1e-5)
    variances = np.linalg.eigvalsh(np.cov(data["points"].T, bias=True))
    left = scores.left_over({"components": components}, data)
    assert left == pytest.approx(variances[:-8].sum(), rel=1e-4)
    assert scores.left_over({"components": -components[::-1]}, data) == pytest.approx(left)
    assert scores.left_over({"components": 1.1 * components}, data) > left


def test_newtons_method_ends_where_scikit_learns_does() -> None:
    data = data_of("logistic_regression")
    of = (data["points"], data["truth"], data["new_points"])
    mine = estimators.logistic_numpy(*of)
    for newton in (False, True):
        other = estimators.make_logistic_scikit_learn(newton)(*of)
        np.testing.assert_allclose(mine, other, atol=2e-3)


def test_dense_groups_are_scikit_learns_but_for_their_names() -> None:
    data = data_of("dbscan")
    of = (data["points"], data["radius"], data["neighbours"])
    mine, others = estimators.dbscan_numba(*of), estimators.dbscan_scikit_learn(*of)
    np.testing.assert_array_equal(mine == -1, others == -1)
    assert scores.agreement({"labels": mine}, {"truth": others}) > 0.999
    assert len({*mine.tolist()} - {-1}) == 8


def test_the_nearest_vote_alike() -> None:
    data = data_of("nearest_neighbours")
    of = (data["points"], data["truth"], data["new_points"], data["k"])
    of_numpy = estimators.neighbours_numpy(*of)
    for other in (estimators.neighbours_parallel, estimators.neighbours_scikit_learn):
        # Rounding decides between two that are equally far.
        assert np.mean(of_numpy == other(*of)) > 0.98


def test_what_a_model_answers_is_fitted_once() -> None:
    points = data_of("forest_predict")["new_points"]
    estimators._fitted_forest_scikit_learn.cache_clear()
    first = estimators.forest_predict_scikit_learn(points, 5, 4)
    np.testing.assert_array_equal(first, estimators.forest_predict_scikit_learn(points, 5, 4))
    assert estimators._fitted_forest_scikit_learn.cache_info()[:2] == (1, 1)


# --- scores, against scikit-learn's own


def test_scores_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    draw = np.random.default_rng(0)
    truth, guess = draw.integers(0, 3, (2, 500))
    probabilities = draw.random(500).astype(np.float32)
    numbers, others = draw.normal(size=(2, 500))
    agreement = scores.agreement({"labels": guess}, {"truth": truth})
    assert agreement == pytest.approx(metrics.adjusted_rand_score(truth, guess))
    assert scores.accuracy({"predictions": guess}, {"new_truth": truth}) == pytest.approx(
        metrics.accuracy_score(truth, guess)
    )
    assert scores.log_loss(
        {"probabilities": probabilities}, {"new_truth": truth % 2}
    ) == pytest.approx(metrics.log_loss(truth % 2, probabilities.astype(float)))
    assert scores.r2({"predictions": others}, {"new_truth": numbers}) == pytest.approx(
        metrics.r2_score(numbers, others)
    )


@pytest.mark.parametrize(
    ("labels", "truth", "index"),
    [
        ([5, 5, 2, 2], [0, 0, 1, 1], 1.0),
        ([0, 0, 0, 0], [0, 0, 1, 1], 0.0),
        ([0, 0, 0, 0], [3, 3, 3, 3], 1.0),
    ],
)
def test_agreement_asks_for_groups_and_not_for_names(
    labels: list[int], truth: list[int], index: float
) -> None:
    outputs, inputs = {"labels": np.array(labels)}, {"truth": np.array(truth)}
    assert scores.agreement(outputs, inputs) == index


def test_a_bold_mistake_is_dear_and_finite() -> None:
    outputs = {"probabilities": np.array([0.0, 1.0], np.float32)}
    assert 15 < scores.log_loss(outputs, {"new_truth": np.array([1, 0])}) < 17


# --- the backends


def threads_of(session: Any) -> dict[str, Any]:
    facts = session.facts()
    return {name: facts[name] for name in ("scikit_learn_jobs", "openmp_threads")}


def test_scikit_learn_takes_the_threads_that_it_is_given_and_gives_them_back() -> None:
    joblib = pytest.importorskip("joblib")
    backend = get("scikit_learn")
    before = joblib.effective_n_jobs(None)
    with backend.open("cpu") as session:
        usual = threads_of(session)
    with backend.open("cpu", 1) as session:
        facts = session.facts()
        assert (facts["scikit_learn_jobs"], facts["openmp_threads"]) == (1, 1)
        assert (facts["numpy_blas_threads"], facts["scipy_blas_threads"]) == (1, 1)
        assert joblib.effective_n_jobs(None) == 1
    with backend.open("cpu") as session:
        assert threads_of(session) == usual
        jobs = session.bind(Target(function=lambda: joblib.effective_n_jobs(None)), None, [])
        assert jobs() == usual["scikit_learn_jobs"]
    assert joblib.effective_n_jobs(None) == before


def test_scikit_learn_refuses_a_process_that_cuml_accelerates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accelerator = SimpleNamespace(enabled=lambda: True)
    monkeypatch.setitem(sys.modules, "cuml.accel", accelerator)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match=r"cuml\.accel is enabled in this process and"):
        get("scikit_learn").open("cpu")
    accelerator.enabled = lambda: False
    get("scikit_learn").open("cpu").close()


def test_xgboost_is_told_its_device_and_threads() -> None:
    with get("xgboost").open("cpu", 1) as session:
        told = session.bind(Target(function=lambda settings, a: settings), None, [0])
        assert told() == {"device": "cpu", "n_jobs": 1}
        assert session.facts()["xgboost_threads"] == 1


def fitted(settings: Mapping[str, Any], points: Array) -> Array:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=2, **settings)
    predictions: Array = model.fit(points, points[:, 0] > 0).predict(points)
    return predictions


def test_xgboost_that_goes_on_without_a_gpu_is_refused() -> None:
    """See that on a machine without one it does, and only warns."""
    if get("xgboost").unavailable("cuda:0") is None:
        pytest.skip("there is a GPU here")
    points = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    with XGBoostCudaSession("cuda:0", None) as session:
        call = session.bind(Target(function=fitted), None, [points])
        for _ in range(2):  # and again: a run that was refused proves nothing of the next
            with pytest.raises(DeviceError, match=r"cuda:0: XGBoost computed on the CPU: .*GPU"):
                call()


def test_other_warnings_of_a_first_run_are_passed_on() -> None:
    def warning(settings: Mapping[str, Any]) -> int:
        warnings.warn("something else", stacklevel=1)
        return 7

    with XGBoostCudaSession("cuda:0", None) as session:
        call = session.bind(Target(function=warning), None, [])
        with pytest.warns(UserWarning, match="something else"):
            assert call() == 7


def test_a_build_without_cuda_says_what_to_install() -> None:
    import xgboost

    if xgboost.build_info().get("USE_CUDA"):
        pytest.skip("this XGBoost has CUDA")
    with pytest.raises(BackendError, match="cuda:0: the installed XGBoost is built without CUDA; "):
        get("xgboost").start("cuda:0", None)


@pytest.mark.parametrize(("name", "module"), [("scikit_learn", "sklearn"), ("xgboost", "xgboost")])
def test_without_the_library_it_says_what_to_install(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get(name).unavailable("cpu") is None
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    reason = f"cpu: the module {module!r} is not installed; pip install '{require_extra(name)}'"
    assert get(name).unavailable("cpu") == reason


def test_cuml_says_why_it_cannot_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get("cuml").unavailable("cpu") == "cpu: the backend cuml runs on cuda:0, cuda:1 ..."
    monkeypatch.setattr("gpubench.backends.host.no_such_gpu", lambda device: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    assert get("cuml").unavailable("cuda:0") == (
        "cuda:0: the module 'cuml' is not installed; pip install 'gpubench-suite[cuml]', in an "
        "environment of its own: it pins Numba and scikit-learn"
    )


def stats(gpu: int, cpu: int, *reasons: str) -> SimpleNamespace:
    """Return what cuML's profiler says of a method."""
    return SimpleNamespace(gpu_calls=gpu, cpu_calls=cpu, fallback_reasons={*reasons})


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ({"KMeans.fit": stats(1, 0)}, None),
        (
            {"KMeans.fit": stats(1, 0), "KMeans.predict": stats(0, 2, "b", "a")},
            "cuml.accel computed KMeans.predict on the CPU: a; b",
        ),
        ({"PCA.fit": stats(0, 1)}, "cuml.accel computed PCA.fit on the CPU: it gives no reason"),
        ({}, "cuml.accel computed nothing: the function uses no estimator that it knows"),
        (
            {"PCA.fit": stats(0, 0)},
            "cuml.accel computed nothing: the function uses no estimator that it knows",
        ),
    ],
)
def test_cuml_accel_has_to_compute_all_of_it_on_the_gpu(
    calls: Mapping[str, Any], reason: str | None
) -> None:
    assert cuml_backend.why_not_on_the_gpu(calls) == reason
