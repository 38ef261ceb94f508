"""draw.py: mutants that no list has, drawn by chance from the sources of a module.

One small change of one place in a function's body: a comparison, a connective, a sum, a number, a result, a statement
that is left out. The same seed draws the same ones from the same sources. Some of what is drawn cannot be noticed, since
it changes nothing that anybody sees (a hint for the compiler, the size of a first room): look before you count it."""
import random
import re

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


def masked(text):
    """The text with comments, literals and directives blanked, place for place."""
    def blank(match):
        return re.sub(r"[^\n]", "\0", match.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^#(?:[^\n]*\\\n)*[^\n]*", blank, text,
                  flags=re.S | re.M)


def bodies(text):
    """Where the bodies of functions begin and end: their braces stand at the left edge."""
    for match in re.finditer(r"^\{\n(.*?)^\}$", text, flags=re.S | re.M):
        yield match.start(1), match.end(1)


def places(text):
    """(start, end, new text) of every change that could be made."""
    shown = masked(text)
    for begin, end in bodies(shown):
        for pattern, replacements in RULES:
            for match in re.compile(pattern, re.M).finditer(shown, begin, end):
                for new in replacements:
                    if new == "number":
                        new = f" {int(match.group(0)) + 1}"
                    elif new == "leave out":
                        new = re.match(r" +", match.group(0)).group(0) + ";"
                    if "TA_CHECK" not in shown[shown.rfind("\n", 0, match.start()):match.end()]:
                        yield match.start(), match.end(), new


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
        drawn.append(lists.Mutant(module, f"{path.stem}-{line}-{start - begin}", name, suite.tests, "", old,
                                  text[begin:start] + new + text[end:stop], at=begin))
    return drawn
