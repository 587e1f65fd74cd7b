#!/usr/bin/env python3
"""Writes the calls that arguments_driver.c and arguments_runtime.c make: one to each function of a signatures file, with arguments that
its entry point can distinguish.

    arguments_calls.py signatures.def driver_api.def OUTPUT.h
"""
import pathlib
import re
import sys

TYPES = {"p": "void *", "l": "uint64_t", "i": "uint32_t", "h": "uint16_t", "c": "uint8_t", "f": "float", "d": "double"}
# {letter: (size in bytes, type of its words)} for structs passed by value
STRUCTS = {"L": (8, "uint64_t"), "D": (12, "uint32_t"), "F": (20, "uint32_t"), "E": (24, "uint64_t"),
           "P": (32, "uint64_t"), "S": (64, "uint64_t"), "G": (280, "uint64_t")}
TYPES |= {letter: f"struct bytes{size}" for letter, (size, _) in STRUCTS.items()}


# The decoders that may follow a pointer argument even if the call failed, each with the index of that argument. With most errors, the
# driver has already read the object that the pointer refers to (inspected() in hook/decode/decode.h).
INSPECTED = {"copy_2d": 0, "copy_3d": 0, "launch_ex": 0, "array_create": 1}


def inspected(decoder):
    return next((place for start, place in INSPECTED.items() if decoder.startswith(start)), None)


def value(letter, place, seed, readable=False):
    """Returns an argument as C code: a pointer into memory that arguments_driver.c chooses, or a pseudo-random number."""
    bits = (seed * 0x9E3779B97F4A7C15 + (place + 1) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    if letter == "p":
        return f"{'readable' if readable else 'pointers'} + {(bits % 1024) * 64}"
    if letter in "fd":
        return f"{(bits % 100000) / 64}f"
    if letter in STRUCTS:
        size, word = STRUCTS[letter]
        width = 64 if word == "uint64_t" else 32
        words = ", ".join(f"{(bits ^ (i * 0x0101010101010101)) & (2**width - 1):#x}u" for i in range(size * 8 // width))
        return f"(struct bytes{size}){{ {{ {words} }} }}"
    width = {"l": 64, "i": 32, "h": 16, "c": 8}[letter]
    return f"({TYPES[letter]})NUMBER({bits & (2**width - 1):#x}u)"


def main():
    source, api, output = map(pathlib.Path, sys.argv[1:])
    text = source.read_text()
    decoders = dict(re.findall(r"^ROW\((\w+),.*, (\w+)\)$", api.read_text(), re.M))
    returns_nothing = set(re.findall(r"^ \*   (cudbg\w+)$", text, re.M))
    lines = ["/* Made by tests/hook/arguments_calls.py. */"]
    lines += [f"struct bytes{size} {{\n    {word} words[{size * 8 // (64 if word == 'uint64_t' else 32)}];\n}};"
              for size, word in STRUCTS.values()]
    calls = []
    signatures = re.findall(r'^SIG\((\w+),\s*"([\w>]*)"\)', text, re.M)
    # Functions that no header declares are called without arguments.
    unknown = re.findall(r"^ \*   (cu\w+)$", text.partition("declared by no header")[2].partition("*/")[0], re.M)
    for seed, (name, signature) in enumerate(signatures + [(name, "") for name in unknown], 1):
        letters, _, returned = signature.partition(">")
        result = "void" if name in returns_nothing else TYPES.get(returned, "int")
        parameters = ", ".join(TYPES[letter] for letter in letters) or "void"
        lines.append(f"{result} {name}({parameters});")
        read = inspected(decoders[name])
        arguments = ", ".join(value(letter, place, seed, place == read) for place, letter in enumerate(letters))
        call = f"GUARDED({name})({arguments})"
        value_of = {"p": f"(int64_t)(uintptr_t){call}", "": call}.get(returned, f"{call}.words[0]")
        calls.append(f'    ({call}, report("{name}", 0));' if result == "void" else f'    report("{name}", {value_of});')
    lines += ["static void call_all(void)", "{", *calls, "}"]
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
