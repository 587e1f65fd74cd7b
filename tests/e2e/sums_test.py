"""Code shared by the tests of functions that sum up a trace in one pass."""
from cudatrace_test import equal
from series_test import sql


def compare_pairs(s, pairs, what, bounds=(None, None), pid=None):
    """Compares the results of pairs of queries: by the function, and by the views. They refer to the arguments as :from, :to and :pid."""
    values = {"from": bounds[0], "to": bounds[1], "pid": pid}

    def filled(query):
        for name, value in values.items():
            query = query.replace(f":{name}", "NULL" if value is None else str(value))
        return query

    differ = "SELECT {!r}, (SELECT count(*) FROM (SELECT * FROM ({a}) EXCEPT SELECT * FROM ({b}))) + (SELECT count(*) FROM (SELECT * FROM ({b}) EXCEPT SELECT * FROM ({a})))"
    counts = sql(s, " UNION ALL ".join(differ.format(name, a=filled(by_function), b=filled(by_views)) for name, (by_function, by_views) in pairs.items()))
    for name, count in counts:
        if count > 0:
            equal(sql(s, filled(pairs[name][0])), sql(s, filled(pairs[name][1])), f"{name} of {what}, {values}")
