"""Figures of benchmarks as JSON lines: medians over interleaved rounds, with the spread."""
import collections
import json
import statistics


def spread(values, digits=3):
    values = sorted(values)
    return {"median": round(statistics.median(values), digits), "min": round(values[0], digits),
            "max": round(values[-1], digits), "rounds": len(values)}


def emit(benchmark, figure, values, unit):
    print(json.dumps({"benchmark": benchmark, "figure": figure, "unit": unit, **spread(values)}), flush=True)


def rounds_of(text):
    """{variant: [value of each round]} from lines `variant round value`."""
    rounds = collections.defaultdict(list)
    for line in text.splitlines():
        variant, _, value = line.split()
        rounds[variant].append(float(value))
    return rounds
