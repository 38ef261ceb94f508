// chart.js: what was live over time, and what the process had in memory. Dragging selects a range; everything else then
// answers for it. Drawn by uPlot.

class TimeChart {
  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.plot = element.querySelector('.plot');
    this.series = this.makeSeries();
    this.data = this.makeData();
    this.isHidden = this.series.map(series => series.hides === true);
    new ResizeObserver(() => this.resize()).observe(element);
  }

  // One line per file when they are few, else their sum; and the resident memory, hidden where it would flatten the rest.
  makeSeries() {
    const {data, figures} = this.app, {files, points} = data, series = [];
    const highest = Math.max(...figures.totals, 1), resident = Math.max(...points.resident, 0);
    const sum = {label: 'live', kind: 'sum', color: 'accent', fills: true};
    if (data.compares)
      series.push({...sum, label: 'new', kind: 0}, {label: 'old', kind: 1, color: 'dim'});
    else
      series.push(sum);
    if (files.length === 1 && resident > 0)
      series.push({label: 'resident', kind: 'resident', color: 'second', hides: resident > 12 * highest});
    return series;
  }

  // All times of all files; each file's value is the one of its last point before, nothing after its end.
  makeData() {
    const {data, figures} = this.app, {files, points} = data;
    const offset = file => data.compares ? points.time[file.first] : figures.start;
    const times = [...new Set(files.flatMap(file => Array.from({length: file.points},
      (_, i) => points.time[file.first + i] - offset(file))))].sort((a, b) => a - b);
    const at = new Map(times.map((time, i) => [time, i]));
    const column = (file, values, goesOn) => {
      const list = new Array(times.length).fill(null);
      for (let point = file.first; point <= file.last; point++) {
        const end = point < file.last ? at.get(points.time[point + 1] - offset(file)) : at.get(points.time[point] - offset(file)) + 1;
        for (let i = at.get(points.time[point] - offset(file)); i < (goesOn && point === file.last ? times.length : end); i++)
          list[i] = values[point];
      }
      return list;
    };
    return [times.map(time => time / 1000), ...this.series.map(series => {
      if (series.kind === 'resident') {
        const known = Array.from(points.resident, value => value > 0 ? value : null);
        return column(files[0], known);
      }
      if (series.kind !== 'sum') return column(files[series.kind], figures.totals);
      const sum = new Array(times.length).fill(0);
      for (const file of files) column(file, figures.totals).forEach((value, i) => sum[i] += value ?? 0);
      return sum;
    })];
  }

  options() {
    const {app} = this, grid = {stroke: colorOf('line'), width: 1}, ticks = {show: false};
    const axis = {stroke: colorOf('dim'), font: '11px system-ui, sans-serif', grid, ticks};
    const paths = this.data[0].length > 1 ? uPlot.paths.linear() : undefined;
    return {
      width: this.plot.clientWidth, height: 200, padding: [14, 8, 0, 0],
      cursor: {drag: {x: true, y: false, setScale: false}, points: {size: 6}, bind: {dblclick: () => () => app.setRange(null)}},
      select: {show: true}, legend: {show: false},
      scales: {x: {time: false}, y: {range: (_, low, high) => [0, Math.max(high * 1.06, 1)]}},
      axes: [
        {...axis, values: (_, list) => list.map(value => timeText(value * 1000)), space: 90, grid: {show: false}, size: 30},
        {...axis, values: (_, list) => list.map(axisText), size: 66, splits: (chart, _, low, high) => sizeSplits(high)},
      ],
      series: [{}, ...this.series.map((series, i) => ({
        label: series.label, stroke: colorOf(series.color), width: 1.6, show: !this.isHidden[i], paths, spanGaps: true,
        fill: series.fills ? colorOf('accent-pale') : undefined, points: {show: this.data[0].length < 3, size: 6},
      }))],
      hooks: {
        setSelect: [chart => this.selected(chart)], setCursor: [chart => this.tell(chart.cursor.idx)],
        draw: [chart => this.drawMarks(chart)],
      },
    };
  }

  draw() {
    if (this.plot.clientWidth === 0) return;
    this.chart?.destroy();
    this.chart = new uPlot(this.options(), this.data, this.plot);
    this.showRange();
    this.tell(null);
  }

  resize() {
    if (this.chart && this.chart.width !== this.plot.clientWidth)
      this.chart.setSize({width: this.plot.clientWidth, height: 200});
    this.showRange();
  }

  // Entries that came for a reason of their own, and places where the traces were cleared.
  drawMarks(chart) {
    const {data, figures} = this.app, {points, texts, files} = data, context = chart.ctx;
    if (files.length > 1) return;
    const usual = new Set(['', 'pace', 'interval', 'exit', 'end', 'peak']);
    context.save();
    context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    const {left, top, width, height} = chart.bbox, line = 14 * devicePixelRatio;
    let free = -Infinity; // labels that would lie on one another are left out
    for (let point = 0; point < points.count; point++) {
      const reason = points.restarts[point] ? 'cleared' : texts.get(points.reason[point]);
      if (usual.has(reason)) continue;
      const x = chart.valToPos((points.time[point] - figures.start) / 1000, 'x', true);
      context.fillStyle = colorOf('dim');
      context.globalAlpha = 0.6;
      context.fillRect(x, top, 1, height);
      const label = reason.replace(/^mark: /, ''), wide = context.measureText(label).width + 8;
      const at = x + wide > left + width ? x - wide : x + 1; // the last ones stand at the left of their line
      if (at < free) continue;
      context.globalAlpha = 0.85;
      context.fillStyle = colorOf('card');
      context.fillRect(at, top, wide - 1, line);
      context.globalAlpha = 1;
      context.fillStyle = colorOf('dim');
      context.fillText(label, at + 4, top + line / 2);
      free = at + wide;
    }
    context.restore();
  }

  selected(chart) {
    const {left, width} = chart.select;
    if (this.isShowing || width < 3) return;
    const from = chart.posToVal(left, 'x') * 1000, to = chart.posToVal(left + width, 'x') * 1000;
    this.app.setRange([from, to]);
  }

  showRange() {
    const {chart, app} = this, {range} = app.state;
    if (!chart) return;
    this.isShowing = true;
    if (range === null) {
      chart.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    } else {
      const left = chart.valToPos(range[0] / 1000, 'x'), right = chart.valToPos(range[1] / 1000, 'x');
      chart.setSelect({left, top: 0, width: Math.max(right - left, 1), height: chart.over.clientHeight}, false);
    }
    this.isShowing = false;
  }

  // The legend, with the values under the pointer, or the highest ones.
  tell(index) {
    const {app} = this, legend = this.element.querySelector('.legend');
    const isOver = index !== null && index !== undefined;
    fill(legend, ...this.series.map((series, i) => {
      const values = this.data[i + 1], value = isOver ? values[index] : Math.max(...values.map(v => v ?? 0));
      return el('button.series' + (this.isHidden[i] ? '.off' : ''), {type: 'button', title: this.isHidden[i] ? 'draw it' : 'hide it',
        onclick: () => this.toggle(i)}, el('i', {style: `background:${colorOf(series.color)}`}),
      `${series.label} `, el('span', (isOver ? '' : 'at most ') + (value === null ? '–' : sizeText(value))));
    }), el('span.dim', isOver ? 'at ' + timeText(this.data[0][index] * 1000)
      : app.data.compares || this.data[0].length < 2 ? '' : 'drag to select a range'));
  }

  toggle(i) {
    this.isHidden[i] = !this.isHidden[i];
    this.draw();
  }
}

