// app.js: the page as a whole: its state, which the address keeps behind the #, and what is drawn anew when it changes.

const KEYS = {own: 'Own code', line: 'Line', function: 'Function', file: 'File', module: 'Module', domain: 'Domain',
  thread: 'Thread', process: 'Process'};
const find = selector => document.querySelector(selector);

class App {
  constructor(data) {
    this.data = data;
    this.figures = new Figures(data);
    this.lines = new Map();
    this.tasks = [];
    this.folder = commonFolder(data);
    this.state = {range: null, filter: {}, by: 'own', metric: data.compares ? 'growth' : 'live', ascending: false, search: '',
      row: '', zoom: ''};
    this.table = new GroupTable(this);
    this.details = new Details(this, find('#details'));
    this.flame = new Flame(this);
    this.chart = new TimeChart(this, find('#chart'));
    find('#table').append(this.table.heading, this.table.scroller, this.table.footer);
    find('#flame').append(this.flame.scroller);
  }

  // ---- answers for the others ----

  isDark() {
    const {theme} = document.documentElement.dataset;
    return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }

  sourceLine(path, line) {
    if (!this.lines.has(path)) {
      const lines = new Map();
      for (const [first, text] of this.data.sources[path] ?? []) text.split('\n').forEach((part, i) => lines.set(first + i, part.trim()));
      this.lines.set(path, lines);
    }
    return this.lines.get(path).get(line) ?? '';
  }

  // A path as people know it: without the folder that all of one's own files have in common.
  shortPath(path) {
    return this.folder !== '' && path.startsWith(this.folder) ? path.slice(this.folder.length) : shortPath(path);
  }

  // Who called what a row is about: the functions outside of it in its largest stack.
  callers(key, group, label) {
    const {data, figures} = this, {nodes, frames} = data, traces = figures.tracesOf(key, group);
    let best = -1;
    for (const trace of traces) if (best < 0 || figures.peak[trace] > figures.peak[best]) best = trace;
    let at = best < 0 ? 0 : data.traces.node[best];
    while (at !== 0 && data.texts.get(frames.func[nodes.frame[at]]) !== label.fullName) at = nodes.parent[at];
    const names = [];
    for (at = nodes.parent[at]; at > 0 && names.length < 3; at = nodes.parent[at]) {
      const name = frameName(data, nodes.frame[at], false);
      if (name !== names[names.length - 1]) names.push(name);
    }
    return names.length > 0 ? 'called by ' + names.join(' ‹ ') : '';
  }

  fileOf(frame) {
    const {frames, texts} = this.data;
    return `${texts.get(frames.file[frame])} ${texts.get(frames.func[frame])} ${texts.get(frames.module[frame])}`;
  }

  placeOf(frame) {
    const {frames, texts} = this.data, file = texts.get(frames.file[frame]), module = texts.get(frames.module[frame]);
    return frames.line[frame] > 0 ? `${file}:${frames.line[frame]}` + (module ? `  ${baseName(module)}` : '') : module || file;
  }

  nodeTotals(name) {
    return this.totals[name] ??= this.figures.nodeTotals(name);
  }

  // ---- changes of the state ----

  setRange(range) {
    const {figures} = this;
    if (this.data.compares) range = null;
    if (range !== null) {
      const ends = this.snap(range);
      range = ends[1] > ends[0] || figures.data.points.count === 1 ? ends : null;
    }
    this.state.range = range;
    this.recompute();
  }

  // To the nearest points of time, so that the selection is what the program calls FILE@ENTRY.
  snap(range) {
    const {data, figures} = this, times = Array.from(data.points.time, time => time - figures.start);
    const nearest = time => times.reduce((best, other) => Math.abs(other - time) < Math.abs(best - time) ? other : best);
    return range.map(nearest);
  }

  setFilter(filter) {
    this.state.filter = filter;
    this.recompute();
  }

  setMetric(metric) {
    this.state.metric = metric;
    this.state.ascending = false;
    this.redrawFigures();
  }

  sortBy(metric) {
    if (this.state.metric === metric) this.state.ascending = !this.state.ascending;
    else Object.assign(this.state, {metric, ascending: false});
    this.redrawFigures();
  }

  setBy(by) {
    this.state.by = by;
    this.state.row = '';
    this.shown = null;
    this.details.clear();
    this.table.chosen = -1;
    this.drawTabs();
    this.remember();
    this.later(() => this.figures.key(this.state.by), () => this.table.rebuild());
  }

