"""Graphs of the device in software: captured or built, instantiated, launched and changed."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

from kernels_in_ptx import Gate, device_word, function, launch, load, read_word
from softcuda_process import error, on_softcuda, result, use_device

GLOBAL, THREAD_LOCAL, RELAXED = range(3)


def new_stream(*, blocking: bool = False) -> Any:
    from cuda.bindings import driver

    flags = driver.CUstream_flags
    kind = flags.CU_STREAM_DEFAULT if blocking else flags.CU_STREAM_NON_BLOCKING
    return result(driver.cuStreamCreate(kind))


def begin(stream: Any, mode: int = THREAD_LOCAL) -> None:
    from cuda.bindings import driver

    result(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode(mode)))


def end(stream: Any) -> Any:
    from cuda.bindings import driver

    return result(driver.cuStreamEndCapture(stream))


def instantiate(graph: Any) -> Any:
    from cuda.bindings import driver

    return result(driver.cuGraphInstantiate(graph, 0))


def types(graph: Any) -> list[str]:
    from cuda.bindings import driver

    _, count = result(driver.cuGraphGetNodes(graph))
    nodes, _ = result(driver.cuGraphGetNodes(graph, count))
    names = [result(driver.cuGraphNodeGetType(node)).name for node in nodes]
    return [name.removeprefix("CU_GRAPH_NODE_TYPE_").lower() for name in names]


def edges(graph: Any) -> list[tuple[int, int]]:
    """Edges as pairs of places of nodes."""
    from cuda.bindings import driver

    _, count = result(driver.cuGraphGetNodes(graph))
    nodes, _ = result(driver.cuGraphGetNodes(graph, count))
    places = {int(node): place for place, node in enumerate(nodes)}
    count = result(driver.cuGraphGetEdges(graph))[-1]
    if not count:
        return []
    begins, ends, *_ = result(driver.cuGraphGetEdges(graph, count))
    return sorted((places[int(a)], places[int(b)]) for a, b in zip(begins, ends, strict=True))


def add_one(address: int, stream: Any, kernel: Any) -> Any:
    """Queue the kernel, which was loaded before: a capture forbids to load modules."""
    return launch(kernel, [(address, ctypes.c_uint64)], stream=stream)


# ---- capture ------------------------------------------------------------------------------------


def _captured_and_launched() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    stream, word, kernel = new_stream(), device_word(1), function("add_one")
    begin(stream)
    capturing = result(driver.cuStreamIsCapturing(stream)).name
    add_one(word, stream, kernel)
    result(driver.cuMemsetD32Async(word + 4, 9, 1, stream))
    result(driver.cuMemcpyDtoDAsync(word + 4, word, 4, stream))
    graph = end(stream)
    seen = {"capturing": capturing, "ran": read_word(word) != 1, "types": types(graph)}
    exec_graph = instantiate(graph)
    result(driver.cuGraphDestroy(graph))
    for _ in range(3):
        result(driver.cuGraphLaunch(exec_graph, stream))
    result(driver.cuStreamSynchronize(stream))
    return {**seen, "words": [read_word(word), read_word(word + 4)]}


def test_captured_work_runs_at_each_launch_and_outlives_its_graph() -> None:
    assert on_softcuda(_captured_and_launched) == {
        "capturing": "CU_STREAM_CAPTURE_STATUS_ACTIVE",
        "ran": False,
        "types": ["kernel", "memset", "memcpy"],
        "words": [4, 4],
    }


def _parameters_are_copied() -> int:
    from cuda.bindings import driver

    use_device()
    stream, word = new_stream(), device_word(0)
    module = load()
    begin(stream)
    arguments = [(word, ctypes.c_uint64), (3, ctypes.c_uint32), (4, ctypes.c_uint64)]
    result(launch(function("add_parameters", module), arguments, stream=stream))
    exec_graph = instantiate(end(stream))
    result(driver.cuModuleUnload(module))  # what the graph needs of it stays
    result(driver.cuGraphLaunch(exec_graph, stream))
    result(driver.cuStreamSynchronize(stream))
    return read_word(word)


def test_a_graph_keeps_parameters_and_the_code_that_it_needs() -> None:
    assert on_softcuda(_parameters_are_copied) == 7


def _fork_and_join() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    origin, side = new_stream(), new_stream()
    kernel, words = function("add_one"), device_word(0, 4)
    fork, join = (result(driver.cuEventCreate(2)) for _ in range(2))
    begin(origin)
    add_one(words, origin, kernel)
    result(driver.cuEventRecord(fork, origin))
    result(driver.cuStreamWaitEvent(side, fork, 0))
    side_status = result(driver.cuStreamIsCapturing(side)).name
    add_one(words + 4, side, kernel)
    add_one(words + 8, origin, kernel)
    result(driver.cuEventRecord(join, side))
    result(driver.cuStreamWaitEvent(origin, join, 0))
    add_one(words, origin, kernel)
    graph = end(origin)
    after = result(driver.cuStreamIsCapturing(side)).name
    result(driver.cuGraphLaunch(instantiate(graph), origin))
    result(driver.cuStreamSynchronize(origin))
    return {
        "side": [side_status.rsplit("_", 1)[1], after.rsplit("_", 1)[1]],
        "edges": edges(graph),
        "words": [read_word(words + 4 * i) for i in range(3)],
    }


def test_a_stream_is_drawn_into_a_capture_by_an_event_and_joined_by_another() -> None:
    assert on_softcuda(_fork_and_join) == {
        "side": ["ACTIVE", "NONE"],
        "edges": [[0, 1], [0, 2], [1, 3], [2, 3]],
        "words": [2, 1, 1],
    }


def _wrong_ends() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    origin, side, kernel, word = new_stream(), new_stream(), function("add_one"), device_word()
    event = result(driver.cuEventCreate(2))
    seen: dict[str, Any] = {"not capturing": error(driver.cuStreamEndCapture(origin))}

    begin(origin)
    seen["began before"] = error(driver.cuStreamBeginCapture(origin, driver.CUstreamCaptureMode(0)))
    result(driver.cuEventRecord(event, origin))
    result(driver.cuStreamWaitEvent(side, event, 0))
    add_one(word, side, kernel)
    seen["unjoined"] = error(driver.cuStreamEndCapture(origin))

    begin(origin)
    result(driver.cuEventRecord(event, origin))
    result(driver.cuStreamWaitEvent(side, event, 0))
    seen["other stream"] = error(driver.cuStreamEndCapture(side))
    answer = driver.cuStreamEndCapture(origin)
    seen["then"] = [error(answer), int(answer[1] or 0)]

    begin(origin)
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(error(driver.cuStreamEndCapture(origin))))
    thread.start()
    thread.join()
    seen["other thread"] = said[0]
    end(origin)

    begin(origin, RELAXED)
    thread = threading.Thread(target=lambda: said.append(types(end(origin))))
    thread.start()
    thread.join()
    seen["other thread, relaxed"] = said[1]
    seen["legacy"] = error(driver.cuStreamBeginCapture(0, driver.CUstreamCaptureMode(0)))
    return seen


def test_a_capture_ends_where_it_began_with_all_streams_joined() -> None:
    assert on_softcuda(_wrong_ends) == {
        "not capturing": "ILLEGAL_STATE",
        "began before": "ILLEGAL_STATE",
        "unjoined": "STREAM_CAPTURE_UNJOINED",
        "other stream": "STREAM_CAPTURE_UNMATCHED",
        "then": ["STREAM_CAPTURE_INVALIDATED", 0],
        "other thread": "STREAM_CAPTURE_WRONG_THREAD",
        "other thread, relaxed": [],
        "legacy": "STREAM_CAPTURE_UNSUPPORTED",
    }


def _forbidden() -> dict[str, list[str]]:
    from cuda.bindings import driver

    use_device()
    word, kernel, recorded = device_word(), function("add_one"), result(driver.cuEventCreate(0))
    result(driver.cuEventRecord(recorded, 0))
    result(driver.cuCtxSynchronize())
    seen = {}

    def attempt(name: str, call: Any, *, blocking: bool = False) -> None:
        stream = new_stream(blocking=blocking)
        begin(stream)
        add_one(word, stream, kernel)
        said = error(call(stream))
        more = error(add_one(word, stream, kernel))
        seen[name] = [said, more, error(driver.cuStreamEndCapture(stream))]

    def query_captured(stream: Any) -> Any:
        event = result(driver.cuEventCreate(0))
        result(driver.cuEventRecord(event, stream))
        return driver.cuEventQuery(event)

    attempt("synchronise", lambda stream: driver.cuStreamSynchronize(stream))
    attempt("query", lambda stream: driver.cuStreamQuery(stream))
    attempt("allocate", lambda stream: driver.cuMemAlloc(4))
    attempt("synchronise all", lambda stream: driver.cuCtxSynchronize())
    attempt("legacy work", lambda stream: add_one(word, 0, kernel), blocking=True)
    attempt("wait for outside", lambda stream: driver.cuStreamWaitEvent(stream, recorded, 0))
    attempt("query a captured event", query_captured)
    return seen


def test_what_a_capture_forbids_invalidates_it() -> None:
    invalid = "STREAM_CAPTURE_INVALIDATED"
    seen = on_softcuda(_forbidden)
    captured = seen.pop("query a captured event")
    assert seen == {
        "synchronise": ["STREAM_CAPTURE_UNSUPPORTED", invalid, invalid],
        "query": ["STREAM_CAPTURE_UNSUPPORTED", invalid, invalid],
        "allocate": ["STREAM_CAPTURE_UNSUPPORTED", invalid, invalid],
        "synchronise all": ["STREAM_CAPTURE_UNSUPPORTED", invalid, invalid],
        "legacy work": ["STREAM_CAPTURE_IMPLICIT", invalid, invalid],
        "wait for outside": ["STREAM_CAPTURE_ISOLATION", invalid, invalid],
    }
    assert captured[0] == "CAPTURED_EVENT"


def _modes() -> dict[str, list[str]]:
    from cuda.bindings import driver

    context = use_device()
    seen = {}
    for name, mode in (("global", GLOBAL), ("thread local", THREAD_LOCAL), ("relaxed", RELAXED)):
        said: list[str] = []

        def allocate(said: list[str] = said) -> None:
            driver.cuCtxSetCurrent(context)
            said.append(error(driver.cuMemAlloc(4)))

        for target in ("this thread", "another"):
            stream = new_stream()
            begin(stream, mode)
            if target == "this thread":
                allocate()
            else:
                thread = threading.Thread(target=allocate)
                thread.start()
                thread.join()
            driver.cuStreamEndCapture(stream)
        seen[name] = said
    stream = new_stream()
    begin(stream, GLOBAL)
    former = result(driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode(RELAXED)))
    seen["exchanged"] = [former.name.rsplit("_", 1)[1], error(driver.cuMemAlloc(4))]
    return seen


def test_the_mode_of_a_capture_says_whom_it_forbids_to_allocate() -> None:
    unsupported = "STREAM_CAPTURE_UNSUPPORTED"
    assert on_softcuda(_modes) == {
        "global": [unsupported, unsupported],
        "thread local": [unsupported, "SUCCESS"],
        "relaxed": ["SUCCESS", "SUCCESS"],
        "exchanged": ["GLOBAL", "SUCCESS"],
    }


def _two_captures() -> list[str]:
    from cuda.bindings import driver

    use_device()
    one, two, event = new_stream(), new_stream(), result(driver.cuEventCreate(2))
    begin(one)
    begin(two)
    result(driver.cuEventRecord(event, one))
    return [
        error(driver.cuStreamWaitEvent(two, event, 0)),
        error(driver.cuStreamEndCapture(one)),
        error(driver.cuStreamEndCapture(two)),
    ]


def test_two_captures_cannot_be_merged() -> None:
    assert on_softcuda(_two_captures) == [
        "STREAM_CAPTURE_MERGE",
        "STREAM_CAPTURE_INVALIDATED",
        "STREAM_CAPTURE_INVALIDATED",
    ]


def _streams_destroyed_in_a_capture() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    origin, kernel, words = new_stream(), function("add_one"), device_word(0, 4)
    fork, join = (result(driver.cuEventCreate(2)) for _ in range(2))
    seen: list[Any] = []
    for joined in (True, False):
        side = new_stream()
        begin(origin)
        result(driver.cuEventRecord(fork, origin))
        result(driver.cuStreamWaitEvent(side, fork, 0))
        add_one(words, side, kernel)
        if joined:
            result(driver.cuEventRecord(join, side))
            result(driver.cuStreamWaitEvent(origin, join, 0))
        result(driver.cuStreamDestroy(side))
        seen.append(error(driver.cuStreamEndCapture(origin)))
    begin(origin)
    result(driver.cuStreamDestroy(origin))
    return [*seen, error(driver.cuMemAlloc(4))]


def test_a_joined_stream_may_be_destroyed_and_the_first_one_takes_its_capture_along() -> None:
    assert on_softcuda(_streams_destroyed_in_a_capture) == [
        "SUCCESS",
        "STREAM_CAPTURE_UNJOINED",
        "SUCCESS",
    ]


def _capture_info() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, word, kernel = new_stream(), device_word(), function("add_one")
    status, *_ = result(driver.cuStreamGetCaptureInfo(stream))
    begin(stream)
    add_one(word, stream, kernel)
    info = result(driver.cuStreamGetCaptureInfo(stream))
    graph = end(stream)
    _, identity, inside, tips, _, count = info
    nodes, _ = result(driver.cuGraphGetNodes(graph, 1))
    return [
        status.name.rsplit("_", 1)[1],
        int(identity) > 0,
        int(inside) == int(graph),
        count,
        int(tips[0]) == int(nodes[0]),
    ]


def test_a_capture_tells_its_graph_and_what_comes_next() -> None:
    assert on_softcuda(_capture_info) == ["NONE", True, True, 1, True]


# ---- built graphs -------------------------------------------------------------------------------


def kernel_node(graph: Any, before: list[Any], address: int, kernel: Any) -> Any:
    from cuda.bindings import driver

    return result(
        driver.cuGraphAddKernelNode(
            graph, before or None, len(before), kernel_parameters(address, kernel)
        )
    )


def kernel_parameters(address: int, kernel: Any) -> Any:
    from cuda.bindings import driver

    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = kernel
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX = params.blockDimY = params.blockDimZ = 1
    params.kernelParams = ((address,), (ctypes.c_uint64,))
    return params


def _built() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    kernel, words, stream = function("add_one"), device_word(0, 8), new_stream()
    graph = result(driver.cuGraphCreate(0))
    fill = driver.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = words, 5, 4, 2, 1
    context = result(driver.cuCtxGetCurrent())
    first = result(driver.cuGraphAddMemsetNode(graph, None, 0, fill, context))
    second = kernel_node(graph, [first], words, kernel)
    empty = result(driver.cuGraphAddEmptyNode(graph, [second], 1))
    child = result(driver.cuGraphCreate(0))
    kernel_node(child, [], words + 4, kernel)
    result(driver.cuGraphAddChildGraphNode(graph, [empty], 1, child))
    said: list[int] = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: said.append(data or 0))
    host = driver.CUDA_HOST_NODE_PARAMS()
    host.fn, host.userData = driver.CUhostFn(_ptr=ctypes.addressof(call)), 11
    result(driver.cuGraphAddHostNode(graph, [second], 1, host))
    clone = result(driver.cuGraphClone(graph))
    seen: dict[str, Any] = {"types": types(clone), "edges": edges(clone)}
    roots, count = result(driver.cuGraphGetRootNodes(graph, 1))
    seen["root"] = [count, int(roots[0]) == int(first)]
    seen["found in clone"] = int(result(driver.cuGraphNodeFindInClone(first, clone))) != int(first)
    result(driver.cuGraphDestroy(graph))
    seen["dead node"] = error(driver.cuGraphNodeGetType(first))
    result(driver.cuGraphLaunch(instantiate(clone), stream))
    result(driver.cuStreamSynchronize(stream))
    seen["words"] = [read_word(words), read_word(words + 4)]
    seen["host"] = said
    return seen


def test_a_graph_is_built_of_nodes_cloned_and_launched() -> None:
    assert on_softcuda(_built) == {
        "types": ["memset", "kernel", "empty", "graph", "host"],
        "edges": [[0, 1], [1, 2], [1, 4], [2, 3]],
        "root": [1, True],
        "found in clone": True,
        "dead node": "INVALID_VALUE",
        "words": [6, 6],
        "host": [11],
    }


def _edges_changed() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    graph = result(driver.cuGraphCreate(0))
    a, b, c = (result(driver.cuGraphAddEmptyNode(graph, None, 0)) for _ in range(3))
    result(driver.cuGraphAddDependencies(graph, [b, c], [a, b], None, 2))
    seen: list[Any] = [edges(graph)]
    again = driver.cuGraphAddDependencies(graph, [b], [a], None, 1)
    result(driver.cuGraphAddDependencies(graph, [a], [c], None, 1))
    seen += [error(again), error(driver.cuGraphInstantiate(graph, 0))]
    result(driver.cuGraphDestroyNode(b))
    return [*seen, edges(graph), error(driver.cuGraphInstantiate(graph, 0))]


def test_edges_are_added_and_a_circle_of_them_cannot_be_instantiated() -> None:
    assert on_softcuda(_edges_changed) == [
        [[1, 0], [2, 1]],
        "INVALID_VALUE",
        "INVALID_VALUE",
        [[0, 1]],
        "SUCCESS",
    ]


def _order_of_independent_nodes() -> int:
    from cuda.bindings import driver

    use_device()
    stream, words = new_stream(), device_word(0, 2)
    graph = result(driver.cuGraphCreate(0))
    context = result(driver.cuCtxGetCurrent())
    for value in (1, 2):
        fill = driver.CUDA_MEMSET_NODE_PARAMS()
        fill.dst, fill.value, fill.elementSize, fill.width, fill.height = words, value, 4, 1, 1
        result(driver.cuGraphAddMemsetNode(graph, None, 0, fill, context))
    result(driver.cuGraphLaunch(instantiate(graph), stream))
    result(driver.cuStreamSynchronize(stream))
    return read_word(words)


def test_nodes_without_a_dependency_run_in_the_order_that_is_asked_for() -> None:
    assert on_softcuda(_order_of_independent_nodes) == 2
    assert on_softcuda(_order_of_independent_nodes, order="descending") == 1


# ---- executable graphs --------------------------------------------------------------------------


def _changed() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    kernel, words, stream = function("add_one"), device_word(0, 4), new_stream()
    graph = result(driver.cuGraphCreate(0))
    node = kernel_node(graph, [], words, kernel)
    exec_graph = instantiate(graph)
    gate = Gate(stream)
    result(driver.cuGraphLaunch(exec_graph, stream))
    params = kernel_parameters(words + 4, kernel)
    result(driver.cuGraphExecKernelNodeSetParams(exec_graph, node, params))
    result(driver.cuGraphLaunch(exec_graph, stream))
    result(driver.cuGraphNodeSetEnabled(exec_graph, node, 0))
    result(driver.cuGraphLaunch(exec_graph, stream))
    gate.open()
    result(driver.cuStreamSynchronize(stream))
    seen: dict[str, Any] = {"words": [read_word(words), read_word(words + 4)]}
    asked = result(driver.cuGraphKernelNodeGetParams(node))
    seen["graph itself"] = [int(asked.func) == int(kernel), asked.blockDimX]

    other = result(driver.cuGraphCreate(0))
    kernel_node(other, [], words + 8, kernel)
    again = instantiate(graph)
    seen["updated"] = error(driver.cuGraphExecUpdate(again, other))
    result(driver.cuGraphLaunch(again, stream))
    result(driver.cuStreamSynchronize(stream))
    seen["new word"] = read_word(words + 8)
    result(driver.cuGraphAddEmptyNode(other, None, 0))
    seen["other shape"] = error(driver.cuGraphExecUpdate(again, other))
    return seen


def test_an_executable_graph_is_changed_for_later_launches_only() -> None:
    assert on_softcuda(_changed) == {
        "words": [1, 1],
        "graph itself": [True, 1],
        "updated": "SUCCESS",
        "new word": 1,
        "other shape": "GRAPH_EXEC_UPDATE_FAILURE",
    }


def _one_at_a_time() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    one, two, word, kernel = new_stream(), new_stream(), device_word(), function("add_one")
    begin(one)
    add_one(word, one, kernel)
    exec_graph = instantiate(end(one))
    gate = Gate(one)
    result(driver.cuGraphLaunch(exec_graph, one))
    result(driver.cuGraphLaunch(exec_graph, two))
    time.sleep(0.05)
    said = error(driver.cuStreamQuery(two))
    destroyed = [error(driver.cuGraphExecDestroy(exec_graph)) for _ in range(2)]
    gate.open()
    result(driver.cuStreamSynchronize(two))
    return [said, destroyed, read_word(word)]


def test_launches_of_one_executable_graph_follow_each_other() -> None:
    assert on_softcuda(_one_at_a_time) == ["NOT_READY", ["SUCCESS", "INVALID_VALUE"], 2]


def _events_in_graphs() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, other, word, kernel = new_stream(), new_stream(), device_word(), function("add_one")
    outside, inside = (result(driver.cuEventCreate(0)) for _ in range(2))
    external = 1
    begin(stream)
    result(driver.cuStreamWaitEvent(stream, outside, external))
    add_one(word, stream, kernel)
    result(driver.cuEventRecordWithFlags(inside, stream, external))
    graph = end(stream)
    gate = Gate(other)
    result(driver.cuEventRecord(outside, other))
    result(driver.cuGraphLaunch(instantiate(graph), stream))
    time.sleep(0.05)
    said = [error(driver.cuEventQuery(inside))]
    gate.open()
    said.append(error(driver.cuEventSynchronize(inside)))
    return [types(graph), said, read_word(word)]


def test_nodes_wait_for_events_and_record_them() -> None:
    assert on_softcuda(_events_in_graphs) == [
        ["wait_event", "kernel", "event_record"],
        ["NOT_READY", "SUCCESS"],
        1,
    ]


def _graph_in_a_capture() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, word, kernel = new_stream(), device_word(), function("add_one")
    begin(stream)
    add_one(word, stream, kernel)
    inner = instantiate(end(stream))
    begin(stream)
    result(driver.cuGraphLaunch(inner, stream))
    add_one(word, stream, kernel)
    graph = end(stream)
    result(driver.cuGraphLaunch(instantiate(graph), stream))
    result(driver.cuStreamSynchronize(stream))
    return [types(graph), read_word(word)]


def test_the_launch_of_a_graph_in_a_capture_is_a_child_graph() -> None:
    assert on_softcuda(_graph_in_a_capture) == [["graph", "kernel"], 2]
