"""Figures of benchmarks as JSON lines: medians over interleaved rounds, with the spread."""
import collections
import json
import statistics


def spread(values):
    values = sorted(values)
    return {"median": round(statistics.median(values), 3), "min": round(values[0], 3), "max": round(values[-1], 3),
            "rounds": len(values)}


def emit(benchmark, figure, values, unit, target=None):
    """target: what the median should be, as ("<=", 250) or (">=", 0.75)."""
    line = {"benchmark": benchmark, "figure": figure, "unit": unit, **spread(values)}
    if target:
        sign, bound = target
        line["target"] = f"{sign} {bound}"
        line["reached"] = line["median"] <= bound if sign == "<=" else line["median"] >= bound
    print(json.dumps(line), flush=True)


def rounds_of(text):
    """{variant: [value of each round]} from lines `variant round value`."""
    rounds = collections.defaultdict(list)
    for line in text.splitlines():
        variant, _, value = line.split()
        rounds[variant].append(float(value))
    return rounds
