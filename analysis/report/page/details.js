// details.js: beside the table: one group, or one box of the tree: its figures, its course, the stacks that hold it, and
// the lines of the source with what each of them holds.

class Details {
  constructor(app, element) {
    this.app = app;
    this.element = element;
  }

  clear() {
    fill(this.element, el('p.dim.empty', 'Choose a row to see its course, the stacks behind it and its source.'));
  }

  show(title, place, label, traces, frame) {
    const {app} = this, {figures} = app, sums = {};
    for (const name of Object.keys(figures.sums)) {
      sums[name] = 0;
      for (const trace of traces) sums[name] += figures[name][trace];
    }
    fill(this.element, 
      el('h3', title, label?.row !== undefined ? growthBadge(app.data, label) : null), place ? el('p.place', place) : null,
      this.growth(label), this.figuresOf(sums), this.courseOf(traces),
      el('div.actions', label?.filter && Object.keys(app.state.filter).length === 0
        ? el('button.action', {type: 'button', onclick: () => app.setFilter(label.filter)}, 'show only this') : null,
      label === null ? el('button.action', {type: 'button', onclick: () => app.showInTable(frame)}, 'show in the table') : null),
      this.source(frame), this.stacks(traces), this.blockSizes(traces));
  }

  // Why the course is called what it is called.
  growth(label) {
    if (label?.row === undefined) return null;
    const {rows, texts} = this.app.data, {row} = label, reason = texts.get(rows.reason[row]);
    if (reason === '') return null;
    const rate = rows.perMinute[row] > 0 ? `; ${sizeText(rows.perMinute[row])} a minute` : '';
    const call = rows.perCall[row] > 0 ? `${rate === '' ? ';' : ','} ${sizeText(rows.perCall[row])} a call` : '';
    return el('p.reason', `${reason}${rate}${call} (${Math.round(rows.certainty[row] / 10)} % sure)`);
  }

  figuresOf(sums) {
    const average = sums.blocks > 0 ? `${sizeText(sums.live / sums.blocks)} each` : '';
    const gone = sums.calls > 0 ? shareText(sums.temporary, sums.calls) + ' came and went' : '';
    const item = (name, value, more) => el('div', el('dt', name), el('dd', value, more ? el('small', more) : null));
    return el('dl.figures', item('Live', sizeText(sums.live), `${thingsText(sums.blocks, 'block')}${average && ', ' + average}`),
      item('Growth', sizeText(sums.growth, true), thingsText(sums.blocksGrowth, 'block', true)),
      item('Peak', sizeText(sums.peak)), item('Allocated', sizeText(sums.total), thingsText(sums.calls, 'call')),
      gone ? item('Temporary', shortCount(sums.temporary), gone) : null);
  }

  courseOf(traces) {
    const course = this.app.figures.course(traces);
    if (course.values.length < 2) return null;
    return el('div.bigcourse', sparkline(course, 380, 64),
      el('span.dim', `at most ${sizeText(Math.max(...course.values))}`));
  }

  blockSizes(traces) {
    const classes = sizeClasses(this.app, traces);
    return classes.length > 0 ? el('div', el('h4', 'Sizes of blocks asked for'), sizeBars(classes)) : null;
  }

  // ---- stacks ----

  stacks(traces) {
    const {figures, state, data} = this.app, metric = METRICS[state.metric], values = figures[state.metric], largest = [];
    let count = 0, whole = 0;
    for (let i = 0; i < traces.length;) { // those of one stack come together
      const node = data.traces.node[traces[i]];
      let sum = 0;
      for (; i < traces.length && data.traces.node[traces[i]] === node; i++) sum += values[traces[i]];
      if (sum === 0) continue;
      count++;
      whole += sum;
      if (largest.length === 6 && Math.abs(largest[5][1]) >= Math.abs(sum)) continue;
      largest.push([node, sum]);
      largest.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
      largest.length = Math.min(largest.length, 6);
    }
    if (count === 0) return null;
    return el('div', el('h4', count === 1 ? 'The stack' : `The largest of ${thingsText(count, 'stack')}`),
      largest.map(([node, value], i) => el('details.stack', {open: i === 0}, el('summary',
        metric.unit === 'bytes' ? sizeText(value, metric.signed) : countText(value), el('span.dim', ' ' + shareText(value, whole))),
      this.stack(node))));
  }

  // Innermost first. Frames of libraries in a row are one line that opens.
  stack(node) {
    const {data} = this.app, {nodes, frames} = data, list = el('ol.frames'), run = [];
    const flush = () => {
      if (run.length > 2) list.append(el('li', el('details', el('summary.dim',
        `${run.length} frames of ${moduleNames(data, run)}`), el('ol.frames', run.map(frame => this.frame(frame, false))))));
      else list.append(...run.map(frame => this.frame(frame, false)));
      run.length = 0;
    };
    for (let at = node; at !== 0; at = nodes.parent[at]) {
      const frame = nodes.frame[at];
      if ((frames.flags[frame] & 1) === 0) {
        run.push(frame);
        continue;
      }
      flush();
      list.append(this.frame(frame, true));
    }
    flush();
    return list;
  }

