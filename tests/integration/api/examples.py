"""examples.py: docs/api.md: every function of the public headers is in it, and called by an example; the examples build
and print what stands below them.

    examples.py LIBRARY-FOLDER
"""
import os
import re
import subprocess
import sys
import tempfile

import public_headers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def exported(libraries):
    for library in ("libtracealloc.so", "libtracealloc-analysis.so"):
        lines = subprocess.run(["nm", "-D", "--defined-only", f"{libraries}/{library}"], stdout=subprocess.PIPE, check=True,
                               text=True).stdout.splitlines()
        names = (line.split()[-1].partition("@")[0] for line in lines)
        yield from (name for name in names if name.startswith("ta_"))


def main():
    libraries = os.path.abspath(sys.argv[1])
    page = open(f"{ROOT}/docs/api.md", encoding="utf-8").read()
    examples = re.findall(r"```c\n(.*?)```\n\n```text\n(.*?)```", page, flags=re.S)
    code = "\n".join(source for source, _ in examples)
    tables = re.sub(r"```.*?```", "", page, flags=re.S)
    names = public_headers.functions()
    failures = 0
    for name in sorted(set(exported(libraries)) - set(names)):
        failures += 1
        print(f"{name} is exported, but no header declares it")
    for header in public_headers.headers():
        if f"`{header}`" not in page:
            failures += 1
            print(f"docs/api.md does not name {header}")
    for name in names:
        # a table may say ta_domain_malloc, `_calloc`
        if not re.search(rf"\b{name}\b", tables) and not any(
                name.endswith(tail) and re.search(rf"`{tail}\b", tables) for tail in
                {name[i:] for i in range(len(name)) if name[i] == "_"}):
            failures += 1
            print(f"docs/api.md does not say what {name} is")
        if not re.search(rf"\b{name}\b", code):
            failures += 1
            print(f"no example of docs/api.md calls {name}")
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    for name in ("TRACEALLOC", "TRACEALLOC_OPTIONS", "LD_PRELOAD", "DEBUGINFOD_URLS"):
        environment.pop(name, None)
    for number, (source, expected) in enumerate(examples):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/example.c", "w", encoding="utf-8") as file:
                file.write(source)
            subprocess.run(["cc", "-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-Werror",
                            f"-I{ROOT}/include", f"{folder}/example.c", "-o", f"{folder}/example", f"-L{libraries}",
                            "-ltracealloc", "-ltracealloc-analysis"], check=True)
            done = subprocess.run([f"{folder}/example"], cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
            said = done.stdout.decode()
            if done.returncode != 0 or said != expected:
                failures += 1
                print(f"example {number + 1} ended with {done.returncode} and said\n{said}instead of\n{expected}")
    print(f"{len(examples)} examples, {len(names)} functions, {failures} failures")
    return failures != 0 or len(examples) < 7


if __name__ == "__main__":
    sys.exit(main())
