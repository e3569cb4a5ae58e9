"""Modules, libraries, functions and launches on the device in software."""

from __future__ import annotations

import ctypes
import tempfile
import time
from pathlib import Path
from typing import Any

from kernels_in_ptx import (
    HEADER,
    KERNELS,
    SHARED,
    Gate,
    device_word,
    function,
    launch,
    load,
    read_word,
)
from softcuda_process import error, on_softcuda, process_on_softcuda, reports, result, use_device

WORD = ctypes.c_uint64


# ---- modules ------------------------------------------------------------------------------------


def _images() -> dict[str, str]:
    from cuda.bindings import driver

    use_device()
    newer = KERNELS.replace("sm_75", "sm_90")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "module.ptx")
        path.write_text(KERNELS)
        from_file = error(driver.cuModuleLoad(str(path).encode()))
        missing = error(driver.cuModuleLoad(str(path).encode() + b"x"))
    return {
        "file": from_file,
        "no file": missing,
        "cubin": error(driver.cuModuleLoadData(b"\x7fELF" + bytes(60))),
        "fat binary": error(driver.cuModuleLoadFatBinary(b"\x50\xed\x55\xba" + bytes(60))),
        "something": error(driver.cuModuleLoadData(b"hello")),
        "newer device": error(driver.cuModuleLoadData(newer.encode())),
        "newer PTX": error(driver.cuModuleLoadData(KERNELS.replace("8.0", "9.0").encode())),
    }


def test_a_module_is_ptx_for_this_device_and_driver() -> None:
    seen = on_softcuda(_images, version="12.8")
    assert seen == {
        "file": "SUCCESS",
        "no file": "FILE_NOT_FOUND",
        "cubin": "NO_BINARY_FOR_GPU",
        "fat binary": "NO_BINARY_FOR_GPU",
        "something": "INVALID_IMAGE",
        "newer device": "INVALID_PTX",
        "newer PTX": "UNSUPPORTED_PTX_VERSION",
    }


def _error_log() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    room = bytes(4000)  # which the driver writes to
    options = driver.CUjit_option
    names = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    bad = HEADER + ".visible .entry f() { mul.who.cares %r1, %r2, %r3; ret; }"
    answer = driver.cuModuleLoadDataEx(bad.encode(), 2, names, [room, 4000])
    return [error(answer), room.rstrip(b"\0").decode()]


def test_the_error_log_says_what_is_wrong_with_the_ptx() -> None:
    said, log = on_softcuda(_error_log)
    assert said == "INVALID_PTX"
    assert "mul.who.cares" in log


def _functions() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    module = load()
    kernel = function("add_parameters", module)
    count = result(driver.cuModuleGetFunctionCount(module))
    every = result(driver.cuModuleEnumerateFunctions(count, module))
    return {
        "missing": error(driver.cuModuleGetFunction(module, b"nothing")),
        "names": sorted(result(driver.cuFuncGetName(each)).decode() for each in every),
        "module": int(result(driver.cuFuncGetModule(kernel))) == int(module),
        "parameters": [result(driver.cuFuncGetParamInfo(kernel, i)) for i in range(3)],
        "too many": error(driver.cuFuncGetParamInfo(kernel, 3)),
        "eager": result(driver.cuModuleGetLoadingMode()).name,
    }


def test_a_module_tells_its_functions_and_their_parameters() -> None:
    assert on_softcuda(_functions) == {
        "missing": "NOT_FOUND",
        "names": ["add_one", "add_parameters", "count", "count_at_barrier", "empty", "limited"],
        "module": True,
        "parameters": [[0, 8], [8, 4], [16, 8]],
        "too many": "INVALID_VALUE",
        "eager": "CU_MODULE_EAGER_LOADING",
    }


def _variables() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    one, two, word = load(), load(), device_word()
    address, size = result(driver.cuModuleGetGlobal(one, b"counter"))
    other, _ = result(driver.cuModuleGetGlobal(two, b"counter"))
    seen: dict[str, Any] = {"size": size, "initial": read_word(int(address))}
    result(driver.cuMemsetD32(address, 100, 1))
    for _ in range(2):
        result(launch(function("count", one), [(word, WORD)]))
    seen["counted"] = [read_word(word), read_word(int(address)), read_word(int(other))]
    seen["missing"] = error(driver.cuModuleGetGlobal(one, b"nothing"))
    return seen


