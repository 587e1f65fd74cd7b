"""Measures the peers that depend on the machine's own tools or kernel, in the same rounds as the hook. Unavailable peers are reported and
omitted."""
import contextlib

import lttng
import uprobes
from figures import Missing, emit_missing

# The peers in WRAPPERS can wrap any call. Each of the other peers traces only its own function, which returns at once.
WRAPPERS = (lttng.Tracer,)
ALL = (*WRAPPERS, uprobes.Tracefs, uprobes.Bpftrace)


def measure(benchmark, session, ways, *arguments, peers=ALL):
    """Returns {way: [value of each round]} for the given ways and the peers' ways. A peer that missed calls has no entry."""
    attached = []
    with contextlib.ExitStack() as stack:
        for peer in (kind(session) for kind in peers):
            try:
                attached.append(stack.enter_context(peer))
            except (Missing, OSError) as why:
                emit_missing(benchmark, peer.name, why)
        options = [option for peer in attached for option in peer.options]
        env = {name: value for peer in attached for name, value in peer.env.items()}
        rounds = session.measure("-o", session.dir, *arguments, *options, *ways,
                                 *(way for peer in attached for way in peer.ways), env=env)
        for peer in attached:
            try:
                peer.check(session.each)
            except (Missing, OSError) as why:
                emit_missing(benchmark, peer.name, why)
                for name in [name for name in rounds if name.partition(".")[0] in peer.ways]:
                    del rounds[name]
    return rounds
