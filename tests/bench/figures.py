"""Prints benchmark figures as JSON lines, each with the median over interleaved rounds and the spread."""
import collections
import json
import operator
import statistics

MEETS = {"<=": operator.le, ">=": operator.ge}


class Missing(Exception):
    """Raised if a peer is not available on this machine. The exception's message gives the reason."""


def rounded(value):
    return round(value, 3) if abs(value) >= 0.1 else float(f"{value:.2g}")


def spread(values, rounded=rounded):
    values = sorted(values)
    return {"median": rounded(statistics.median(values)), "min": rounded(values[0]), "max": rounded(values[-1]),
            "rounds": len(values)}


def emit(benchmark, figure, values, unit, target=None, **more):
    """Prints a figure. `target` is the target that docs/performance.md sets for the median, such as ("<=", 1.05). `more` contains
    additional fields for the line."""
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
    """Parses lines of the form `variant round value` into {variant: [value of each round]}."""
    rounds = collections.defaultdict(list)
    for line in text.splitlines():
        variant, _, value = line.split()
        rounds[variant].append(float(value))
    return rounds


def less(values, floor):
    """Returns each round's value minus the same round's value in `floor`."""
    return [value - base for value, base in zip(values, floor)]


def over(values, others):
    """Returns each round's value divided by the same round's value in `others`. Omits rounds whose divisor is zero because of the clock's
    resolution."""
    return [value / other for value, other in zip(values, others) if other > 0]