  setSearch(text) {
    this.state.search = text;
    find('#search').value = text;
    this.remember();
    this.later(() => this.table.rebuild(), () => this.flame.search(this.state.search));
  }

  setFlame(option, value) {
    this.flame.options[option] = value;
    this.later(() => this.flame.rebuild());
    this.drawFlameTools();
    this.remember();
  }

  // ---- what follows from a change ----

  recompute() {
    this.figures.select(this.state.range, this.state.filter);
    this.totals = {};
    this.chart.showRange();
    this.drawChips();
    this.drawTiles();
    this.later(() => fill(find('#summary'), ...summary(this)), () => drawSizes(this, find('#sizes')),
      () => drawDomains(this, find('#domains')), () => drawProcesses(this, find('#processes')));
    this.redrawFigures();
  }

  redrawFigures() {
    this.drawTiles();
    this.remember();
    this.later(() => this.table.rebuild(), () => this.flame.rebuild(), () => this.drawFlameTools(), () => this.showChosen());
  }

  // What takes long is done piece by piece, so that the page answers in between. A task is a function; one that answers a
  // generator is itself done in pieces. What is asked for again is begun again, and done once.
  later(...tasks) {
    const names = new Set(tasks.map(String));
    this.tasks = [...this.tasks.filter(task => !names.has(task.name)), ...tasks.map(run => ({name: String(run), run}))];
    document.documentElement.dataset.busy = '1';
    if (this.isWorking) return;
    this.isWorking = true;
    const work = () => {
      for (const until = performance.now() + 12; this.tasks.length > 0 && performance.now() < until;) this.workOn();
      if (this.tasks.length > 0) return setTimeout(work);
      this.isWorking = false;
      delete document.documentElement.dataset.busy;
      return undefined;
    };
    setTimeout(work);
  }

  // A piece of the first task.
  workOn() {
    const task = this.tasks[0];
    task.steps ??= task.run();
    if ((!task.steps?.next || task.steps.next().done) && this.tasks[0] === task) this.tasks.shift();
  }

  // Before something that stands on all of it.
  finish() {
    while (this.tasks.length > 0) this.workOn();
  }

  // ---- choosing ----

  chose(key, group) {
    this.state.row = labelText(key.labels[group]);
    this.flame.markFrames(this.framesOf(key, group));
    this.shown = {kind: 'group', key, group};
    this.later(() => this.showChosen());
    this.remember();
  }

  showChosen() {
    const {shown, data} = this;
    if (!shown) return this.details.clear();
    if (shown.kind === 'group') {
      const label = shown.key.labels[shown.group], traces = this.figures.tracesOf(shown.key, shown.group);
      const place = label.name ?? (label.line > 0 ? `${label.file}:${label.line}` : label.module || label.file);
      const title = label.name !== undefined ? baseName(label.name) : label.func !== '' ? label.func : baseName(place);
      return this.details.show(title, place, label, traces, this.frameOf(label, traces));
    }
    return this.details.show(frameName(data, shown.frame, false), this.placeOf(shown.frame), null, this.tracesBelow(shown.node), shown.frame);
  }

  // The frame of a row whose source is to be shown.
  frameOf(label, traces) {
    const {data} = this, {nodes, frames, texts} = data;
    if (!(label.line > 0)) return null;
    for (let at = traces.length > 0 ? data.traces.node[traces[0]] : 0; at !== 0; at = nodes.parent[at]) {
      const frame = nodes.frame[at];
      if (frames.line[frame] === label.line && texts.get(frames.file[frame]) === label.file) return frame;
    }
    return null;
  }

  // All frames that a row stands for, to be found again in the graph.
  framesOf(key, group) {
    const {nodes, frames, texts} = this.data, label = key.labels[group], list = new Set();
    if (label.filter) return list;
    for (let frame = 0; frame < frames.count; frame++) {
      const isOf = key.name === 'file' ? texts.get(frames.file[frame]) === label.name
        : key.name === 'module' ? texts.get(frames.module[frame]) === label.name
          : label.line > 0 && !label.isFunction ? frames.line[frame] === label.line && texts.get(frames.file[frame]) === label.file
            : texts.get(frames.func[frame]) === label.fullName && texts.get(frames.module[frame]) === label.module;
      if (isOf) list.add(frame);
    }
    return list;
  }

