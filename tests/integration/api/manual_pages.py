"""manual_pages.py: the manual pages of section 3: every prototype is that of the header, every page is formatted without a
word from groff, and refers to pages that are there."""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
OTHERS = {"malloc(3)", "free(3)", "realloc(3)", "mmap(2)", "backtrace(3)", "snprintf(3)", "tracealloc(1)"}


def prototypes():
    found = {}
    for header in glob.glob(f"{ROOT}/include/*.h") + glob.glob(f"{ROOT}/include/tracealloc/*.h"):
        text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
        for declaration in re.findall(r"TA_API ([^;]*);", text):
            declaration = re.sub(r"\s*__attribute__\s*\(\(.*\)\)", "", " ".join(declaration.split()))
            found[re.search(r"\b(ta_\w+)\(", declaration).group(1)] = declaration + ";"
    return found


def check(path, declared, known):
    text = open(path, encoding="utf-8").read()
    name = os.path.basename(path)[:-2]
    names = re.search(r"\.SH NAME\n(.*?) \\- ", text).group(1).split(", ")
    troubles = [] if name in names else [f"is not one of {names}"]
    shown = re.findall(r"^\.B (.*\bta_\w+\(.*\);)$", text.split(".SH DESCRIPTION")[0], flags=re.M)
    for prototype in shown:
        plain = prototype.replace("\\-", "-").replace("\\(dq", '"')
        function = re.search(r"\b(ta_\w+)\(", plain).group(1)
        if declared.get(function) != plain:
            troubles.append(f"says {plain}, the header {declared.get(function)}")
    for prototype in shown[:1]:
        if not any(function in prototype for function in names + ["ta_error_text"]):
            troubles.append(f"does not name {prototype}")
    for other, section in re.findall(r'^\.BR "?([\w\\-]+)"? \((\d)\)', text, flags=re.M):
        other = other.replace("\\-", "-")
        if f"{other}({section})" not in OTHERS and other not in known and other not in declared:
            troubles.append(f"refers to {other}({section})")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != 0 or done.stdout:
        troubles.append(done.stdout.decode())
    return [f"{name}(3) {trouble}" for trouble in troubles]


def main():
    if subprocess.run(["which", "groff"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        print("no groff here")
        return 77
    declared, pages = prototypes(), sorted(glob.glob(f"{ROOT}/docs/man/*.3"))
    known = {os.path.basename(page)[:-2] for page in pages}
    troubles = [trouble for page in pages for trouble in check(page, declared, known)]
    print("\n".join(troubles + [f"{len(pages)} pages, {len(troubles)} troubles"]))
    return len(troubles) > 0 or len(pages) < 12


if __name__ == "__main__":
    sys.exit(main())
