#!/usr/bin/env python3
"""Rewrites proto/driver_api.def or proto/runtime_api.def from an installed CUDA toolkit and a library's exports.

Names are taken from the export list, and stack words from the prototypes in the CUDA headers. Categories, decoders and the text
before the rows are maintained by hand and are preserved. A new function is given the category of the function with which it
shares the longest name prefix, and is printed for review. A function that no header declares (any more) keeps its stack words and
its signature. The critical parsing is done by a C compiler. The compiler preprocesses the headers, measures every parameter type,
and checks each prototype parsed by this script against the header's declaration.

The build does not run this script. Run it by hand when a new library exports new functions (see docs/hacking.md).
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys
import tempfile

DEFAULT_INCLUDE = "/usr/local/cuda/include"

# Structs of at most 16 bytes are passed in registers according to their members, and larger ones on the stack. The small structs
# are listed by name, because their size does not determine the signature letter.
SMALL_STRUCTS = {"CUmemLocation": "L", "struct cudaMemLocation": "L", "dim3": "D"}
LARGE_STRUCTS = {"F": 20, "E": 24, "P": 32, "S": 64, "G": 280}

# The number of stack words to copy for a function with an unknown prototype. No driver function has more arguments.
UNKNOWN_STACK_WORDS = 16

# The interoperability headers include other headers, which a machine may lack. Of those headers, only the following types are
# needed.
VDPAU_HEADER = (
    "typedef unsigned int VdpDevice;\n"
    "typedef unsigned int VdpVideoSurface;\n"
    "typedef unsigned int VdpOutputSurface;\n"
    "typedef int VdpGetProcAddress(unsigned int, unsigned int, void **);\n"
)
STAND_INS = {
    "GL/gl.h": "typedef unsigned int GLenum;\ntypedef unsigned int GLuint;\n",
    "EGL/egl.h": "typedef int EGLint;\n",
    "EGL/eglext.h": "typedef void *EGLImageKHR;\ntypedef void *EGLStreamKHR;\ntypedef void *EGLSyncKHR;\n",
    "vdpau/vdpau.h": VDPAU_HEADER,
}

ROW = re.compile(r"ROW\(\s*(\w+)\s*,\s*(\w+)\s*,\s*([\w() +]+?)\s*,\s*([^()]*?)\s*\)$")


@dataclasses.dataclass(frozen=True)
class Api:
    """Holds everything that differs between the two libraries."""

    layer: str
    soname: str
    headers: tuple  # the first must exist
    version_macro: str
    name: str  # regular expression for the exports that get rows
    status_type: str
    status_enum: re.Pattern
    results: dict  # type to letter, for functions that do not return a status

    def prototypes(self):
        """Returns a regular expression that matches a declaration's result, name and parameters."""
        results = "|".join(re.escape(each) for each in (self.status_type, *self.results))
        return re.compile(rf"\b({results})\s*\b({self.name})\s*\(([^;{{}}]*)\)\s*;")


DRIVER = Api(
    layer="driver",
    soname="libcuda.so.1",
    headers=("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"),
    version_macro="CUDA_VERSION",
    name=r"cu(?:[A-Z]|dbg)\w*",
    status_type="CUresult",
    status_enum=re.compile(r"typedef\s+enum\s+cudaError_enum\s*\{([^}]*)\}\s*CUresult\s*;"),
    results={},
)
RUNTIME = Api(
    layer="runtime",
    soname="libcudart.so.13",
    headers=(
        "cuda_runtime_api.h",
        "cuda_profiler_api.h",
        "cuda_gl_interop.h",
        "cuda_egl_interop.h",
        "cuda_vdpau_interop.h",
    ),
    version_macro="CUDART_VERSION",
    name=r"cuda[A-Z]\w*|__cudaLaunchKernel(?:_ptsz)?",
    status_type="cudaError_t",
    status_enum=re.compile(r"\benum\s+cudaError\s*\{([^}]*)\}\s*;"),
    results={"const char*": "p", "struct cudaChannelFormatDesc": "F"},
)
APIS = {api.layer: api for api in (DRIVER, RUNTIME)}


class Failure(Exception):
    """An error that ends the script with one line on stderr and exit status 1."""