  // From the graph to the table: the function of a box.
  showInTable(frame) {
    const {frames, texts} = this.data, func = texts.get(frames.func[frame]);
    this.setBy('function');
    if (this.state.search !== '') this.setSearch('');
    this.finish();
    const group = this.table.find(label => label.fullName === func);
    if (group < 0) return;
    this.table.reveal(group);
    this.table.choose(group);
  }

  // The traces that go through a box of the picture.
  tracesBelow(node) {
    const {data} = this, {tree} = this.flame, {traces} = data, list = [];
    if (tree instanceof BottomUpTree) {
      const isStart = new Uint8Array(data.nodes.count);
      for (const start of tree.starts[node]) isStart[start] = 1;
      for (let trace = 0; trace < traces.count; trace++) if (isStart[traces.node[trace]]) list.push(trace);
      return list;
    }
    const isBelow = new Uint8Array(tree.count);
    isBelow[node] = 1;
    for (let i = node + 1; i < tree.count; i++) isBelow[i] = isBelow[tree.parent[i]];
    for (let trace = 0; trace < traces.count; trace++) if (isBelow[tree.of[traces.node[trace]]]) list.push(trace);
    return list;
  }

  // A group that words have named: in the table, wherever that is now.
  reveal(label) {
    this.finish();
    if (this.state.by !== 'own') this.setBy('own');
    if (this.state.search !== '') this.setSearch('');
    this.finish();
    const group = this.table.find(other => other === label || labelText(other) === labelText(label));
    if (group < 0) return;
    this.table.reveal(group);
    this.table.choose(group);
    find('#who').scrollIntoView({block: 'nearest', behavior: 'smooth'});
  }

  zoomed(path, frame, node) {
    this.state.zoom = path.join('\u0001');
    fill(find('#crumbs'), ...this.crumbs(path));
    this.shown = frame === null ? null : {kind: 'node', frame, node};
    this.flame.markFrames(null);
    if (this.table.chosen >= 0) {
      this.table.chosen = -1;
      this.table.draw();
    }
    this.later(() => this.showChosen());
    this.remember();
  }

  crumbs(path) {
    const at = (name, depth) => el('button.link', {type: 'button', onclick: () => this.flame.zoom(this.flame.follow(path.slice(0, depth)))}, name);
    const tail = path.slice(-4);
    return [at('all', 0), path.length > tail.length ? ' › …' : '', ...tail.flatMap((name, i) => [' › ', at(name, path.length - tail.length + i + 1)])];
  }

  flamePainted() {
    find('#crumbs').hidden = this.flame.zoomed === 0;
  }

  // ---- pieces of the page ----

  drawHead() {
    const {data} = this, file = data.files[0], {about} = file;
    const name = data.compares ? `${baseName(data.files[0].path)} against ${baseName(data.files[1].path)}`
      : data.head.title || programName(file);
    document.title = `${name} — tracealloc`;
    find('#title').textContent = name;
    const length = Math.max(...data.points.time) - this.figures.start, parts = [];
    if (about.facts['process.command'] && !data.compares) parts.push(el('code', about.facts['process.command']));
    if (data.points.count > 1 && length > 0 && !data.compares) parts.push(el('span', timeText(length)));
    if (about.start > 0) parts.push(el('span', new Date(about.start).toISOString().slice(0, 16).replace('T', ' ') + ' UTC'));
    if (about.host) parts.push(el('span', about.host));
    if (about.sampled > 0) parts.push(el('span', `estimated from one allocation in ${sizeText(about.sampled)}`));
    fill(find('#subtitle'), ...parts);
  }

  drawTiles() {
    const {figures, state} = this, {sums} = figures;
    const more = {live: thingsText(sums.blocks, 'block'), growth: thingsText(sums.blocksGrowth, 'block', true),
      peak: this.data.files.length > 1 && !this.data.compares ? 'each process at its own peak' : state.range === null ? 'at the highest moment' : 'in this range', total: thingsText(sums.calls, 'call'),
      calls: sums.calls > 0 ? `${sizeText(sums.total / sums.calls)} each` : '', temporary: sums.calls > 0 ? shareText(sums.temporary, sums.calls) + ' of the calls' : ''};
    fill(find('#tiles'), ...Object.entries(METRICS).map(([name, metric]) => el('button.tile' + (state.metric === name ? '.chosen' : ''),
      {type: 'button', 'data-metric': name, 'data-value': sums[name], 'aria-pressed': state.metric === name, title: metric.what, onclick: () => this.setMetric(name)},
      el('span.name', metric.name), el('span.value', metric.unit === 'bytes' ? sizeText(name === 'peak' ? peakOf(this) : sums[name], metric.signed) : shortCount(sums[name])),
      el('span.more', more[name]))));
  }

