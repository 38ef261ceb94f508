"""abi.py: what programs were compiled against stays: exported names with their versions, types of functions, layouts of
structures, values of constants, as abi.txt has them.

    abi.py LIBRARY-FOLDER            1 when something differs: what is gone or changed breaks programs, what is new is
                                     to be added
    abi.py LIBRARY-FOLDER --update   writes abi.txt; the change of it is what a reviewer reads
"""
import os
import re
import subprocess
import sys
import tempfile

import public_headers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
KEPT = os.path.join(HERE, "abi.txt")
INCLUDES = "#include <stdio.h>\n#include <stddef.h>\n" + "".join(f"#include <{header}>\n" for header in public_headers.headers())


def output_of(*command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


def names(folder):
    for library in ("libtracealloc.so", "libtracealloc-analysis.so"):
        for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions", f"{folder}/{library}").splitlines():
            kind, name = line.split()[-2:]
            if kind in "TDBRVWiGSu":
                name, _, version = name.partition("@")
                yield f"{library} {name} {version.lstrip('@') or '-'}"


def functions(folder):
    """As the compiler understood them, without the names of parameters."""
    subprocess.run(["cc", "-fsyntax-only", f"-I{ROOT}/include", "-aux-info", f"{folder}/types", f"{folder}/all.c"], check=True)
    for line in open(f"{folder}/types", encoding="utf-8"):
        found = re.match(r"/\*.*\*/ extern (.*\bta_[a-z0-9_]+ \(.*\));$", line.strip())
        if found:
            yield found.group(1)


def declarations(preprocessed):
    """("struct ta_x", "body") and ("enum …", "body") at the outermost level."""
    for found in re.finditer(r"\b(struct ta_\w+|enum(?: ta_\w+)?)\s*\{([^{}]*)\}", preprocessed):
        yield found.group(1), found.group(2)


def field_names(body):
    for declaration in body.split(";"):
        pointer = re.search(r"\(\*\s*(\w+)\)", declaration)
        if pointer:
            yield pointer.group(1)
        elif declaration.strip():
            for part in declaration.split(","):
                yield re.sub(r"\[.*", "", part).split()[-1].lstrip("*")


def layouts(folder):
    preprocessed = output_of("cc", "-E", "-P", f"-I{ROOT}/include", f"{folder}/all.c")
    lines = []
    for kind, body in declarations(preprocessed):
        if kind.startswith("struct"):
            fields = list(field_names(body))
            lines.append(f'printf("{kind}: %zu bytes", sizeof({kind}));')
            for field in fields:
                lines.append(f'printf(", {field} %zu+%zu", offsetof({kind}, {field}), sizeof((({kind} *)0)->{field}));')
            lines.append('puts("");')
        else:
            for part in body.split(","):
                name = part.split("=")[0].strip()
                if re.fullmatch(r"TA_\w+", name):
                    lines.append(f'printf("{name} = %lld\\n", (long long){name});')
    with open(f"{folder}/layout.c", "w", encoding="utf-8") as source:
        source.write(INCLUDES + "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run(["cc", "-w", f"-I{ROOT}/include", f"{folder}/layout.c", "-o", f"{folder}/layout"], check=True)
    yield from output_of(f"{folder}/layout").splitlines()


def describe(libraries):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/all.c", "w", encoding="utf-8") as source:
            source.write(INCLUDES)
        parts = (("names", names(libraries)), ("functions", functions(folder)), ("layouts and constants", layouts(folder)))
        return "".join(f"# {title}\n" + "\n".join(sorted(set(lines))) + "\n" for title, lines in parts)


def main():
    now = describe(os.path.abspath(sys.argv[1]))
    if "--update" in sys.argv:
        with open(KEPT, "w", encoding="utf-8") as kept:
            kept.write(now)
        return 0
    old, new = open(KEPT, encoding="utf-8").read().splitlines(), now.splitlines()
    gone, fresh = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    for title, lines in (("gone or changed, which breaks programs", gone), ("new", fresh)):
        if lines:
            print(f"{title}:\n  " + "\n  ".join(lines))
    if gone or fresh:
        print(f"where this is meant: {sys.argv[0]} {sys.argv[1]} --update, and a new version in cmake/symbols.map for what is new")
        return 1
    print(f"{len(new) - 3} names, types and layouts are as they were")
    return 0


if __name__ == "__main__":
    sys.exit(main())