def test_each_load_of_a_module_has_variables_of_its_own() -> None:
    assert on_softcuda(_variables) == {
        "size": 4,
        "initial": 5,
        "counted": [106, 106, 5],
        "missing": "NOT_FOUND",
    }


def _unloaded() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    module, word = load(), device_word(1)
    kernel = function("add_one", module)
    stream = result(driver.cuStreamCreate(1))
    gate = Gate(stream)
    result(launch(kernel, [(word, WORD)], stream=stream))
    said = [error(driver.cuModuleUnload(module)), error(driver.cuModuleUnload(module))]
    said.append(error(launch(kernel, [(word, WORD)])))
    said.append(error(driver.cuModuleGetFunction(module, b"add_one")))
    gate.open()
    result(driver.cuStreamSynchronize(stream))
    return [said, read_word(word), len(reports())]


def test_an_unloaded_module_finishes_its_launches_and_its_handles_are_dead() -> None:
    assert on_softcuda(_unloaded) == [["SUCCESS", *["INVALID_HANDLE"] * 3], 2, 3]


def _libraries() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    loaded = driver.cuLibraryLoadData(KERNELS.encode(), [], [], 0, [], [], 0)
    library = result(loaded)
    kernel = result(driver.cuLibraryGetKernel(library, b"count"))
    words = []
    for device in (0, 1):
        use_device(device)
        word = device_word()
        launches = 2 if device == 0 else 1
        for _ in range(launches):
            result(launch(driver.CUfunction(int(kernel)), [(word, WORD)]))
        address, _ = result(driver.cuLibraryGetGlobal(library, b"counter"))
        words.append([read_word(word), read_word(int(address))])
    own = result(driver.cuKernelGetFunction(kernel))
    module = result(driver.cuLibraryGetModule(library))
    seen: dict[str, Any] = {
        "words": words,
        "name": result(driver.cuKernelGetName(kernel)).decode(),
        "library": int(result(driver.cuKernelGetLibrary(kernel))) == int(library),
        "function": error(launch(own, [(word, WORD)])),
        "unload": error(driver.cuModuleUnload(module)),
    }
    use_device(0)
    seen["function elsewhere"] = error(launch(own, [(word, WORD)]))
    seen["ends"] = [error(driver.cuLibraryUnload(library)) for _ in range(2)]
    return seen


def test_a_library_has_variables_and_functions_in_each_context() -> None:
    assert on_softcuda(_libraries, devices=2) == {
        "words": [[11, 11], [8, 8]],
        "name": "count",
        "library": True,
        "function": "SUCCESS",
        "unload": "NOT_PERMITTED",
        "function elsewhere": "INVALID_HANDLE",
        "ends": ["SUCCESS", "INVALID_HANDLE"],
    }


def _linked() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    kinds = driver.CUjitInputType
    state = result(driver.cuLinkCreate(0, [], []))
    for part in (KERNELS, SHARED):
        text = part.encode() + b"\0"
        answer = driver.cuLinkAddData(
            state, kinds.CU_JIT_INPUT_PTX, text, len(text), b"part", 0, [], []
        )
        result(answer)
    binary = driver.cuLinkAddData(
        state, kinds.CU_JIT_INPUT_CUBIN, b"\x7fELF", 4, b"binary", 0, [], []
    )
    image, size = result(driver.cuLinkComplete(state))
    module = result(driver.cuModuleLoadData(ctypes.string_at(image, size)))
    word = device_word()
    result(launch(function("shares", module), [(word, WORD)]))
    both = [read_word(word), error(driver.cuModuleGetFunction(module, b"count"))]
    ends = [error(driver.cuLinkDestroy(state)) for _ in range(2)]
    return {"both": both, "binary": error(binary), "ends": ends}


def test_several_inputs_of_ptx_are_linked_and_a_binary_is_refused() -> None:
    assert on_softcuda(_linked) == {
        "both": [7, "SUCCESS"],
        "binary": "NO_BINARY_FOR_GPU",
        "ends": ["SUCCESS", "INVALID_HANDLE"],
    }


