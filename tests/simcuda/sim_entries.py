#!/usr/bin/env python3
"""Write the simulated driver's exported functions: one typed entry point for each row of driver_api.def.

    sim_entries.py driver_api.def signatures.def OUTPUT.c FRONT.h MODEL.c...

A function has a model if one of the MODEL files defines sim_<name>. Each model's parameters are checked against the letters in
signatures.def, so that no model can disagree with the real driver's ABI. A function that has no model, and whose name ends in _ptds or
_ptsz, runs the model of its base, with NULL meaning the thread's own stream. All other functions return CUDA_ERROR_NOT_SUPPORTED.

FRONT.h has a row FRONT(name, stack words) for each function that is called through the table in a driver that has a table of entry points
(front_x86_64.S). In such a driver, the entry points are hidden and named front_<name>.
"""

import pathlib
import re
import sys

NOT_SUPPORTED = 801

C_TYPES = {"p": "void *", "l": "uint64_t", "i": "uint32_t", "h": "uint16_t", "c": "uint8_t",
           "f": "float", "L": "uint64_t", "S": "struct bytes64"}

# As in libcuda 580, these functions are not called through the table of entry points.
BARE = {"cuEGLApiInit", "cuMemGetAttribute", "cuMemGetAttribute_v2"}

# {signature letter: types of parameters}, for parameters that models declare without a `*`.
VALUE_TYPES = {
    "p": "CUcontext CUmodule CUfunction CUlibrary CUkernel CUstream CUevent CUgraph CUgraphNode CUgraphExec "
         "CUarray CUmemoryPool CUlinkState CUhostFn CUstreamCallback CUoccupancyB2DSize",
    "l": "size_t uint64_t CUdeviceptr CUtexObject CUsurfObject",
    "i": "int unsigned CUdevice CUresult uint32_t CUmemorytype CUstreamCaptureMode CUdeviceptr_v1",
    "h": "uint16_t",
    "c": "uint8_t",
    "f": "float",
    "L": "CUmemLocation",
}
LETTER_OF = {name: letter for letter, names in VALUE_TYPES.items() for name in names.split()}


def letters_of(parameters, where):
    """Return the signature letters for a C parameter list."""
    parameters = " ".join(parameters.split())
    if parameters in ("void", ""):
        return ""
    letters = ""
    for parameter in parameters.split(","):
        words = parameter.replace("const ", "").split()
        if "*" in parameter:
            letters += "p"
        elif "long" in words:
            letters += "l"
        elif words[0] in LETTER_OF:
            letters += LETTER_OF[words[0]]
        else:
            sys.exit(f"{where}: sim_entries.py does not know the type of '{parameter.strip()}'")
    return letters


def models_in(paths):
    models = {}
    for path in paths:
        for name, parameters in re.findall(r"^CUresult sim_(\w+)\(([^)]*)\)\s*\{", path.read_text(), re.M):
            if name in models:
                sys.exit(f"{path.name}: sim_{name} is also in {models[name][1].name}")
            models[name] = (letters_of(parameters, f"{path.name}: sim_{name}"), path)
    return models


def verify_lines(letters):
    for i, letter in enumerate(letters):
        if letter == "S":
            yield f"verify_words(&verify, &a{i}, 8);"
        elif letter == "f":
            yield f"verify_float(&verify, a{i});"
        else:
            yield f"verify_word(&verify, {'(uintptr_t)' if letter == 'p' else ''}a{i});"


def run_function(name, letters, parameters, models):
    """Return the code of run_<name>, which calls the model without passing the gate."""
    base = re.sub(r"_pt[sd][sz]$", "", name)
    model = name if name in models else base if base in models else None
    arguments = [f"a{i}" for i in range(len(letters))]
    lines = [] if model else [f"(void){argument};" for argument in arguments]
    if model:
        lines.append(f"const int32_t status = sim_{model}({', '.join(arguments)});")
        if model != name:
            lines.insert(-1, "sim_null_stream_is_thread = true;")
            lines.append("sim_null_stream_is_thread = false;")
        lines.append("return status;")
    else:
        lines.append(f"return {NOT_SUPPORTED};")
    return f"static inline int32_t run_{name}({parameters})\n{{\n    " + "\n    ".join(lines) + "\n}"


