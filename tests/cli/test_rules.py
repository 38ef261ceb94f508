"""test_rules.py: rules for domains by C++ names and by source folders, from the text to the figures.

    test_rules.py TRACEALLOC LIBRARY
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

SOURCES = {
    "src/net/buffer.hpp": "#include <cstdlib>\n"
                          "namespace net {\n"
                          "inline char *inlined_buffer(std::size_t n) { return static_cast<char *>(std::malloc(n)); }\n"
                          "char *buffer(std::size_t n);\n}\n",
    "src/net/buffer.cpp": '#include "buffer.hpp"\n'
                          "namespace net { __attribute__((noinline)) char *buffer(std::size_t n) {\n"
                          "    return static_cast<char *>(std::malloc(n)); } }\n",
    "src/parser/lexer.cpp": "#include <string>\n#include <vector>\n"
                            "namespace parser {\n"
                            "struct lexer { std::vector<int> tokens;\n"
                            "    __attribute__((noinline)) void next(int n) { tokens.push_back(n); } };\n"
                            "template <typename T> struct table { __attribute__((noinline)) T *add(int n) { return new T[n]; } };\n"
                            "__attribute__((noinline)) int parse(int n) {\n"
                            "    static lexer &kept = *new lexer; for (int i = 0; i < n; i++) kept.next(i);\n"
                            "    static table<double> doubles; return doubles.add(n) != nullptr; }\n}\n",
    "src/main.cpp": '#include "net/buffer.hpp"\n#include <unistd.h>\n'
                    "namespace parser { int parse(int n); }\n"
                    "int main() { char *volatile kept = net::buffer(3000); kept = net::inlined_buffer(500);\n"
                    "    int done = parser::parse(1000); kept = static_cast<char *>(std::malloc(77));\n"
                    "    return done == 1 && kept != nullptr ? 0 : 1; }\n",
}


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        cls.folder = cls.home.name
        for name, text in SOURCES.items():
            os.makedirs(os.path.dirname(f"{cls.folder}/{name}"), exist_ok=True)
            cls.write(name, text)
        subprocess.run(["c++", "-g", "-O1", "-o", "server"] + [name for name in SOURCES if name.endswith(".cpp")],
                       cwd=cls.folder, check=True)
        subprocess.run(["strip", "-o", "stripped", "server"], cwd=cls.folder, check=True)
        cls.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACEALLOC")}
        cls.environment.update(XDG_CACHE_HOME=f"{cls.folder}/cache", TRACEALLOC_LIBRARY=LIBRARY)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    @classmethod
    def write(cls, name, text):
        with open(f"{cls.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def do(self, *arguments, status=0, program=TRACEALLOC, **variables):
        done = subprocess.run([program, *arguments], cwd=self.folder, env={**self.environment, **variables},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, status, done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode() + done.stderr.decode()

    def read(self, name):
        with open(f"{self.folder}/{name}", encoding="utf-8") as file:
            return file.read()

    def live(self, recording):
        """Bytes by name of domain."""
        return {row["name"]: row["live_bytes"] for row in json.loads(self.do("domains", recording, "--json"))}

    def preloaded(self, rules, program="./server"):
        """Without tracealloc run, which would compile the rules."""
        self.do(program=program, TRACEALLOC="50", TRACEALLOC_OPTIONS=f"rules={self.folder}/{rules},output=out.ta",
                LD_PRELOAD=LIBRARY)
        return self.live("out.ta")

    def test_names_of_cxx_functions(self):
        self.write("names.rules", '5 parser function=parser::*\n6 net function="net::buffer(unsigned long)",nobody::*\n')
        live = self.preloaded("names.rules")
        self.assertEqual(live["net"], 3000)
        self.assertGreaterEqual(live["parser"], 4000 + 8000)  # the tokens, grown by doubling, and a table of doubles

    def test_check_lists_what_each_rule_names(self):
        self.write("check.rules", "# by name, by folder\n5 parser function=parser::*\n6 net file=src/net/*\n7 none function=nobody::*\n")
        said = self.do("rules", "check", "check.rules", "server", status=1)
        self.assertIn("check.rules:2  5 parser: ", said)
        self.assertIn("    parser::lexer::next  ", said)
        self.assertIn("src/parser/lexer.cpp:5\n", said)
        self.assertIn("parser::table<double>::add", said)
        self.assertIn("net::inlined_buffer", said)
        self.assertIn("buffer.hpp:3  (inlined 1 time)", said)
        self.assertIn("check.rules:4  7 none: nothing", said)
        self.write("check.rules", "6 net file=src/net/*\n9 all module=server\n")
        rows = json.loads(self.do("rules", "check", "check.rules", "server", "--json"))
        self.assertEqual({(row["function"], row["domain"]) for row in rows},
                         {("net::buffer(unsigned long)", 6), ("net::inlined_buffer(unsigned long)", 6)})

    def test_folders_of_sources_compiled_by_run(self):
        self.write("files.rules", "6 net file=src/net/*\n5 parser file=src/parser/*,include/*\n")
        self.do("run", "-q", "-o", "run.ta", "--rules", "files.rules", "--", "./server")
        live = self.live("run.ta")
        self.assertEqual(live["net"], 3500)  # the inlined call in main, too
        self.assertGreaterEqual(live["parser"], 12000)
        kept = os.listdir(f"{self.folder}/cache/tracealloc")
        self.do("run", "-q", "-o", "run.ta", "--rules", "files.rules", "--", "./server")
        self.assertEqual(os.listdir(f"{self.folder}/cache/tracealloc"), kept)  # made once

    def test_compiled_rules_serve_a_stripped_program(self):
        self.write("files.rules", "6 net file=src/net/*\n5 parser function=parser::*\n")
        self.do("rules", "compile", "files.rules", "server", "-o", "compiled.rules")
        for program in ("./server", "./stripped"):
            live = self.preloaded("compiled.rules", program)
            self.assertEqual(live["net"], 3500)
            self.assertGreaterEqual(live["parser"], 12000)
        text = self.read("compiled.rules")
        self.write("other.rules", text.replace("@object ", "@object 00"))  # of another build
        self.assertEqual(self.preloaded("other.rules")["net"], 0)
        self.do("rules", "compile", "compiled.rules", "server", "-o", "again.rules")
        self.assertEqual(self.read("again.rules"), text)

    def test_rule_marked_outermost_holds_what_is_inlined(self):
        self.write("outermost.rules", "4 main function=main outermost\n6 net file=src/net/*\n")
        self.do("rules", "compile", "outermost.rules", "server", "-o", "compiled.rules")
        live = self.preloaded("compiled.rules")
        self.assertEqual((live["net"], live["main"] >= 3500 + 77), (0, True))

    def test_text_with_folders_alone_is_refused_by_the_program(self):
        self.write("files.rules", "6 net file=src/net/*\n")
        said = self.do(program="./server", status=1, TRACEALLOC="50", LD_PRELOAD=LIBRARY,
                       TRACEALLOC_OPTIONS=f"rules={self.folder}/files.rules")
        self.assertIn("tracealloc rules compile", said)

    def test_without_memory_it_says_so_and_does_not_crash(self):
        self.write("right.rules", "6 symbols file=*symbols*\n")
        told = set()
        for mebibytes in range(70, 108, 2):  # less is not enough for the thread that reads
            limit = mebibytes << 20
            done = subprocess.run([TRACEALLOC, "rules", "check", "right.rules", TRACEALLOC], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            self.assertIn(done.returncode, (0, 2), (mebibytes, done.stderr))
            self.assertRegex(done.stderr.decode(), r"\A(tracealloc: [^\n]+\n)?\Z")
            told.add("answer" if done.returncode == 0 else "limit" if b"raise the limit of memory" in done.stderr else "other")
        self.assertLessEqual({"answer", "limit"}, told)

    def test_what_is_wrong_is_said(self):
        self.write("wrong.rules", "6 net fil=src/net/*\n")
        for arguments in (("check", "wrong.rules", "server"), ("compile", "wrong.rules", "server")):
            self.assertIn("wrong.rules:1:7: expected module=", self.do("rules", *arguments, status=2))
        self.assertIn("wrong.rules:1:7", self.do("run", "--rules", "wrong.rules", "--", "./server", status=125))
        self.write("right.rules", "6 net file=src/net/*\n")
        self.assertIn("none: No such file", self.do("rules", "check", "right.rules", "none", status=2))
        self.assertIn("not a program", self.do("rules", "check", "right.rules", "right.rules", status=2))
        self.assertIn("check or compile", self.do("rules", "bogus", "right.rules", "server", status=2))
        self.assertIn("symbols alone", self.do("rules", "compile", "right.rules", "stripped", "-o", "out.rules"))
        subprocess.run(["c++", "-g", "-Wl,--build-id=none", "-o", "nameless", "-x", "c++", "-"], cwd=self.folder, check=True,
                       input=b"int main() { return 0; }")
        self.assertIn("no build id", self.do("rules", "compile", "right.rules", "nameless", status=2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
