"""manual.py: the manual page, docs/cli.md and the shell completions, made from what the program itself says.

    manual.py TRACEALLOC ROOT            checks that the files below ROOT are what would be written; 1 when one is not
    manual.py TRACEALLOC ROOT --write    writes them
"""
import os
import re
import subprocess
import sys

WORDS = {
    "--by": "own line function file module traceback domain process thread",
    "--key": "lineno filename traceback own function module domain thread",
    "--sort": "live total count calls temporary peak",
    "--color": "auto always never",
    "--format": "pprof folded speedscope flame text csv jsonl json python",
    "--signal": "USR1 USR2 HUP PROF URG",
}
ALIASES = {"--limit": "-n", "--output": "-o", "--key": "--by", "--by": "--key"}
WITH_FILE = {"--output", "--spec", "--rules", "--baseline", "--suppressions", "--source"}

STATUS = """0 done; 1 the answer is no (`check` found something wrong, `gate` does not hold); 2 trouble, with one line on standard error.
`run` ends as the program ended; its own: 1 a wrong number of frames, 125 trouble, 126 a program that cannot be traced,
127 no such program."""
ENVIRONMENT = [
    ("TRACEALLOC", "the number of frames for `run` without --nframe; docs/options.md"),
    ("TRACEALLOC_OPTIONS", "more options for the program that `run` starts; docs/options.md"),
    ("TRACEALLOC_LIBRARY", "the library to preload instead of the one beside the program"),
    ("TRACEALLOC_SYMBOLS", "folders with copies of programs and libraries, for lines and names; divided by colons"),
    ("NO_COLOR", "no colours when it is not empty"),
    ("COLUMNS", "the width to fit, on a terminal"),
    ("DEBUGINFOD_URLS", "servers to ask for debug information that is not here"),
]


