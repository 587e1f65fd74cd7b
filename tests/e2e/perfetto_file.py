"""Reads files written by `cudatrace export --format perfetto` with protobuf's own decoder."""
import collections
import json
import pathlib
import re
import subprocess

from cudatrace_test import check, equal

SOURCE = pathlib.Path(__file__).resolve().parents[2]
INCREMENTAL_STATE_CLEARED = 1


def decode(path):
    """Returns a file's packets as [{field: [value]}], parsed from the output of protobuf's own decoder."""
    with open(path, "rb") as trace:
        done = subprocess.run(["protoc", f"--proto_path={SOURCE / 'tools/cli/export'}", "--decode=perfetto.Trace", "perfetto.proto"],
                              stdin=trace, capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""), "how the decoder ended")
    root = message = collections.defaultdict(list)
    around, known = [], set()
    for line in done.stdout.splitlines():
        field, brace, value = line.strip().partition(" ")
        if value == "{":
            inner = collections.defaultdict(list)
            message[field].append(inner)
            around.append(message)
            message = inner
        elif field == "}":
            message = around.pop()
        else:
            if field not in known:
                check(not re.fullmatch(r"\d+:?", field), "a field that the schema does not have", line)
                known.add(field)
            message[field[:-1]].append(json.loads(value) if value[0] == '"' and "\\" not in value else value)
    return root["packet"]


def text(value):
    """Decodes the escape sequences in a string that protoc has printed."""
    return value if '"' not in value[:1] else value[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()


def read_perfetto(path):
    """Returns (clocks, tracks, events) of a file, with interned names resolved."""
    names = {kind: {} for kind in ("event_categories", "event_names", "debug_annotation_names", "debug_annotation_string_values")}
    tracks, events, clocks = {}, [], None
    for number, packet in enumerate(decode(path)):
        equal(packet["trusted_packet_sequence_id"], ["2" if packet["track_descriptor"] else "1"], "the sequence of a packet")
        check((int(packet["sequence_flags"][0]) & INCREMENTAL_STATE_CLEARED != 0) == (number == 0), "where the state begins", packet)
        for data in packet["interned_data"]:
            for kind, entries in data.items():
                for entry in entries:
                    check(entry["iid"][0] not in names[kind], "a number is given twice", kind, entry)
                    names[kind][entry["iid"][0]] = text(entry["name"][0])
        for snapshot in packet["clock_snapshot"]:
            clocks = {int(c["clock_id"][0]): int(c["timestamp"][0]) for c in snapshot["clocks"]}
            equal((snapshot["primary_trace_clock"], packet["trace_packet_defaults"][0]["timestamp_clock_id"]),
                  (["BUILTIN_CLOCK_MONOTONIC"], ["3"]), "the clock of all times")
        for track in packet["track_descriptor"]:
            check(track["uuid"][0] not in tracks, "a track is there twice", track)
            tracks[track["uuid"][0]] = track
        for event in packet["track_event"]:
            check(event["track_uuid"][0] in tracks, "an event on a track that nothing described", event)
            said = {names["debug_annotation_names"][a["name_iid"][0]]:
                    int(a["int_value"][0]) if "int_value" in a else
                    names["debug_annotation_string_values"][a["string_value_iid"][0]] if "string_value_iid" in a else
                    text(a["string_value"][0]) if "string_value" in a else a["bool_value"][0] == "true"
                    for a in event["debug_annotations"]}
            name = names["event_names"][event["name_iid"][0]] if "name_iid" in event else text((event["name"] or [""])[0])
            events.append({"at": int(packet["timestamp"][0]), "type": event["type"][0], "track": event["track_uuid"][0], "name": name,
                           "categories": [names["event_categories"][c] for c in event["category_iids"]], "said": said,
                           "flows": event["flow_ids"], "sources": [flow["bind_id"][0] for flow in event["legacy_event"]],
                           "value": event["counter_value"]})
            equal([flow["flow_direction"] for flow in event["legacy_event"]], [["FLOW_IN"]] * len(event["legacy_event"]), "ends of arrows")
    return clocks, tracks, events


def slices(events):
    """Returns ([(begin, end)] of all complete slices, [slices that do not end]). Checks that the slices on each track are nested."""
    open_slices, whole = collections.defaultdict(list), []
    for event in sorted(events, key=lambda e: e["at"]):  # a stable sort, as in the programs that read the file
        stack = open_slices[event["track"]]
        if event["type"] == "TYPE_SLICE_BEGIN":
            stack.append(event)
        elif event["type"] == "TYPE_SLICE_END":
            check(stack, "a slice ends that did not begin", event)
            whole.append((stack.pop(), event))
    return whole, [e for stack in open_slices.values() for e in stack]


def arrows(whole):
    """Returns the flow arrows between complete slices. An arrow is a pair of the events that begin the two slices."""
    begun = {}
    for begin, _ in whole:
        for flow in begin["flows"]:
            check(flow not in begun, "a flow begins twice", begin)
            begun[flow] = begin
    for begin, _ in whole:
        check(all(source in begun and begun[source]["at"] <= begin["at"] for source in begin["sources"]), "an arrow from nowhere", begin)
    return [(begun[source], begin) for begin, _ in whole for source in begin["sources"]]