# ---- attributes ---------------------------------------------------------------------------------


def _attributes() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    names = driver.CUfunction_attribute
    shares, limited = function("shares", load(SHARED)), function("limited")

    def ask(attribute: Any, kernel: Any = shares) -> int:
        return int(result(driver.cuFuncGetAttribute(attribute, kernel)))

    most = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    seen: dict[str, Any] = {
        "threads": ask(names.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        "limited": ask(names.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, limited),
        "shared": ask(names.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        "dynamic": ask(most),
        "versions": [
            ask(names.CU_FUNC_ATTRIBUTE_PTX_VERSION),
            ask(names.CU_FUNC_ATTRIBUTE_BINARY_VERSION),
        ],
        "read-only": error(driver.cuFuncSetAttribute(shares, names(0), 1)),
    }
    word = device_word()
    seen["too much"] = error(launch(shares, [(word, WORD)], shared=50000))
    seen["opted in"] = error(driver.cuFuncSetAttribute(shares, most, 60000))
    seen["now"] = [ask(most), error(launch(shares, [(word, WORD)], shared=60000))]
    seen["never"] = error(driver.cuFuncSetAttribute(shares, most, 1 << 20))
    return seen


def test_a_function_tells_its_limits_and_more_shared_memory_is_opted_into() -> None:
    assert on_softcuda(_attributes) == {
        "threads": 1024,
        "limited": 64,
        "shared": 256,
        "dynamic": 48 * 1024 - 256,
        "versions": [75, 80],
        "read-only": "INVALID_VALUE",
        "too much": "INVALID_VALUE",
        "opted in": "SUCCESS",
        "now": [60000, "SUCCESS"],
        "never": "INVALID_VALUE",
    }


def _occupancy() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    kernel, limited = function("add_one"), function("limited")
    blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
    grid, block = result(driver.cuOccupancyMaxPotentialBlockSize(kernel, None, 0, 0))
    return [
        result(blocks(kernel, 1024, 0)),
        result(blocks(kernel, 33, 0)),
        result(blocks(limited, 128, 0)),
        grid * block,
        error(blocks(kernel, 0, 0)),
    ]


def test_occupancy_follows_the_limits_of_the_device() -> None:
    assert on_softcuda(_occupancy, sms=4) == [2, 32, 0, 4 * 2048, "INVALID_VALUE"]


# ---- launches -----------------------------------------------------------------------------------


def _parameters() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    word, kernel = device_word(), function("add_parameters")
    seen: dict[str, Any] = {}
    arguments = [(word, WORD), (5, ctypes.c_uint32), (6, ctypes.c_uint64)]
    seen["by pointers"] = [error(launch(kernel, arguments)), read_word(word)]

    class Packed(ctypes.Structure):
        _fields_ = (("p", WORD), ("a", ctypes.c_uint32), ("b", ctypes.c_uint64))

    def packed(size: int) -> str:
        block = Packed(word, 7, 8)
        length = ctypes.c_size_t(size)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(block), 2, ctypes.addressof(length), 0)
        one = (1,) * 6
        answer = driver.cuLaunchKernel(kernel, *one, 0, 0, 0, ctypes.addressof(extra))
        return error(answer)

    seen["packed"] = [packed(ctypes.sizeof(Packed)), read_word(word)]
    seen["packed too short"] = packed(8)
    seen["none"] = error(launch(kernel))
    return seen


def test_parameters_come_by_pointers_or_packed() -> None:
    assert on_softcuda(_parameters) == {
        "by pointers": ["SUCCESS", 11],
        "packed": ["SUCCESS", 15],
        "packed too short": "LAUNCH_OUT_OF_RESOURCES",
        "none": "INVALID_VALUE",
    }


def _extents() -> dict[str, str]:
    use_device()
    limited = function("limited")

    def attempt(**how: Any) -> str:
        return error(launch(limited, **how))

    return {
        "right": attempt(block=(64, 1, 1)),
        "no block": attempt(grid=(0, 1, 1)),
        "no thread": attempt(block=(1, 0, 1)),
        "grid too high": attempt(grid=(1, 65536, 1)),
        "block too deep": attempt(block=(1, 1, 65)),
        "more than the kernel takes": attempt(block=(65, 1, 1)),
        "too many bytes": attempt(shared=48 * 1024 + 1),
    }


def test_extents_are_checked_when_a_kernel_is_launched() -> None:
    seen = on_softcuda(_extents)
    assert seen.pop("right") == "SUCCESS"
    assert seen == dict.fromkeys(seen, "INVALID_VALUE")


def _empty_grid() -> list[str]:
    from cuda.bindings import driver

    use_device()
    empty = function("empty")
    refused = error(launch(empty, grid=(1, 1 << 16, 1)))
    result(launch(empty, grid=(1 << 30, 1, 1), block=(1024, 1, 1)))
    return [refused, error(driver.cuCtxSynchronize())]


def test_an_empty_kernel_is_checked_and_done_at_once_whatever_its_grid() -> None:
    assert on_softcuda(_empty_grid, timeout=5) == ["INVALID_VALUE", "SUCCESS"]


def _smaller_device() -> list[str]:
    use_device()
    kernel, word = function("add_one"), device_word(0, 512)
    return [
        error(launch(kernel, [(word, WORD)], block=(256, 1, 1))),
        error(launch(kernel, [(word, WORD)], block=(257, 1, 1))),
        error(launch(kernel, [(word, WORD)], shared=16385)),
    ]


def test_a_smaller_device_takes_smaller_blocks() -> None:
    seen = on_softcuda(_smaller_device, block=256, shared="16K")
    assert seen == ["SUCCESS", "INVALID_VALUE", "INVALID_VALUE"]


def _cooperative() -> list[str]:
    from cuda.bindings import driver

    use_device()
    limited = function("limited")

    def attempt(blocks: int) -> str:
        return error(driver.cuLaunchCooperativeKernel(limited, blocks, 1, 1, 64, 1, 1, 0, 0, 0))

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 65, 1, 1
    config.blockDimX = config.blockDimY = config.blockDimZ = 1
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    attribute.value.cooperative = 1
    config.attrs, config.numAttrs = [attribute], 1
    said = [attempt(64), attempt(65), error(driver.cuLaunchKernelEx(config, limited, 0, 0))]
    config.gridDimX = 1
    cluster = driver.CUlaunchAttribute()
    cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    sizes = cluster.value.clusterDim
    sizes.x, sizes.y, sizes.z = 2, 1, 1
    config.attrs, config.numAttrs = [cluster], 1
    return [*said, error(driver.cuLaunchKernelEx(config, limited, 0, 0))]


def test_a_cooperative_grid_must_fit_on_the_device_at_once() -> None:
    assert on_softcuda(_cooperative, sms=2) == [
        "SUCCESS",
        "COOPERATIVE_LAUNCH_TOO_LARGE",
        "COOPERATIVE_LAUNCH_TOO_LARGE",
        "INVALID_CLUSTER_SIZE",
    ]


def _unknown_function() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    return [error(launch(driver.CUfunction(0x1234))), reports()]


def test_a_function_that_is_none_is_reported_and_does_not_crash() -> None:
    assert on_softcuda(_unknown_function) == [
        "INVALID_HANDLE",
        ["handle: cuLaunchKernel was given 0x1234, which is no kernel"],
    ]


# ---- faults on command --------------------------------------------------------------------------


def _launches() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    word, kernel = device_word(), function("add_one")
    said = []
    for _ in range(3):
        result_of_launch = error(launch(kernel, [(word, WORD)]))
        said.append([result_of_launch, error(driver.cuCtxSynchronize())])
    return [said, [report.split(":")[0] for report in reports()]]


def test_an_illegal_address_on_command_is_met_when_the_kernel_runs() -> None:
    illegal = "ILLEGAL_ADDRESS"
    assert on_softcuda(_launches, faults="illegal@2:add_one") == [
        [["SUCCESS", "SUCCESS"], ["SUCCESS", illegal], [illegal, illegal]],
        ["out of bounds"],
    ]


def test_a_hanging_kernel_is_ended_by_the_time_out() -> None:
    timeout = "LAUNCH_TIMEOUT"
    assert on_softcuda(_launches, faults="hang@2", timeout="0.2") == [
        [["SUCCESS", "SUCCESS"], ["SUCCESS", timeout], [timeout, timeout]],
        ["time-out"],
    ]


def _hanging() -> list[str]:
    from cuda.bindings import driver

    use_device()
    stream = result(driver.cuStreamCreate(1))
    launch(function("limited"), stream=stream)
    time.sleep(0.1)
    return [error(driver.cuStreamQuery(stream)), error(driver.cuStreamDestroy(stream))]


def test_a_hanging_kernel_does_not_keep_the_process() -> None:
    assert on_softcuda(_hanging, faults="hang") == ["NOT_READY", "SUCCESS"]


def _lost() -> list[Any]:
    from cuda.bindings import driver

    use_device(1)
    use_device(0)
    launch(function("limited"))
    said = [error(driver.cuCtxSynchronize()), error(driver.cuMemAlloc(4))]
    result(driver.cuDevicePrimaryCtxReset(0))
    said.append(error(driver.cuDevicePrimaryCtxRetain(0)))
    use_device(1)
    return [*said, error(driver.cuMemAlloc(4))]


def test_a_lost_device_fails_the_launch_and_gives_no_context_again() -> None:
    assert on_softcuda(_lost, faults="lost", devices=2) == [
        "LAUNCH_FAILED",
        "LAUNCH_FAILED",
        "DEVICE_UNAVAILABLE",
        "SUCCESS",
    ]


# ---- the way in ---------------------------------------------------------------------------------


def _errors_have_names() -> list[Any]:
    from cuda.bindings import driver

    unnamed = [
        each.name
        for each in driver.CUresult
        if result(driver.cuGetErrorName(each)).decode() != each.name
        or not result(driver.cuGetErrorString(each))
    ]
    return [unnamed, error(driver.cuGetErrorName(driver.CUresult(0)))]


def test_every_result_has_a_name_and_a_text() -> None:
    assert on_softcuda(_errors_have_names) == [[], "SUCCESS"]


def _missing() -> str:
    from cuda.bindings import driver

    use_device()
    return error(driver.cuGreenCtxCreate(0, 0, 0)) + error(driver.cuGreenCtxCreate(0, 0, 0))


def test_a_function_that_softcuda_lacks_is_named_once() -> None:
    done = process_on_softcuda(_missing)
    assert "NOT_SUPPORTEDNOT_SUPPORTED" in done.stdout
    assert done.stderr.count("softcuda: cuGreenCtxCreate is not implemented") == 1


def _refused_by_name() -> str:
    import ctypes

    use_device()
    library = ctypes.CDLL("libcuda.so.1")  # as a program finds it that is linked against it
    return " ".join(str(library.cuArrayCreate_v2(None, None)) for _ in range(2))


def test_one_that_is_linked_by_name_is_there_and_refused() -> None:
    """PyCUDA is linked against the whole driver: to be loaded it needs an address for each name."""
    done = process_on_softcuda(_refused_by_name)
    assert done.stdout.strip() == '"801 801"'  # CUDA_ERROR_NOT_SUPPORTED
    assert done.stderr.count("softcuda: cuArrayCreate_v2 is not implemented") == 1


def _older_driver() -> list[Any]:
    from cuda.bindings import driver

    pointer, _ = result(driver.cuGetProcAddress(b"cuStreamCreate", 2000, 0))
    newer = driver.cuGetProcAddress(b"cuGraphGetEdges", 12030, 0)
    return [result(driver.cuDriverGetVersion()), bool(pointer), error(newer)]


def test_an_older_driver_lacks_what_came_later() -> None:
    assert on_softcuda(_older_driver, version="12.0") == [12000, True, "NOT_FOUND"]


def test_a_word_that_means_nothing_is_said_by_the_first_call() -> None:
    done = process_on_softcuda(_launches, faults="bang")
    assert done.returncode == 1
    assert "softcuda: SOFTCUDA_FAULTS=bang means nothing" in done.stderr
