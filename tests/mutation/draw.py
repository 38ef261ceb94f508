"""draw.py: mutants that no list has, drawn by chance from the sources of a module.

One small change of one place in a function's body: a comparison, a connective, a sum, a number, a result, a statement
that is left out. The same seed draws the same ones from the same sources. Some of what is drawn cannot be noticed, since
it changes nothing that anybody sees (a hint for the compiler, the size of a first room): look before you count it.

Not drawn is what these builds cannot show: comments, literals, assertions, code that only other builds have, which of
two equal numbers is the larger, and a free that is left out (the leak sanitizer's, in the asan preset)."""
import random
import re
from pathlib import Path

import lists

RULES = [  # pattern, what it becomes
    (r" < ", [" <= ", " >= "]),
    (r" <= ", [" < "]),
    (r" > ", [" >= ", " <= "]),
    (r" >= ", [" > "]),
    (r" == ", [" != "]),
    (r" != ", [" == "]),
    (r" && ", [" || "]),
    (r" \|\| ", [" && "]),
    (r" \+ 1\b", [""]),
    (r" - 1\b", [""]),
    (r" \+ (?!1\b)", [" - "]),
    (r" - (?!1\b)", [" + "]),
    (r" \+= ", [" -= "]),
    (r" -= ", [" += "]),
    (r"\breturn -1;", ["return 0;"]),
    (r"\breturn 0;", ["return -1;"]),
    (r"\breturn 1;", ["return 0;"]),
    (r"\breturn NULL;", ["return (void *)1;"]),
    (r"\bcontinue;", ["break;"]),
    (r" (?:[2-9]|[1-9][0-9]+)(?=[;,) ])", ["number"]),
    (r"(?:(?<=\()|(?<= ))!(?=[a-z_(])", [""]),
    (r"^    +(?!return|break|continue|goto|case|default)[a-z_][\w>.\-\[\]*]*(?: [-+|&]?= [^;=]+|\([^;]*\));$", ["leave out"]),
]


OTHER_BUILDS = re.compile(r"#\s*(el)?if\s+(TA_CHECKS|TRACEALLOC_CHECKING|defined\(?\s*__aarch64__|defined\(?\s*__SANITIZE)")
THESE_BUILDS = re.compile(r"#\s*(el)?if\s+defined\(?\s*__x86_64__")
NOT_SHOWN = re.compile(r"TA_CHECK|_Static_assert|__builtin_prefetch|^ +(\w*_)?free\(")
VALUE = r"[\w>.\-\[\]]+(?: [-+] [\w>.\-\[\]]+)?"
LARGER = re.compile(rf"(?P<a>{VALUE})(?P<op> [<>]=? )(?P<b>{VALUE}) \? (?:\([\w ]+\))?"
                    r"(?:(?P=a) : (?:\([\w ]+\))?(?P=b)|(?P=b) : (?:\([\w ]+\))?(?P=a))(?![\w>.\[(]| [-+*/])")


def masked(text):
    """The text with comments, literals, directives and what other builds have blanked, place for place."""
    def blank(match):
        return re.sub(r"[^\n]", "\0", match.group(0))
    lines, around = text.split("\n"), []  # of each #if around the line: is this branch blanked, and are those that follow
    for at, line in enumerate(lines):
        if re.match(r"#\s*if", line):
            around.append((bool(OTHER_BUILDS.match(line)), bool(THESE_BUILDS.match(line))))
        elif re.match(r"#\s*el", line):
            _, rest = around[-1]
            around[-1] = (rest or bool(OTHER_BUILDS.match(line)), rest or bool(THESE_BUILDS.match(line)))
        elif re.match(r"#\s*endif", line):
            around.pop()
        elif any(blanked for blanked, _ in around):
            lines[at] = line if line in ("{", "}") else "\0" * len(line)
    text = "\n".join(lines)
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^#(?:[^\n]*\\\n)*[^\n]*", blank, text,
                  flags=re.S | re.M)


def bodies(text):
    """Where the bodies of functions begin and end: their braces stand at the left edge."""
    for match in re.finditer(r"^\{\n(.*?)^\}$", text, flags=re.S | re.M):
        yield match.start(1), match.end(1)


def places(text):
    """(start, end, new text) of every change that could be made."""
    shown = masked(text)
    ties = {match.start("op") for match in LARGER.finditer(shown)}
    for begin, end in bodies(shown):
        for pattern, replacements in RULES:
            for match in re.compile(pattern, re.M).finditer(shown, begin, end):
                for new in replacements:
                    if new == "number":
                        new = f" {int(match.group(0)) + 1}"
                    elif new == "leave out":
                        new = re.match(r" +", match.group(0)).group(0) + ";"
                    if match.start() in ties and new.strip("= ") == match.group(0).strip("= "):
                        continue
                    if not NOT_SHOWN.search(shown[shown.rfind("\n", 0, match.start()) + 1:match.end()]):
                        yield match.start(), match.end(), new


def nearest(tests, path):
    """The tests whose names have words of the file's come first: they die soonest."""
    words = set(re.split(r"_", Path(path).stem)) - {"cmd"}
    return sorted(tests, key=lambda test: -len(words & set(test.split("_"))))


def draw(source, suite, module, count, seed):
    """`count` mutants of the module, at most two of a file until there are no others."""
    files = sorted(path for folder in suite.sources for path in
                   ([source / folder] if (source / folder).is_file() else
                    list((source / folder).glob("*.c")) + list((source / folder).glob("*.h"))))
    chance = random.Random(f"{module} {seed}")
    found = [(path, *place) for path in files for place in places(path.read_text())]
    chance.shuffle(found)
    per_file, drawn = {}, []
    for path, start, end, new in found:
        if len(drawn) == count:
            break
        if per_file.get(path, 0) == 2:
            continue
        per_file[path] = per_file.get(path, 0) + 1
        text, name = path.read_text(), str(path.relative_to(source))
        line = text.count("\n", 0, start) + 1
        begin, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        old = text[begin:stop]
        drawn.append(lists.Mutant(module, f"{path.stem}-{line}-{start - begin}", name,
                                  nearest(suite.tests, name), "", old,
                                  text[begin:start] + new + text[end:stop], at=begin))
    return drawn