def stack_words(letters):
    """Return the number of stack words that x86-64 uses for the arguments."""
    return max(0, sum(letter not in "fS" for letter in letters) - 6) + 8 * letters.count("S")


def entry_point(name, letters, returns_nothing, models):
    declared = [f"{C_TYPES[letter]} a{i}" for i, letter in enumerate(letters)]
    parameters = ", ".join(declared) or "void"
    run = f"run_{name}({', '.join(f'a{i}' for i in range(len(letters)))})"
    give = (lambda value: f"{value};") if returns_nothing else (lambda value: f"return {value};")
    out = []
    if name in models:
        out.append(f"int32_t sim_{name}({', '.join(declared) or 'void'});")
    out += [
        run_function(name, letters, parameters, models),
        f"{'EXPORTED' if name in BARE else 'ENTRY'} {'void' if returns_nothing else 'int32_t'} "
        f"{name if name in BARE else f'ENTRY_NAME({name})'}({parameters})",
        "{",
        "    if (atomic_load_explicit(&sim_watch, memory_order_relaxed) == 0)",
        "        return;" if returns_nothing else f"        return {run};",
        "    ENTRY_FRAME(frame);",
        f"    const int32_t refusal = frame % 16 ? entry_misaligned(ROW_{name}) : 0;",
        "    if (refusal != 0)",
        "        " + give("refusal") if not returns_nothing else "        return;",
        f"    struct entry entry = {{ .row = ROW_{name} }};",
        "    switch (entry_begin(&entry)) {",
        "    case ENTRY_RUN:",
        f"        entry.status = {run};",
        "        break;",
        "    case ENTRY_VERIFY: {",
        "        struct verify verify;",
        "        verify_start(&verify, entry.row);",
        *(f"        {line}" for line in verify_lines(letters)),
        "        entry.status = verify_finish(&verify);",
        "        break;",
        "    }",
        "    case ENTRY_DECIDED:",
        "        break;",
        "    }",
        "    " + give("entry_end(&entry)"),
        "}",
    ]
    return "\n".join(out)


def main():
    api, signatures, output, front, *sources = map(pathlib.Path, sys.argv[1:])
    rows = re.findall(r"^ROW\((\w+),", api.read_text(), re.M)
    signature_text = signatures.read_text()
    letters_by_name = dict(re.findall(r'^SIG\((\w+),\s*"(\w*)"\)', signature_text, re.M))
    comment = signature_text.partition("return nothing:")[2].partition("Exported")[0]
    returning_nothing = set(re.findall(r"^ \*   (cu\w+)$", comment, re.M))
    models = models_in(sources)

    wrong = [f"{path.name}: sim_{name} has parameters '{letters}', not '{letters_by_name.get(name)}'"
             for name, (letters, path) in models.items()
             if letters_by_name.get(name) != letters or name not in rows]
    if wrong:
        sys.exit("\n".join(wrong))

    parts = ["/* Written by sim_entries.py. */\n#include \"sim_entry.h\"\n\nstruct bytes64 {\n    uint64_t words[8];\n};\n",
             "_Thread_local bool sim_null_stream_is_thread;\n"]
    for name in rows:
        parts.append(entry_point(name, letters_by_name.get(name, ""), name in returning_nothing, models) + "\n")
    parts.append("#ifdef SIMCUDA_FRONT")
    parts += [f"EXPORTED void {name}(void);" for name in rows if name not in BARE]
    parts.append("#endif\n")
    parts.append("const struct sim_function sim_functions[ROW_COUNT] = {")
    parts += [f'    [ROW_{name}] = {{ "{name}", (void *){name}, (void *){name if name in BARE else f"ENTRY_NAME({name})"} }},'
              for name in rows]
    parts.append("};\n")
    output.write_text("\n".join(parts))
    front.write_text("".join(f"FRONT({name}, {stack_words(letters_by_name.get(name, ''))})\n" for name in rows if name not in BARE))


if __name__ == "__main__":
    main()
