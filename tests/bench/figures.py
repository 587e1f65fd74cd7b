"""Figures of benchmarks as JSON lines: medians over interleaved rounds, with the spread."""
import collections
import json
import statistics


def spread(values):
    values = sorted(values)
    return {"median": round(statistics.median(values), 3), "min": round(values[0], 3), "max": round(values[-1], 3),
            "rounds": len(values)}


def emit(benchmark, figure, values, unit):
    print(json.dumps({"benchmark": benchmark, "figure": figure, "unit": unit, **spread(values)}), flush=True)


def rounds_of(text):
    """{variant: [value of each round]} from lines `variant round value`."""
    rounds = collections.defaultdict(list)
    for line in text.splitlines():
        variant, _, value = line.split()
        rounds[variant].append(float(value))
    return rounds
