#!/usr/bin/env python3
"""Writes the exported functions of the simulated runtime: one typed entry point for each row of runtime_api.def.

    entries.py runtime_api.def runtime_signatures.def OUTPUT.c MODEL.c...

Each entry point stores a checksum of its arguments, with their declared widths. If one of the MODEL files defines sim_<name>, the entry
point runs that model unless SIMCUDA_VERIFY is set. All other calls return a result derived from the checksum.
"""

import pathlib
import re
import sys

STRUCTS = {"L": 8, "D": 12, "F": 20, "E": 24, "P": 32, "S": 64, "G": 280}
C_TYPES = {"p": "void *", "l": "uint64_t", "i": "uint32_t", "h": "uint16_t", "c": "uint8_t", "f": "float", "d": "double",
           **{letter: f"struct bytes{size}" for letter, size in STRUCTS.items()}}


def entry_point(name, signature, has_model):
    letters, _, result = signature.partition(">")
    declared = [f"{C_TYPES[letter]} a{i}" for i, letter in enumerate(letters)]
    arguments = [f"a{i}" for i in range(len(letters))]
    words = []
    for letter, argument in zip(letters, arguments):
        if letter in STRUCTS:
            words.append(f"sum = checksum_bytes(sum, &{argument}, sizeof {argument});")
        else:
            words.append(f"sum = simcuda_checksum_word(sum, {'(uintptr_t)' if letter == 'p' else ''}{argument});")
    returned = {"": "int32_t", "p": "void *"}.get(result) or C_TYPES[result]
    give = {"": "simcuda_checksum_result(sum)", "p": "(void *)(uintptr_t)sum"}.get(result) or \
        f"({returned}){{ {{ (uint8_t)sum, (uint8_t)(sum >> 8), (uint8_t)(sum >> 16) }} }}"
    out = [f"{returned} sim_{name}({', '.join(declared) or 'void'});"] if has_model else []
    out += [
        f"EXPORTED {returned} {name}({', '.join(declared) or 'void'})",
        "{",
        "    ENTRY_FRAME(frame);",
        f'    uint64_t sum = simcuda_checksum_start("{name}");',
        *(f"    {line}" for line in words),
        f'    keep_call("{name}", sum, frame % 16 != 0);',
    ]
    if has_model:
        out += ["    if (!simcudart_verifies())", f"        return sim_{name}({', '.join(arguments)});"]
    return "\n".join(out + [f"    return {give};", "}"])


def main():
    api, signatures, output, *sources = map(pathlib.Path, sys.argv[1:])
    rows = re.findall(r"^ROW\((\w+),", api.read_text(), re.M)
    signature_of = dict(re.findall(r'^SIG\((\w+),\s*"([\w>]*)"\)', signatures.read_text(), re.M))
    models = {name for source in sources for name in re.findall(r"^[\w ]+[ *]sim_(\w+)\(", source.read_text(), re.M)}
    if models - signature_of.keys():
        sys.exit(f"models of no function: {models - signature_of.keys()}")
    parts = ['/* Written by entries.py. */\n#include "simcudart.h"\n']
    parts += [entry_point(name, signature_of[name], name in models) + "\n" for name in rows]
    output.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
