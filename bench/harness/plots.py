"""Pictures as SVG text, without a library: one row per subject, one dot per configuration, a logarithmic axis."""
import math
from xml.sax.saxutils import escape

COLOURS = ("#4e79a7", "#a0a0a0", "#59a14f", "#8cd17d", "#edc948", "#e15759", "#b07aa1", "#9c755f", "#f28e2b", "#76b7b2",
           "#d37295", "#499894", "#86bcb6", "#79706e", "#d4a6c8")
LEFT, TOP, WIDTH, ROW = 130, 54, 640, 20
TICKS = (0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.7, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def dots(title, subjects, configurations, values):
    """values[subject, configuration] → ratio."""
    present = [value for value in values.values() if value]
    low = min([0.8] + present) * 0.97
    high = max([1.5] + present) * 1.05
    span = math.log(high / low)

    def across(value):
        return LEFT + WIDTH * math.log(value / low) / span

    shown = [c for c in configurations if any((s, c) in values for s in subjects)]
    legend_rows = (len(shown) + 4) // 5
    height = TOP + ROW * len(subjects) + 34 + 16 * legend_rows
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{height}" font-family="sans-serif" '
           f'font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>']
    bottom = TOP + ROW * len(subjects)
    last = -100.0
    for tick in TICKS:
        if low <= tick <= high:
            x = across(tick)
            colour = "#333" if tick == 1 else "#ddd"
            out.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}"/>')
            if x - last > 26:
                out.append(f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle" fill="#555">{tick:g}</text>')
                last = x
    for row, subject in enumerate(subjects):
        y = TOP + ROW * row + ROW / 2
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(subject)}</text>')
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}" stroke="#eee"/>')
        for column, configuration in enumerate(shown):
            value = values.get((subject, configuration))
            if value:
                tip = escape(f"{subject}, {configuration}: {value:.2f}")
                out.append(f'<circle cx="{across(value):.1f}" cy="{y:.1f}" r="4.5" fill="{COLOURS[column % len(COLOURS)]}" '
                           f'fill-opacity="0.85"><title>{tip}</title></circle>')
    for column, configuration in enumerate(shown):
        x = LEFT + (column % 5) * 128
        y = bottom + 22 + 16 * (column // 5)
        out.append(f'<circle cx="{x}" cy="{y - 4}" r="4.5" fill="{COLOURS[column % len(COLOURS)]}"/>'
                   f'<text x="{x + 9}" y="{y}">{escape(configuration)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