  drawChips() {
    const {state, data, figures} = this, chips = [];
    const chip = (text, act) => chips.push(el('button.chip', {type: 'button', title: 'show everything again', onclick: act}, text, el('b', ' ×')));
    if (state.range !== null) {
      const bound = figures.selected[0], entries = data.files.length === 1 && bound.to >= 0
        ? `, entries ${bound.from < 0 ? '' : data.points.index[bound.from]}–${data.points.index[bound.to]}` : '';
      chip(`${timeText(state.range[0])} – ${timeText(state.range[1])}${entries}`, () => this.setRange(null));
    }
    for (const [key, value] of Object.entries(state.filter))
      chip(key === 'source' ? processName(data.files[value]) : key === 'domain' ? 'domain ' + domainName(data, value) : `${key} ${value}`, () => this.setFilter({}));
    fill(find('#chips'), ...chips);
  }

  drawTabs() {
    const {data, state} = this, has = {thread: data.traces.thread.some(thread => thread !== 0), process: data.files.length > 1 && !data.compares,
      domain: this.figures.key('domain').count > 1};
    fill(find('#tabs'), ...Object.entries(KEYS).filter(([key]) => has[key] !== false).map(([key, name]) =>
      el('button' + (state.by === key ? '.chosen' : ''), {type: 'button', role: 'tab', 'aria-selected': state.by === key, 'data-by': key, onclick: () => this.setBy(key)}, name)));
  }

  drawFlameTools() {
    const {options} = this.flame, {state} = this;
    const toggle = (option, on, off, title) => el('button' + (options[option] ? '.chosen' : ''), {type: 'button', title, 'aria-pressed': options[option],
      'data-option': option, onclick: () => this.setFlame(option, !options[option])}, options[option] ? on : off);
    fill(find('#flame-tools'), toggle('outwards', 'from the allocator', 'from the allocator', 'begin with who asked for memory, callers after it'),
      toggle('upside', 'flames', 'flames', 'the root at the bottom'), toggle('ownOnly', 'own code only', 'own code only', 'leave out what libraries did on the way'),
      toggle('fold', 'fold recursion', 'fold recursion', 'what calls itself is one box'), toggle('byLine', 'lines', 'lines', 'a box for each line instead of each function'));
    find('#flame-what').textContent = state.metric === 'growth' ? 'as wide as the larger of before and after: red grew, blue shrank'
      : `as wide as ${METRICS[state.metric].what}`;
  }

  // ---- the address ----

  remember() {
    const {state, flame} = this, parts = new URLSearchParams();
    if (state.range !== null) parts.set('range', state.range.join('-'));
    for (const [key, value] of Object.entries(state.filter)) parts.set(key, value);
    if (state.by !== 'own') parts.set('by', state.by);
    parts.set('sort', state.metric + (state.ascending ? '-' : ''));
    if (state.search !== '') parts.set('search', state.search);
    if (state.row !== '' && this.shown?.kind === 'group') parts.set('row', state.row);
    const options = Object.entries(flame.options).filter(([, value]) => value).map(([name]) => name);
    if (options.length > 0) parts.set('graph', options.join(','));
    if (state.zoom !== '') parts.set('zoom', state.zoom);
    const {theme} = document.documentElement.dataset;
    if (theme) parts.set('theme', theme);
    history.replaceState(null, '', '#' + parts.toString());
  }

  recall() {
    const parts = new URLSearchParams(location.hash.slice(1)), {state} = this, sort = parts.get('sort') ?? '';
    const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(parts.get('range') ?? '');
    if (range && !this.data.compares) state.range = this.snap([Number(range[1]), Number(range[2])]);
    for (const key of ['source', 'domain', 'thread']) if (parts.has(key)) state.filter[key] = Number(parts.get(key));
    if (KEYS[parts.get('by')]) state.by = parts.get('by');
    if (METRICS[sort.replace('-', '')]) Object.assign(state, {metric: sort.replace('-', ''), ascending: sort.endsWith('-')});
    state.search = parts.get('search') ?? '';
    for (const name of (parts.get('graph') ?? '').split(',')) if (name in this.flame.options) this.flame.options[name] = true;
    if (['dark', 'light'].includes(parts.get('theme'))) document.documentElement.dataset.theme = parts.get('theme');
    find('#search').value = state.search;
    const row = parts.get('row'), zoom = parts.get('zoom') ?? '';
    return () => {
      if (row !== null) {
        const group = this.table.find(label => labelText(label) === row);
        if (group >= 0) {
          this.table.reveal(group);
          this.table.choose(group);
        }
      }
      if (zoom !== '') this.flame.zoom(this.flame.follow(zoom.split('\u0001')));
    };
  }

