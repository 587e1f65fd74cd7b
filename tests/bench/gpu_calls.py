"""Measures the cost of tracing on this machine's GPU. It times calls that return at once, and launches of an empty kernel, each untraced,
under cudatrace, and under other tracers. Each round runs every variant once, in separate processes, on one processor whose core runs
nothing else. Every second round runs in reverse order. For the "turns" figures, batches of launches within one process alternately use and
bypass the tracer, so that differences between processes do not matter."""
import contextlib
import sys
import time

import gpu_variants
from figures import emit, emit_missing, less, over
from gpu_variants import PERCENTILES, Failed

NAME = "gpu_calls"
SHORT_CALLS, LAUNCH = gpu_variants.FUNCTIONS[:2], "cuLaunchKernel"
TARGETS = {"cudatrace_cuCtxGetCurrent_added_ns": ("<=", 50), "cudatrace_cuLaunchKernel_p50_over_untraced": ("<=", 1.015),
           "cudatrace_after_gpu_cuLaunchKernel_p50_over_untraced": ("<=", 1.015),
           "cudatrace_gpu_cuLaunchKernel_p50_over_cupti_kernels": ("<=", 1.03)}
# Every variant is compared with the untraced one. The variants below are also compared with the given others.
OTHERS = {"cudatrace_gpu": ("cupti_kernels",), "cudatrace_after_gpu": ("cudatrace",)}


def measure(place, options, deadline):
    """Returns ({variant: [a Measured for each round]}, {variant: why it is missing}, {variant: [milliseconds of set-up for each
    round]})."""
    results, missing, setups = {}, {}, {}
    with contextlib.ExitStack() as stack:
        variants = []
        for name, make in gpu_variants.TABLE.items():
            if name in options.without:
                continue
            try:
                variants.append(make(place, name))
                setups[name] = variants[-1].setup_ms
                stack.callback(variants[-1].close)
            except Failed as why:
                missing[name] = str(why)
        # Warm up, because files and the driver's own caches are cold for the first process.
        variants[0].measure("warm-up")
        for number in range(options.rounds):
            begun = time.monotonic()
            for variant in variants[::1 if number % 2 == 0 else -1]:
                try:
                    results.setdefault(variant.name, []).append(variant.measure(number))
                except Failed as why:
                    missing[variant.name] = str(why)
                    results.pop(variant.name, None)
            variants = [variant for variant in variants if variant.name not in missing]
            took = time.monotonic() - begun
            print(f"{NAME}: round {number + 1} of {options.rounds}, {took:.1f} s", file=sys.stderr, flush=True)
            if time.monotonic() + took > deadline:
                print(f"{NAME}: no time for another round", file=sys.stderr)
                break
    return results, missing, setups


def values(results, name, function, percentile="p50"):
    return [measured.figures[function][percentile] for measured in results[name]]


def added(results, name, function):
    return less(values(results, name, function), values(results, "untraced", function))


def show(results, place):
    def say(figure, numbers, unit):
        emit(NAME, figure, numbers, unit, TARGETS.get(figure) if place.is_gpu else None, **place.label,
             device=results["untraced"][0].device)

    for name in results:
        for function in (*SHORT_CALLS, LAUNCH):
            for percentile in PERCENTILES:
                say(f"{name}_{function}_{percentile}_ns", values(results, name, function, percentile), "ns")
        if name == "untraced":
            continue
        for function in SHORT_CALLS:
            say(f"{name}_{function}_added_ns", added(results, name, function), "ns")
            if "two_counter_reads" in results and name not in ("wrapper", "two_counter_reads"):
                say(f"{name}_{function}_added_over_two_counter_reads",
                    over(added(results, name, function), added(results, "two_counter_reads", function)), "ratio")
            if name == "attached" and "cudatrace" in results:
                say(f"{name}_{function}_over_cudatrace", over(values(results, name, function), values(results, "cudatrace", function)), "ratio")
        for other in ("untraced", *[other for other in OTHERS.get(name, ()) if other in results]):
            say(f"{name}_{LAUNCH}_p50_over_{other}", over(values(results, name, LAUNCH), values(results, other, LAUNCH)), "ratio")
        say(f"{name}_{LAUNCH}_through_over_past",
            [measured.figures["turns"]["through"] / measured.figures["turns"]["past"] for measured in results[name]], "ratio")


def check_recorded(results):
    """Rejects the figures of a tracer that recorded fewer calls than the program made."""
    for name, rounds in results.items():
        recorded = [measured.recorded for measured in rounds if measured.recorded is not None]
        lost = sum(measured.lost or 0 for measured in rounds)
        made = rounds[0].made
        if recorded and (lost or min(recorded) < made):
            why = f"{lost} lost, {min(recorded)} recorded of {made} or more: these are not the figures of recording each call"
            emit_missing(NAME, name, why)
            if name in ("cudatrace", "attached"):
                sys.exit(f"{NAME}: cudatrace: {why}")


def run(build, options):
    with gpu_variants.place(build, options) as place:
        place.keep_away_from({place.cpu})
        place.build()
        results, missing, setups = measure(place, options, time.monotonic() + options.seconds)
        for name, why in missing.items():
            emit_missing(NAME, name, why)
        for name in ("untraced", "cudatrace"):
            if name not in results:
                sys.exit(f"{NAME}: {name}: {missing[name]}")
        show(results, place)
        for name, setup_ms in setups.items():
            if setup_ms and name in results:
                emit(NAME, f"{name}_setup_ms", setup_ms, "ms", **place.label)
        check_recorded(results)
