"""The generated inputs: files that are the same on every machine, made once per size below build/bench/inputs."""
import random
from pathlib import Path


def _write(path, pieces):
    part = path.with_suffix(path.suffix + ".part")
    with open(part, "w", encoding="ascii") as file:
        file.writelines(pieces)
    part.rename(path)


def _made(folder, name, make, size):
    """The file `name` of a size; made by make(random, size), which yields text."""
    stem, dot, suffix = name.partition(".")
    path = Path(folder) / f"{stem}-{size}{dot}{suffix}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, make(random.Random(20240229), size))
    return str(path)


def _c_source(rng, functions):
    yield "typedef struct node { struct node *next; int key; double weight; char name[32]; } node;\n"
    yield "extern void *allocate(unsigned long); extern void use(node *); extern int table[64];\n"
    for n in range(functions):
        yield f"\nstatic int helper_{n}(node *head, int limit)\n{{\n    int sum = {rng.randrange(1000)};\n"
        yield "    for (node *at = head; at; at = at->next) {\n"
        yield f"        if (at->key > limit) sum += at->key * {rng.randrange(2, 99)} + table[at->key & 63];\n"
        yield f"        else at->weight = at->weight * {rng.randrange(1, 9)}.5 + sum % {rng.randrange(3, 77)};\n    }}\n"
        yield f"    switch (sum & 7) {{\n"
        for case in range(6):
            yield f"    case {case}: sum ^= table[(sum >> {case}) & 63] + {rng.randrange(9999)}; break;\n"
        yield "    default: sum = -sum;\n    }\n    return sum;\n}\n"
        yield f"int function_{n}(int count)\n{{\n    node *list = 0;\n    for (int i = 0; i < count; i++) {{\n"
        yield "        node *fresh = allocate(sizeof(node));\n        fresh->next = list;\n"
        yield f"        fresh->key = i * {rng.randrange(3, 999)} % 1009;\n        fresh->weight = i / 3.0;\n"
        yield "        list = fresh;\n        use(fresh);\n    }\n"
        yield f"    return helper_{n}(list, {rng.randrange(500)})" + (f" + helper_{n - 1}(list, 7)" if n else "") + ";\n}\n"


def _cxx_source(rng, classes):
    yield "#include <algorithm>\n#include <functional>\n#include <map>\n#include <memory>\n#include <string>\n"
    yield "#include <unordered_map>\n#include <vector>\n"
    for n in range(classes):
        key = rng.choice(["int", "std::string", "long"])
        yield f"\ntemplate <class T, int N> struct box_{n} {{ T value[N]; T sum() const {{ T s{{}}; "
        yield "for (auto &v : value) s = s + v; return s; } };\n"
        yield f"class item_{n} {{\n    std::map<{key}, std::vector<std::string>> index_;\n"
        yield f"    std::unordered_map<std::string, std::shared_ptr<item_{n}>> children_;\npublic:\n"
        yield f"    virtual ~item_{n}() = default;\n    void add(const {key} &k, std::string v) "
        yield "{ index_[k].push_back(std::move(v)); }\n"
        yield f"    double total() const {{ box_{n}<double, {rng.randrange(2, 9)}> b{{}}; double t = b.sum(); "
        yield "for (auto &[k, list] : index_) t += std::count_if(list.begin(), list.end(), "
        yield f"[&](const std::string &s) {{ return s.size() > {rng.randrange(30)}; }}); return t; }}\n"
        yield f"    std::function<int(int)> pick() {{ return [this](int x) {{ return x + (int)children_.size(); }}; }}\n}};\n"
        yield f"double use_{n}(item_{n} &i) {{ i.add({key}(), \"text\"); return i.total() + i.pick()({n}); }}\n"


def _xml(rng, items):
    yield "<?xml version=\"1.0\"?>\n<catalogue>\n"
    for n in range(items):
        yield f" <item id=\"i{n}\" kind=\"k{rng.randrange(40)}\"><name>name {rng.randrange(10**6)}</name>"
        yield f"<price currency=\"EUR\">{rng.randrange(10**5) / 100}</price>"
        yield "".join(f"<tag v=\"{rng.randrange(100)}\"/>" for _ in range(rng.randrange(4)))
        yield f"<note>some text &amp; more of it {n}</note></item>\n"
    yield "</catalogue>\n"