class Command:
    def __init__(self, program, name):
        text = subprocess.run([program, name, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
        lines = text.splitlines()
        self.name, self.usage, self.summary = name, lines[0].removeprefix("usage: "), lines[1]
        self.help = "\n".join(lines[3:]).rstrip()
        self.options = []
        own = re.sub(r"tracealloc [a-z]+ .*", "", self.help)  # examples may be of other commands
        for found in re.finditer(r"--[a-z][a-z-]*", own + " " + self.usage + " --help"):
            if found.group() not in self.options:
                self.options.append(found.group())
        self.options.sort()


def commands_of(program):
    listing = subprocess.run([program, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return [Command(program, line.split()[0]) for line in listing.splitlines() if line.startswith("  ")]


def markdown(commands):
    parts = ["# The program tracealloc\n",
             "Made from `tracealloc COMMAND --help` by tests/cli/manual.py. For a first walk see "
             "[tutorial.md](tutorial.md).\n",
             "FILE is a recording; `FILE@0` is its first entry, `FILE@-1` or FILE alone the last, `FILE@TEXT`\n"
             "the last with the mark TEXT (tracealloc ctl PID mark TEXT). On a terminal listings\n"
             "are fitted to its width (columns that matter least go first), coloured, and paths shortened; in a pipe they are plain and complete.\n",
             "\n".join(["| command | |", "|---|---|"] + [f"| [{c.name}](#{c.name}) | {c.summary} |" for c in commands]) + "\n"]
    for command in commands:
        indented = "\n".join("    " + line if line else "" for line in [command.usage, "", *command.help.splitlines()])
        parts.append(f"## {command.name}\n\n{command.summary[0].upper()}{command.summary[1:]}.\n\n{indented}\n")
    parts.append(f"## Exit status\n\n{STATUS}\n")
    parts.append("## Environment\n\n" + "\n".join(["| variable | |", "|---|---|"] +
                                                     [f"| `{n}` | {t} |" for n, t in ENVIRONMENT]) + "\n")
    return "\n".join(parts)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def manual(commands):
    parts = ['.TH TRACEALLOC 1 "" "tracealloc" "User Commands"', ".SH NAME",
             "tracealloc \\- trace every allocation of a program, and say who holds its memory", ".SH SYNOPSIS",
             ".B tracealloc", ".I COMMAND", "[\\fIARGUMENT\\fR ...]", ".SH DESCRIPTION",
             "A recording says which call stack asked for which memory.",
             ".I FILE", "names one; \\fIFILE\\fB@0\\fR is its first entry, \\fIFILE\\fR alone the last.", ".SH COMMANDS"]
    for command in commands:
        parts += [f".SS {roff(command.name)}", f".B {roff(command.usage)}", ".PP",
                  roff(command.summary[0].upper() + command.summary[1:] + "."), ".PP", ".nf", roff(command.help), ".fi"]
    parts += [".SH EXIT STATUS", roff(STATUS), ".SH ENVIRONMENT"]
    for name, text in ENVIRONMENT:
        parts += [".TP", f".B {roff(name)}", roff(text)]
    return "\n".join(parts) + "\n"


def bash(commands):
    cases = "\n".join(f"    {c.name}) options='{' '.join(c.options)}' ;;" for c in commands)
    words = "\n".join(f"    {option}) COMPREPLY=($(compgen -W '{values}' -- \"$current\")); return ;;"
                      for option, values in WORDS.items())
    return f"""# bash completion of tracealloc; made by tests/cli/manual.py
_tracealloc() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} options=
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{' '.join(c.name for c in commands)} --help --version' -- "$current"))
        return
    fi
    if [ "$previous" = = ]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    if [ "$current" = = ]; then current=; fi
    case $previous in
{words}
    esac
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) if [ "${{COMP_WORDS[1]}}" = run ]; then COMPREPLY=($(compgen -c -- "$current")); fi
       COMPREPLY+=($(compgen -f -- "$current")) ;;
    esac
}}
complete -o filenames -F _tracealloc tracealloc
"""


def zsh(commands):
    listing = "\n".join(f"        '{c.name}:{c.summary.replace(chr(39), '').replace(':', ' -')}'" for c in commands)
    cases = []
    for command in commands:
        specs = []
        for option in command.options:
            if option in WORDS:
                specs.append(f"'{option}=:value:({WORDS[option]})'")
            elif option in WITH_FILE:
                specs.append(f"'{option}=:file:_files'")
            else:
                specs.append(f"'{option}'")
        rest = "'*::program:_normal'" if command.name == "run" else "'*:recording:_files'"
        cases.append(f"    {command.name}) _arguments {' '.join(specs)} {rest} ;;")
    return f"""#compdef tracealloc
# zsh completion of tracealloc; made by tests/cli/manual.py
_tracealloc() {{
    local -a commands=(
{listing}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{chr(10).join(cases)}
    esac
}}
_tracealloc "$@"
"""


def fish(commands):
    lines = ["# fish completion of tracealloc; made by tests/cli/manual.py"]
    for command in commands:
        summary = command.summary.replace("'", "")
        lines.append(f"complete -c tracealloc -n __fish_use_subcommand -f -a {command.name} -d '{summary}'")
        for option in command.options:
            line = f"complete -c tracealloc -n '__fish_seen_subcommand_from {command.name}' -l {option[2:]}"
            if option in WORDS:
                line += f" -x -a '{WORDS[option]}'"
            elif option in WITH_FILE:
                line += " -r"
            lines.append(line)
    return "\n".join(lines) + "\n"


def check_options(program, commands):
    """What --help names is what is accepted, of all options that any command has; answers how many differ."""
    known, bad = sorted({option for command in commands for option in command.options}), 0
    for command in commands:
        for option in known:
            said = subprocess.run([program, command.name, option], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, check=False).stdout.decode()
            if any(other != option and other.startswith(option) for other in command.options):
                continue  # an abbreviation of another option here
            named = option in command.options or option in ALIASES and re.search(ALIASES[option] + r"\b", command.help) is not None
            if ("unknown option" in said) == named:
                print(f"{command.name} {option}: named by --help: {named}; says: {said}")
                bad += 1
    return bad


def main():
    program, root = os.path.abspath(sys.argv[1]), sys.argv[2]
    commands, bad = commands_of(program), 0
    files = {"docs/cli.md": markdown, "docs/man/tracealloc.1": manual,
             "analysis/cli/completion/tracealloc.bash": bash, "analysis/cli/completion/tracealloc.zsh": zsh,
             "analysis/cli/completion/tracealloc.fish": fish}
    for name, make in files.items():
        path, text = os.path.join(root, name), make(commands)
        if "--write" in sys.argv:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                print(f"{name} is not what the program says: python3 tests/cli/manual.py PROGRAM . --write")
                bad = 1
    bad = 1 if check_options(program, commands) else bad
    for command in commands:
        example = [line for line in command.help.splitlines() if line.startswith("  tracealloc ")]
        if not example:
            print(f"{command.name} --help has no example")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
