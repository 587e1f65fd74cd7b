"""Figures of benchmarks as JSON lines: medians over interleaved rounds, with the spread."""
import collections
import json
import operator
import statistics

MEETS = {"<=": operator.le, ">=": operator.ge}


class Missing(Exception):
    """A peer that cannot be had here; the text says why."""


def rounded(value):
    return round(value, 3) if abs(value) >= 0.1 else float(f"{value:.2g}")


def spread(values, rounded=rounded):
    values = sorted(values)
    return {"median": rounded(statistics.median(values)), "min": rounded(values[0]), "max": rounded(values[-1]),
            "rounds": len(values)}


def emit(benchmark, figure, values, unit, target=None, **more):
    """`target`: such as ("<=", 1.05), what docs/performance.md wants of the median. `more` is what else the line says."""
    if not values:
        emit_missing(benchmark, figure, "in no round was there anything to compare with")
        return
    line = {"benchmark": benchmark, "figure": figure, "unit": unit, **spread(values), **more}
    if target:
        sign, bound = target
        line |= {"target": f"{sign} {bound:,}", "reached": MEETS[sign](line["median"], bound)}
    print(json.dumps(line), flush=True)


def emit_missing(benchmark, figure, why):
    print(json.dumps({"benchmark": benchmark, "figure": figure, "missing": str(why)}), flush=True)


def rounds_of(text):
    """{variant: [value of each round]} from lines `variant round value`."""
    rounds = collections.defaultdict(list)
    for line in text.splitlines():
        variant, _, value = line.split()
        rounds[variant].append(float(value))
    return rounds


def less(values, floor):
    """Returns by how much each round is above the floor of the same round."""
    return [value - base for value, base in zip(values, floor)]


def over(values, others):
    """Ratios within rounds. A round whose divisor is nothing, as far as the clock can tell, has none."""
    return [value / other for value, other in zip(values, others) if other > 0]