def run(command, what):
    """Runs a command and returns its output. `what` describes the command's purpose in error messages."""
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise Failure(f"{what}: cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise Failure(f"{what}: {first}")
    return done.stdout


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def write_text(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


# --- Names ---------------------------------------------------------------------------------------------


def read_exports(api, path):
    """Returns the functions that the library exports, or those listed in a file of `name<TAB>kind` lines."""
    try:
        with open(path, "rb") as file:
            is_library = file.read(4) == b"\x7fELF"
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    names = set()
    if is_library:
        for line in run(["nm", "-D", "--defined-only", path], path).splitlines():
            fields = line.split()
            if len(fields) >= 2 and fields[-2] in ("T", "W", "i"):
                names.add(fields[-1].split("@")[0])
    else:
        for line in read_text(path).splitlines():
            fields = line.split("\t")
            if not line.startswith("#") and len(fields) >= 2 and fields[1].strip() == "function":
                names.add(fields[0].strip())
    names = sorted(name for name in names if re.fullmatch(api.name, name))
    if not names:
        raise Failure(f"{path}: exports no {api.layer} function; give a {api.soname} or name<TAB>function lines")
    return names


def likest(name, names):
    """Returns the name that shares the longest prefix with the given one."""
    return max(sorted(names), key=lambda other: len(os.path.commonprefix([name, other])))


# --- Prototypes ----------------------------------------------------------------------------------------


def parameter_type(parameter):
    """Removes the name from a parameter of a prototype, so that `const char *name` becomes `const char *`."""
    parameter = " ".join(parameter.split())
    array = re.match(r"(.*?)\w+ ?\[[^\]]*\]$", parameter)
    if array:
        return array.group(1).strip() + " *"
    named = re.match(r"(.*[\s*])([A-Za-z_]\w*)$", parameter)
    words = ("int", "char", "short", "long", "float", "double", "unsigned", "signed", "const", "void")
    if named and named.group(2) not in words and named.group(1).strip() not in ("const", "struct", "enum"):
        return named.group(1).strip()
    return parameter


def parse_prototypes(api, source):
    """Returns {name: (result type, [parameter type, …])} for every function in the preprocessed source."""
    prototypes = {}
    for result, name, parameters in api.prototypes().findall(source):
        parts = [part for part in parameters.split(",") if part.split() not in ([], ["void"])]
        prototypes[name] = (result, [parameter_type(part) for part in parts])
    return prototypes


def letter_of(type_name, size, kind):
    """Returns the signature letter of a type. `kind` is the result of __builtin_classify_type()."""
    if kind == 5:
        return "p"
    if kind in (1, 2, 3, 4):
        return {8: "l", 4: "i", 2: "h", 1: "c"}[size]
    if kind == 8:
        return {4: "f", 8: "d"}[size]
    bare = type_name.replace("const ", "").strip()
    if bare in SMALL_STRUCTS:
        return SMALL_STRUCTS[bare]
    for letter, bytes_ in LARGE_STRUCTS.items():
        if kind in (12, 13) and size == bytes_:
            return letter
    raise Failure(f"{type_name}: {size} bytes by value; add a letter for it to {os.path.basename(__file__)}")


class Headers:
    """Reads the signatures, status codes and version from the CUDA headers of one installation."""

    def __init__(self, api, include):
        self.api = api
        if not os.path.isfile(os.path.join(include, api.headers[0])):
            raise Failure(f"{include}: holds no {api.headers[0]}; name the toolkit's include directory with --include")
        self.compiler = os.environ.get("CC", "cc")
        with tempfile.TemporaryDirectory() as directory:
            self.directory = directory
            for path, text in STAND_INS.items():
                os.makedirs(os.path.dirname(os.path.join(directory, path)), exist_ok=True)
                write_text(os.path.join(directory, path), text)
            # This macro enables the declarations of old function versions and of _ptds and _ptsz variants.
            present = [name for name in api.headers if os.path.isfile(os.path.join(include, name))]
            prelude = "#define __CUDA_API_VERSION_INTERNAL 1\n" + VDPAU_HEADER
            prelude += "".join(f"#include <{name}>\n" for name in present)
            source_path = os.path.join(directory, "headers.c")
            write_text(source_path, prelude)
            self.flags = ["-w", "-std=gnu11", "-I", directory, "-I", include]
            source = run([self.compiler, "-E", "-P", *self.flags, source_path], "preprocessing the headers")
            prototypes = parse_prototypes(api, source)
            codes = api.status_enum.search(source)
            if not prototypes or not codes:
                raise Failure(f"{include}/{api.headers[0]}: found no functions or no {api.status_type} in it")
            names = [part.split("=")[0].strip() for part in codes.group(1).split(",") if part.strip()]
            self.measure(prelude, prototypes, names)

    def measure(self, prelude, prototypes, status_names):
        """Compiles and runs a C program that checks the prototypes and prints sizes, kinds and codes."""
        types = sorted({each for _, parameters in prototypes.values() for each in parameters})
        lines = [prelude, "#include <stdio.h>"]
        for name, (result, parameters) in sorted(prototypes.items()):
            prototype = f"{result}({', '.join(parameters) or 'void'})"
            lines.append(
                f"_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {prototype}), "
                f'"{name} is not {prototype}");'
            )
        lines.append("int main(void)\n{")
        lines.append(f'    printf("version %d\\n", {self.api.version_macro});')
        for index, each in enumerate(types):
            lines.append(
                f'    printf("type {index} %zu %d\\n", sizeof({each}), '
                f"__builtin_classify_type(*({each} *)0));"
            )
        for name in status_names:
            lines.append(f'    printf("status {name} %d\\n", (int){name});')
        lines.append("    return 0;\n}\n")
        path = os.path.join(self.directory, "measure.c")
        program = os.path.join(self.directory, "measure")
        write_text(path, "\n".join(lines))
        run([self.compiler, *self.flags, "-o", program, path], "checking the prototypes")

        letters = {}
        self.status = []
        for line in run([program], "measuring the types").splitlines():
            fields = line.split()
            if fields[0] == "version":
                self.version = f"{int(fields[1]) // 1000}.{int(fields[1]) % 1000 // 10}"
            elif fields[0] == "type":
                name = types[int(fields[1])]
                letters[name] = letter_of(name, int(fields[2]), int(fields[3]))
            else:
                self.status.append((int(fields[2]), fields[1]))
        self.status.sort()
        self.signatures = {
            name: "".join(letters[each] for each in parameters)
            + (f">{self.api.results[result]}" if result in self.api.results else "")
            for name, (result, parameters) in prototypes.items()
        }

    def signature_of_variant(self, name):
        """Returns the signature of the function without its version suffix, or None if no header declares that function."""
        variant = re.sub(r"_pt[ds][sz]$", "", name)
        return self.signatures.get(variant, self.signatures.get(re.sub(r"_v\d+$", "", variant)))


def stack_words(signature):
    """Returns how many 8-byte words of arguments are passed on the stack, according to section 3.2.3 of the System V ABI for x86-64."""
    parameters, _, result = signature.partition(">")
    # A struct too large for registers is returned through a hidden first argument.
    integers, floats, words = int(result in LARGE_STRUCTS), 0, 0
    for letter in parameters:
        if letter in LARGE_STRUCTS:
            words += -(-LARGE_STRUCTS[letter] // 8)
        elif letter in "fd":
            floats += 1
            words += floats > 8
        else:
            # A two-word struct is passed either entirely in registers or entirely on the stack.
            wanted = 2 if letter == "D" else 1
            if integers + wanted <= 6:
                integers += wanted
            else:
                words += wanted
    return words


def stack_column(api, signature, before):
    """Returns the value of a row's stack column. `before` is the previous value. The driver's table is used on every architecture, so
    structs passed by value are written as macros of hook/arch/machine.h, which expand to a number of words. The runtime's stubs exist only
    on x86-64, and one row covers all versions of the library. An earlier version of a function may have had more stack words, and copying
    too many is harmless."""
    if signature is None:
        return before
    if api is RUNTIME:
        return str(max(stack_words(signature), int(before)))
    words = stack_words(signature.replace("S", ""))
    structs = ["BY_VALUE(64)"] * signature.count("S")
    return " + ".join(([str(words)] if words or not structs else []) + structs)


# --- Files ---------------------------------------------------------------------------------------------


def read_table(path):
    """Returns (text before the rows, {name: (category, stack, decoder)}, text after the rows)."""
    lines = read_text(path).splitlines(keepends=True)
    at = [index for index, line in enumerate(lines) if line.startswith("ROW(")]
    if not at:
        raise Failure(f"{path}: holds no ROW(…) line, so it is not the table")
    rows = {}
    for index in range(at[0], at[-1] + 1):
        match = ROW.match(lines[index].strip())
        if not match:
            raise Failure(f"{path}:{index + 1}: not a row; comments must be before the first or after the last")
        rows[match.group(1)] = (match.group(2), match.group(3), match.group(4))
    return "".join(lines[: at[0]]), rows, "".join(lines[at[-1] + 1 :])


def format_table(before, rows, after):
    width = max(55, max(len(name) for name in rows) + 2)
    body = "".join(
        f"ROW({name + ',':<{width}}{category + ',':<8} {words:>2}, {decoder})\n"
        for name, (category, words, decoder) in sorted(rows.items())
    )
    return before + body + after


def head_of(path, first, version):
    """Returns the text before a file's rows, with the toolkit's version updated."""
    head, found, _ = read_text(path).partition(f"\n{first}")
    if not found:
        raise Failure(f"{path}: holds no line that begins with {first}")
    return re.sub(r"CUDA (--\s*)?\d+\.\d+", lambda said: f"CUDA {said[1] or ''}{version}", head, count=1) + "\n"


def read_signatures(path):
    return dict(re.findall(r'^SIG\((\w+),\s*"(.*)"\)$', read_text(path), re.M))


def format_signatures(before, signatures):
    return before + "".join(f"SIG({name + ',':<55}\"{letters}\")\n" for name, letters in sorted(signatures.items()))


def format_status(api, before, old, status):
    """Returns the file's text with a new statement for this layer. The statements of other layers are kept."""
    found = re.findall(r"^(INSERT[^;]*?\('(\w+)',[^;]*;\n)", old, re.M)
    statements = {layer: text for text, layer in found}
    rows = ",\n".join(f"    ('{api.layer}', {code:>3}, '{name}')" for code, name in status)
    statements[api.layer] = f"INSERT INTO status(layer, status, name) VALUES\n{rows};\n"
    return before + "\n".join(statements[each] for each in sorted(statements))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="The C compiler is $CC, else cc.")
    parser.add_argument("api", choices=sorted(APIS), help="the library whose table it is")
    parser.add_argument("table", metavar="TABLE", help="proto/driver_api.def, proto/runtime_api.def")
    parser.add_argument("--include", metavar="DIR", default=DEFAULT_INCLUDE, help="directory of the headers (default: %(default)s)")
    parser.add_argument("--exports", metavar="FILE",
                        help="a libcuda.so.1 or libcudart.so, or lines of name<TAB>function (default: the names in the table)")
    parser.add_argument("--signatures", metavar="FILE", help="write the signatures for tests, tests/…signatures.def")
    parser.add_argument("--status", metavar="FILE", help="rewrite the layer's part of schema/status.sql")
    return parser.parse_args()


def import_api(arguments):
    api = APIS[arguments.api]
    before, old, after = read_table(arguments.table)
    names = set(read_exports(api, arguments.exports) if arguments.exports else old)
    if api is RUNTIME:
        names |= old.keys()  # functions of other versions
    headers = Headers(api, arguments.include)
    known = (read_signatures(arguments.signatures) if arguments.signatures else {}) | headers.signatures

    rows, signatures = {}, {}
    for name in sorted(names):
        signature = known.get(name)
        if name in old:
            category, words, decoder = old[name]
        else:
            like = likest(name, old)
            category, words, decoder = old[like][0], "0", "none"
            signature = headers.signature_of_variant(name) if signature is None else signature
            print(f"new      {name}: {category}, as {like} is")
            if signature is None:
                words = str(UNKNOWN_STACK_WORDS)
                print(f"unknown  {name}: no header declares it, {words} words assumed")
        if signature is not None:
            signatures[name] = signature
        rows[name] = (category, stack_column(api, signature, words), decoder)

    write_text(arguments.table, format_table(before, rows, after))
    for name in sorted(old.keys() - rows.keys()):
        print(f"removed  {name}" + ("" if old[name][2] == "none" else f", and its decoder {old[name][2]}"))
    if arguments.signatures:
        before = head_of(arguments.signatures, "SIG(", headers.version)
        write_text(arguments.signatures, format_signatures(before, signatures))
    if arguments.status:
        before = head_of(arguments.status, "INSERT", headers.version)
        write_text(arguments.status, format_status(api, before, read_text(arguments.status), headers.status))


def main():
    arguments = parse_arguments()
    try:
        import_api(arguments)
    except Failure as failure:
        print(f"{os.path.basename(__file__)}: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