  // ---- light and dark, paper ----

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.recolor();
    this.remember();
  }

  recolor() {
    this.chart.draw();
    this.flame.recolor();
  }

  // ---- keys ----

  press(event) {
    const isTyping = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === 'Escape') return this.escape(event);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const metrics = Object.keys(METRICS), number = Number(event.key);
    if (event.key === '/') find('#search').focus();
    else if (number >= 1 && number <= metrics.length) this.setMetric(metrics[number - 1]);
    else if (event.key === '?') this.help();
    else if (event.key === 't') this.table.scroller.focus();
    else if (event.key === 'g') this.flame.scroller.focus();
    else if (event.key === 'd') this.setTheme(this.isDark() ? 'light' : 'dark');
    else if (event.key === 'r') this.setFlame('outwards', !this.flame.options.outwards);
    else if (event.key === 'o') this.setFlame('ownOnly', !this.flame.options.ownOnly);
    else if (event.key === '[' || event.key === ']') this.moveRange(event.key === ']' ? 1 : -1);
    else return;
    event.preventDefault();
  }

  // The next step out of what one is in.
  escape(event) {
    const {state} = this;
    if (find('#help').open) return;
    if (event.target.id === 'search' && state.search !== '') this.setSearch('');
    else if (event.target.id === 'search') event.target.blur();
    else if (this.flame.zoomed !== 0) this.flame.zoom(0);
    else if (state.search !== '') this.setSearch('');
    else if (Object.keys(state.filter).length > 0) this.setFilter({});
    else if (state.range !== null) this.setRange(null);
  }

  // The range as long as it is, one point further; where there is none, the last or first step.
  moveRange(step) {
    const {data, figures, state} = this, times = [...new Set(Array.from(data.points.time, time => time - figures.start))].sort((a, b) => a - b);
    if (times.length < 2) return;
    let [from, to] = state.range === null ? step > 0 ? [-1, 0] : [times.length - 1, times.length] : state.range.map(time => times.indexOf(time));
    if (to + step >= times.length || from + step < 0) return;
    this.setRange([times[from + step], times[to + step]]);
  }

  help() {
    find('#help').showModal();
  }

  start() {
    find('#search').addEventListener('input', event => this.setSearch(event.target.value));
    find('#theme').addEventListener('click', () => this.setTheme(this.isDark() ? 'light' : 'dark'));
    find('#help-button').addEventListener('click', () => this.help());
    document.addEventListener('keydown', event => this.press(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.recolor());
    addEventListener('beforeprint', () => this.table.print());
    addEventListener('afterprint', () => this.table.draw());
    const then = this.recall();
    this.drawHead();
    drawAbout(this, find('#about'));
    this.chart.draw();
    this.recompute();
    this.drawTabs();
    find('#chart').hidden = this.data.points.count < 2;
    this.finish();
    then();
  }
}

// The folder of one's own files, if they have one; what is in /usr is nobody's own.
function commonFolder(data) {
  const {rows, texts} = data, paths = new Set();
  for (let row = 0; row < rows.count; row++) if (rows.line[row] > 0) paths.add(texts.get(rows.file[row]));
  const own = [...paths].filter(path => path.startsWith('/') && !path.startsWith('/usr/'));
  if (own.length === 0) return '';
  let common = own[0].slice(0, own[0].lastIndexOf('/') + 1);
  for (const path of own) while (!path.startsWith(common)) common = common.slice(0, common.lastIndexOf('/', common.length - 2) + 1);
  return common.length > 1 ? common : '';
}

async function main() {
  if (typeof DecompressionStream === 'undefined')
    throw new Error('this browser cannot unpack the data: a browser of 2023 or later can');
  const app = window.tracealloc = new App(await readData());
  app.start();
  performance.mark('ready');
  document.documentElement.dataset.ready = '1';
  find('#loading').remove();
}

main().catch(error => {
  find('#loading').textContent = 'This report cannot be shown: ' + error.message;
  console.error(error);
});