// Round numbers of bytes for an axis.
function sizeSplits(high) {
  let step = 1;
  while (high / step > 5) step *= high / (step * 4) > 5 ? 4 : 2;
  return Array.from({length: Math.floor(high / step) + 1}, (_, i) => i * step);
}

// A course as a small picture.
function sparkline(course, width, height) {
  const {values, times} = course, most = Math.max(...values, 1), last = Math.max(times[times.length - 1], 1);
  const x = i => (times.length > 1 ? times[i] / last : 1) * (width - 2) + 1, y = value => height - 1 - value / most * (height - 3);
  let path = '', down = -1;
  for (let i = 0; i < values.length; i++) {
    const at = x(i).toFixed(1);
    if (at === down && i + 1 < values.length) continue; // what falls on one pixel is one
    path += (path === '' ? 'M' : 'L') + at + ' ' + y(values[i]).toFixed(1);
    down = at;
  }
  const svg = svgElement('svg', {class: 'spark', width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'});
  if (values.length > 1) svg.append(svgElement('path', {class: 'area', d: `${path}L${width - 1} ${height}L1 ${height}Z`}));
  svg.append(svgElement('path', {class: 'line', d: values.length > 1 ? path : `M1 ${y(values[0])}L${width - 1} ${y(values[0])}`}));
  return svg;
}