  frame(frame, isOwn) {
    const {app} = this, {data} = app, line = data.frames.line[frame], file = data.texts.get(data.frames.file[frame]);
    const hasSource = line > 0 && app.sourceLine(file, line) !== '';
    const place = line > 0 ? `${baseName(file)}:${line}` : baseName(data.texts.get(data.frames.module[frame]) || file);
    return el('li' + (isOwn ? '.own' : '.dim'), frameName(data, frame, false), ' ', hasSource
      ? el('button.link', {type: 'button', onclick: () => this.showSource(frame)}, place) : el('span.place', place));
  }

  // ---- source ----

  source(frame) {
    this.sourceBox = el('div.source-box');
    if (frame !== undefined && frame !== null) this.showSource(frame);
    return this.sourceBox;
  }

  showSource(frame) {
    const {data} = this.app, file = data.frames.file[frame];
    this.showLines(file, data.texts.get(file), data.frames.line[frame]);
  }

  showLines(file, path, line) {
    const ranges = this.app.data.sources[path];
    if (!ranges || line === 0) return fill(this.sourceBox);
    const figures = lineFigures(this.app, file);
    const range = ranges.find(([first, text]) => line >= first && line < first + text.split('\n').length) ?? ranges[0];
    const lines = range[1].split('\n');
    const from = Math.max(0, line - range[0] - 7), to = Math.min(lines.length, line - range[0] + 8), texts = dedent(lines.slice(from, to));
    const table = el('table.code', {'data-file': path}, el('thead', el('tr', el('th', {title: METRICS[this.app.state.metric].what + ' by this line itself'},
      METRICS[this.app.state.metric].name), el('th', {title: 'live bytes asked for on the way through this line'}, 'Through'), el('th', ''), el('th.text', this.app.shortPath(path)))),
    el('tbody', texts.map((text, i) => this.codeLine(range[0] + from + i, text, figures, line))));
    fill(this.sourceBox, el('h4', 'Source'), el('div.code-scroll', table));
  }

  codeLine(number, text, figures, chosen) {
    const metric = METRICS[this.app.state.metric], own = figures.own.get(number) ?? 0, through = figures.through.get(number) ?? 0;
    const cell = (value, format) => el('td.number', {'data-value': value}, value === 0 ? '' : format(value));
    return el('tr' + (number === chosen ? '.chosen' : ''), {'data-line': number},
      cell(own, metric.unit === 'bytes' ? value => sizeText(value, metric.signed) : shortCount), cell(through, value => sizeText(value)),
      el('td.line', String(number)), el('td.text', text === '' ? ' ' : text));
  }
}

// Without the blanks that all lines begin with.
function dedent(lines) {
  const plain = lines.map(line => line.replaceAll('\t', '    ')), full = plain.filter(line => line.trim() !== '');
  const common = Math.min(...full.map(line => line.length - line.trimStart().length));
  return plain.map(line => line.slice(Number.isFinite(common) ? common : 0));
}

function moduleNames(data, frames) {
  const names = [...new Set(frames.map(frame => baseName(data.texts.get(data.frames.module[frame] || data.frames.file[frame]))))];
  return names.slice(0, 2).join(', ') + (names.length > 2 ? ' …' : '');
}

// Of each line of a file: what it asked for itself (as one's own code), and what lives that was asked for on its way.
function lineFigures(app, file) {
  const {data, figures, state} = app, {rows, nodes, frames, traces} = data, own = new Map(), through = new Map();
  const values = figures[state.metric], totals = app.nodeTotals('live');
  for (let trace = 0; trace < traces.count; trace++) {
    const row = traces.row[trace];
    if (values[trace] !== 0 && rows.file[row] === file && rows.line[row] > 0)
      own.set(rows.line[row], (own.get(rows.line[row]) ?? 0) + values[trace]);
  }
  for (let node = 1; node < nodes.count; node++) {
    const frame = nodes.frame[node];
    if (frames.file[frame] !== file || frames.line[frame] === 0 || totals[node] === 0) continue;
    const line = frames.line[frame];
    let above = nodes.parent[node];
    while (above !== 0 && !(frames.file[nodes.frame[above]] === file && frames.line[nodes.frame[above]] === line)) above = nodes.parent[above];
    if (above === 0) through.set(line, (through.get(line) ?? 0) + totals[node]); // recursion counts once
  }
  return {own, through};
}