def _json(rng, items):
    yield "["
    for n in range(items):
        yield ",\n" if n else "\n"
        yield f"{{\"id\":{n},\"kind\":\"k{rng.randrange(40)}\",\"price\":{rng.randrange(10**5) / 100},"
        yield f"\"tags\":[{','.join(str(rng.randrange(100)) for _ in range(4))}],\"name\":\"name {rng.randrange(10**6)}\"}}"
    yield "]\n"


def _sql(rng, rows):
    yield "CREATE TABLE a(id INTEGER PRIMARY KEY, k INT, name TEXT, w REAL);\nCREATE INDEX ak ON a(k, name);\n"
    yield "CREATE TABLE b(a INT, note TEXT);\nBEGIN;\n"
    for n in range(rows):
        yield f"INSERT INTO a VALUES({n},{rng.randrange(200)},'name {rng.randrange(10**6)}',{rng.randrange(10**6) / 7:.4f});\n"
        if n % 2:
            yield f"INSERT INTO b VALUES({rng.randrange(rows)},'note {n} '||hex({n * 31}));\n"
    yield "COMMIT;\nCREATE INDEX ba ON b(a);\n"
    yield "SELECT k, count(*), group_concat(substr(name, 6), '-') FROM a GROUP BY k ORDER BY 2 DESC LIMIT 3;\n"
    yield "SELECT count(*), max(length(x)) FROM (SELECT a.name||b.note AS x FROM a JOIN b ON b.a = a.id ORDER BY x);\n"
    yield "SELECT count(DISTINCT upper(name)||k) FROM a;\n"


def _smt(rng, size):
    yield "(set-logic QF_LIA)\n"
    count = 14
    for n in range(count):
        yield f"(declare-const x{n} Int)\n(assert (and (>= x{n} 0) (<= x{n} {size})))\n"
    for _ in range(22):
        chosen = rng.sample(range(count), 4)
        terms = " ".join(f"(* {rng.randrange(-9, 10) or 1} x{v})" for v in chosen)
        yield f"(assert (or (>= (+ {terms}) {rng.randrange(size)}) (<= x{chosen[0]} x{chosen[1]})))\n"
    for a in range(count):
        for b in range(a):
            yield f"(assert (not (= x{a} x{b})))\n"
    for n in range(size):
        a, b, c = rng.sample(range(count), 3)
        yield f"(push)\n(assert (= (+ (* {n % 7 + 2} x{a}) x{b}) (+ (* {n % 5 + 1} x{c}) {n})))\n(check-sat)\n(pop)\n"


def _postscript(rng, pages):
    yield "%!PS-Adobe-3.0\n/Times-Roman findfont 9 scalefont setfont\n"
    for page in range(pages):
        for line in range(60):
            yield f"40 {780 - line * 12} moveto (page {page} line {line}: {rng.randrange(10**9)} words of text) show\n"
        for _ in range(120):
            points = [rng.randrange(40, 560) for _ in range(8)]
            yield "newpath %d %d moveto %d %d %d %d %d %d curveto " % tuple(points)
            yield f"{rng.random():.3f} {rng.random():.3f} {rng.random():.3f} setrgbcolor {'fill' if rng.random() < .4 else 'stroke'}\n"
        yield "showpage\n"


def _words(rng, lines):
    for _ in range(lines):
        yield " ".join(f"word{rng.randrange(3000)}" for _ in range(10)) + "\n"


MAKERS = {"source.c": _c_source, "source.cpp": _cxx_source, "items.xml": _xml, "items.json": _json, "rows.sql": _sql,
          "problem.smt2": _smt, "pages.ps": _postscript, "words.txt": _words}


def made(folder, name, size):
    return _made(folder, name, MAKERS[name], size)
