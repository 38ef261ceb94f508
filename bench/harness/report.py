"""From a run's rows to ratios, tables, plots and docs/performance.md. Measures nothing."""
import csv
import json
import math
from pathlib import Path
from statistics import median

from . import plots

METRICS = (("cpu_total", "CPU time"), ("wall", "wall time"), ("rss_kib", "peak memory"))
SMALLEST_CPU = 0.05  # seconds: below that a ratio says nothing about steady state, and is marked


def geometric_mean(values):
    values = [value for value in values if value and value > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def summarise(run):
    """{(subject, configuration, size): figures}: minima over the repeats, the median and the spread of the CPU time."""
    grouped = {}
    for row in run["rows"]:
        grouped.setdefault((row["subject"], row["configuration"], row["size"]), []).append(row)
    cells = {}
    for key, rows in grouped.items():
        cell = {metric: min(row[metric] for row in rows) for metric, _ in METRICS}
        cell["rss_kib"] = median(row["rss_kib"] for row in rows)
        cell["helper_rss_kib"] = max(row["helper_rss_kib"] for row in rows)
        cell["cpu_median"] = median(row["cpu_total"] for row in rows)
        cell["spread"] = (cell["cpu_median"] - cell["cpu_total"]) / cell["cpu_total"] if cell["cpu_total"] else 0
        cell["output_bytes"] = max(row["output_bytes"] for row in rows)
        cell["runs"] = len(rows)
        answers = [row["answer"] for row in rows if row.get("answer") is not None]
        cell["answer"] = min(answers) if answers else None
        for extra in ("throughput", "p99_ms"):
            values = [row[extra] for row in rows if extra in row]
            if values:
                cell[extra] = max(values) if extra == "throughput" else min(values)
        cell["digests"] = {row.get("digest", "") for row in rows}
        cells[key] = cell
    for (subject, configuration, size), cell in cells.items():
        base = cells.get((subject, "untraced", size))
        cell["ratios"] = {metric: cell[metric] / base[metric] for metric, _ in METRICS if base and base[metric]} if base else {}
        if base and cell["ratios"].get("rss_kib"):
            cell["ratios"]["rss_with_helper"] = (cell["rss_kib"] + cell["helper_rss_kib"]) / base["rss_kib"]
        cell["same_output"] = not base or cell["digests"] == base["digests"]
    return cells


def _size_of(run, subject, configuration):
    """The size that counts for this pair: the run's, where there is one."""
    sizes = {row["size"] for row in run["rows"] + run["troubles"]
             if (row["subject"], row["configuration"]) == (subject, configuration)}
    return run["size"] if run["size"] in sizes or not sizes else sizes.pop()


def _groups(run):
    return [(title, names) for title, names in (
        ("programs", [s["name"] for s in run["subjects"] if s["group"] in ("program", "server")]),
        ("micro", [s["name"] for s in run["subjects"] if s["group"] == "micro"])) if names]


def means(run, cells):
    """{configuration: {group: {metric: geometric mean, "worst": …}}}"""
    result = {}
    for configuration in run["configurations"]:
        name = configuration["name"]
        for group, subjects in _groups(run):
            keys = [(s, name, _size_of(run, s, name)) for s in subjects]
            got = [(key[0], cells[key]) for key in keys if key in cells and cells[key]["ratios"]]
            if not got:
                continue
            entry = {metric: geometric_mean([cell["ratios"].get(metric) for _, cell in got]) for metric, _ in METRICS}
            entry["worst"] = max(((cell["ratios"].get("cpu_total", 0), s) for s, cell in got), default=(0, ""))
            entry["count"] = len(got)
            result.setdefault(name, {})[group] = entry
    return result


def _number(value, places=2):
    return "" if value is None else f"{value:.{places}f}"


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join([" --- "] + [" ---: "] * (len(head) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _trouble_of(run):
    return {(t["subject"], t["configuration"], t["size"]): t["what"] for t in run["troubles"]}


def _ratio_table(run, cells, subjects, metric):
    """Subjects down, configurations across."""
    troubles = _trouble_of(run)
    shown = [c for c in run["configurations"] if any(row["configuration"] == c["name"] for row in run["rows"])
             or any(t["configuration"] == c["name"] for t in run["troubles"])]
    shown = [c for c in shown if c["name"] != "untraced"]
    rows = []
    for subject in subjects:
        base = cells.get((subject, "untraced", run["size"]))
        unit = "" if base is None else f"{base[metric] / 1024:.0f} MiB" if metric == "rss_kib" else f"{base[metric]:.2f} s"
        row = [subject, unit]
        for configuration in shown:
            key = (subject, configuration["name"], _size_of(run, subject, configuration["name"]))
            if key in cells:
                value = cells[key]["ratios"].get(metric)
                mark = "" if cells[key]["same_output"] else " (output differs)"
                row.append(_number(value) + mark)
            else:
                trouble = troubles.get(key, "")
                row.append("crash" if "crashed" in trouble else "too long" if "longer than" in trouble
                           else "failed" if trouble else "")
        rows.append(row)
    mean = ["**geometric mean**", ""]
    for configuration in shown:
        keys = [(s, configuration["name"], _size_of(run, s, configuration["name"])) for s in subjects]
        mean.append(f"**{_number(geometric_mean([cells[key]['ratios'].get(metric) for key in keys if key in cells]))}**")
    return _table(["subject", "untraced"] + [c["name"] for c in shown], rows + [mean])


def markdown(run, cells):
    m = run["machine"]
    noise = [cell["spread"] for (_, c, s), cell in cells.items() if c == "untraced" and s == run["size"] and cell["runs"] > 1]
    again = means(run, cells).get("untraced-again", {})
    text = [
        "# Performance\n",
        "What tracing costs real programs, measured against the untraced build (the same library on the same mimalloc, "
        "without headers and tracing) in the same run. This file is generated: `./dev bench --full --write-docs`.\n",
        f"- begun {run['begun']}, {run['minutes']:.0f} minutes, commit {run['commit']}{' with changes' if run['changed'] else ''}, "
        f"`{run['command']}`",
        f"- {m['processor']}, {m['processors']} processors, {m['memory_mib']} MiB, {m['system']}, Linux {m['kernel']}, {m['libc']}; "
        f"load average before {run['load_before'][0]:.1f}, after {run['load_after'][0]:.1f}",
        f"- inputs of size \"{run['size']}\", {run['repeats']} interleaved repeats (rivals: a third of them, and on the small loads of ours "
        "with the quick inputs), minima of CPU and wall "
        "time, medians of peak memory; CPU time is user + system of the program and of its helper processes",
        f"- noise: the median of the repeats lies {100 * max(noise, default=0):.0f} % above the minimum at worst, "
        f"{100 * (median(noise) if noise else 0):.0f} % typically; `untraced-again` is the untraced build measured a second time: "
        "what its columns differ from 1.00 by is chance\n",
    ]
    text.append("## Summary: geometric means of the ratios to the untraced build\n")
    rows = []
    for configuration in run["configurations"]:
        entry = means(run, cells).get(configuration["name"])
        if not entry or "programs" not in entry:
            continue
        p = entry["programs"]
        micro = entry.get("micro", {})
        title = configuration["title"] + (f" — {configuration['version']}" if configuration["version"] else "")
        rows.append([title, str(p["count"]), f"**{_number(p['cpu_total'])}**", _number(p["wall"]), _number(p["rss_kib"]),
                     f"{_number(p['worst'][0])} ({p['worst'][1]})", _number(micro.get("cpu_total"))])
    text.append(_table(["configuration", "programs", "CPU", "wall", "peak memory", "worst CPU", "micro CPU"], rows))
    text.append("\n![ratios of CPU time](performance-cpu.svg)\n\n![ratios of peak memory](performance-memory.svg)\n")
    missing = [f"{c['title']}: {c['missing']}" for c in run["configurations"] if c["missing"]]
    if missing:
        text.append("Not measured: " + "; ".join(missing) + ".\n")
    for title, subjects in _groups(run):
        for metric, what in METRICS:
            text.append(f"## {title.capitalize()}: {what}, ratios to the untraced build\n")
            text.append(_ratio_table(run, cells, subjects, metric))
    served = [(key, cell) for key, cell in cells.items() if "throughput" in cell]
    if served:
        text.append("## Servers\n")
        text.append(_table(["server", "configuration", "requests per second", "p99 in ms"],
                           [[k[0], k[1], f"{c['throughput']:.0f}", f"{c['p99_ms']:.2f}"] for k, c in served]))
    written = [(key, cell) for key, cell in cells.items() if cell["output_bytes"] or cell["answer"] is not None]
    if written:
        text.append("## Output, helpers, and the time from the program's end to a top-10 list\n")
        text.append(_table(["subject", "configuration", "output bytes", "helper's peak MiB", "answer after s"], [
            [k[0], k[1], str(c["output_bytes"]), _number(c["helper_rss_kib"] / 1024 if c["helper_rss_kib"] else None, 0),
             _number(c["answer"])] for k, c in written]))
    if run["troubles"]:
        text.append("## Runs that failed\n")
        versions = {c["name"]: c["version"] or c["title"] for c in run["configurations"]}
        text.append(_table(["subject", "configuration", "version", "what happened"], [
            [t["subject"], t["configuration"], versions[t["configuration"]], t["what"].replace("|", "/")] for t in run["troubles"]]))
    text.append("## Versions\n")
    text.append("\n".join(f"- {s['name']}: {s['version']}" for s in run["subjects"] if s["version"]) + "\n")
    return "\n".join(text)


def write(run, folder, docs_root):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(run, indent=1, default=sorted))
    cells = summarise(run)
    with open(folder / "results.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject", "configuration", "size", "runs", "cpu_s", "cpu_median_s", "wall_s", "peak_kib", "helper_peak_kib",
                         "output_bytes", "answer_s", "cpu_ratio", "wall_ratio", "peak_ratio", "throughput", "p99_ms"])
        for (subject, configuration, size), cell in sorted(cells.items()):
            ratios = cell["ratios"]
            writer.writerow([subject, configuration, size, cell["runs"], cell["cpu_total"], cell["cpu_median"], cell["wall"],
                             cell["rss_kib"], cell["helper_rss_kib"], cell["output_bytes"], cell["answer"], ratios.get("cpu_total"),
                             ratios.get("wall"), ratios.get("rss_kib"), cell.get("throughput"), cell.get("p99_ms")])
    text = markdown(run, cells)
    (folder / "results.md").write_text(text)
    names = [c["name"] for c in run["configurations"] if c["name"] != "untraced"]
    subjects = [s["name"] for s in run["subjects"]]
    pictures = {}
    for metric, file in (("cpu_total", "performance-cpu.svg"), ("rss_kib", "performance-memory.svg")):
        keys = [(s, c, _size_of(run, s, c)) for s in subjects for c in names]
        values = {key[:2]: cells[key]["ratios"].get(metric) for key in keys if key in cells}
        title = ("CPU time" if metric == "cpu_total" else "Peak memory") + ", ratio to the untraced build (logarithmic)"
        pictures[file] = plots.dots(title, subjects, names, values)
        (folder / file).write_text(pictures[file])
    if docs_root:
        docs = Path(docs_root) / "docs"
        docs.mkdir(exist_ok=True)
        causes = docs / "performance-causes.md"
        tail = "\n" + causes.read_text() if causes.exists() else ""
        (docs / "performance.md").write_text(text + tail)
        for file, picture in pictures.items():
            (docs / file).write_text(picture)
    print(f"\n{text.split('## Summary')[1].split('![')[0].strip()}" if rows_exist(run) else "no figures")
    print(f"\nresults: {folder}")


def rows_exist(run):
    return bool(run["rows"])
