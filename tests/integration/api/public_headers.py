"""public_headers.py: which headers are public: all that are installed, so that none can be forgotten. Those that declare
functions are the C interface; the others have macros alone."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
INCLUDE = os.path.join(ROOT, "include")


def _text(header):
    with open(os.path.join(INCLUDE, header), encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


def _functions(text):
    for declaration in re.findall(r"^TA_API ([^;]*)", text, flags=re.M):
        yield re.search(r"\b(ta_\w+)\(", declaration).group(1)


def headers():
    """As #include takes them, those with functions, the one of tracing first."""
    found = []
    for folder, _, names in os.walk(INCLUDE):
        for name in names:
            header = os.path.relpath(os.path.join(folder, name), INCLUDE)
            if name.endswith(".h") and any(_functions(_text(header))):
                found.append(header)
    return sorted(found, key=lambda header: (header.count("/"), header))


def functions():
    return sorted({name for header in headers() for name in _functions(_text(header))})
