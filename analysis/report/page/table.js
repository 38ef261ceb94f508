// table.js: the groups of a key, one row each, in any order. Only the rows in view are elements of the page.

const ROW_HEIGHT = 46, PRINTED_ROWS = 40;

const COLUMNS = [
  {name: 'live', label: 'Live'}, {name: 'growth', label: 'Growth'}, {name: 'peak', label: 'Peak'},
  {name: 'total', label: 'Allocated'}, {name: 'calls', label: 'Calls'}, {name: 'temporary', label: 'Temporary'},
];

class GroupTable {
  constructor(app) {
    this.app = app;
    this.body = el('div.rows', {role: 'presentation'});
    this.scroller = el('div.table-scroll', {tabindex: 0, role: 'grid', 'aria-label': 'who holds the memory'}, this.body);
    this.heading = el('div.row.heading', {role: 'row'});
    this.footer = el('div.table-foot.dim');
    this.chosen = -1;
    this.scroller.addEventListener('scroll', () => this.draw());
    this.scroller.addEventListener('keydown', event => this.press(event));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  rebuild() {
    const {app} = this, {figures, state} = app, chosen = this.chosenLabel();
    this.key = figures.key(state.by);
    this.sums = {};
    for (const name of ['blocks', ...COLUMNS.map(column => column.name)]) this.sums[name] = figures.sumBy(this.key, name);
    this.courses = new Map();
    this.wheres = new Map();
    this.sort();
    this.chosen = chosen === undefined ? -1 : this.key.labels.indexOf(chosen);
    this.scroller.scrollTop = 0;
    this.draw();
  }

  chosenLabel() {
    return this.key && this.chosen >= 0 ? this.key.labels[this.chosen] : undefined;
  }

  // By the metric chosen, largest first; growth by what was added. Rows without anything to say are left out.
  sort() {
    const {state} = this.app, values = this.sums[state.metric], {sums, key} = this, matches = matcher(state.search);
    const direction = state.ascending ? -1 : 1;
    this.order = [];
    for (let i = 0; i < key.count; i++)
      if ((values[i] !== 0 || sums.live[i] !== 0) && (state.search === '' || matches(labelText(key.labels[i])))) this.order.push(i);
    // Of two recordings the largest change is the first, as in tracealloc diff.
    const rank = state.metric === 'growth' && this.app.data.compares ? Math.abs : value => value;
    this.order.sort((a, b) => direction * (rank(values[b]) - rank(values[a])) || sums.live[b] - sums.live[a] || a - b);
    this.most = Math.max(1, ...this.order.slice(0, 1000).map(i => Math.abs(values[i])));
  }

  // ---- drawing ----

  drawHeading() {
    const {state} = this.app;
    this.heading.parentElement.dataset.metric = state.metric;
    this.heading.replaceChildren(...COLUMNS.map(column => el('button.cell.number' + (state.metric === column.name ? '.sorted' : ''),
      {role: 'columnheader', 'aria-sort': state.metric !== column.name ? 'none' : state.ascending ? 'ascending' : 'descending',
        type: 'button', title: METRICS[column.name].what, 'data-column': column.name, onclick: () => this.app.sortBy(column.name)},
      column.label, state.metric === column.name ? state.ascending ? ' ↑' : ' ↓' : '')),
    el('span.cell.course', {role: 'columnheader'}, 'Course'), el('span.cell.where', {role: 'columnheader'}, 'Where'));
  }

  draw() {
    if (!this.order) return;
    this.drawHeading();
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - 4);
    const count = Math.ceil((this.scroller.clientHeight || 500) / ROW_HEIGHT) + 8;
    this.body.style.height = this.order.length * ROW_HEIGHT + 'px';
    this.scroller.style.height = Math.min(Math.max(this.order.length, 4), 11) * ROW_HEIGHT + 'px';
    this.body.replaceChildren(...this.order.slice(first, first + count).map((group, i) => this.row(group, first + i)));
    this.tellSum();
  }

  tellSum() {
    const {app} = this, {figures, state} = app, isBytes = METRICS[state.metric].unit === 'bytes';
    let sum = 0;
    for (const group of this.order) sum += this.sums[state.metric][group];
    this.footer.textContent = `${thingsText(this.order.length, 'row')}, together ` +
      (isBytes ? sizeText(sum, METRICS[state.metric].signed) : countText(sum)) +
      (this.order.length < this.key.count ? ` of ${isBytes ? sizeText(figures.sums[state.metric]) : countText(figures.sums[state.metric])}` : '');
  }

  row(group, index) {
    const label = this.key.labels[group], {state} = this.app, cells = COLUMNS.map(column => this.cell(group, column));
    return el('div.row' + (group === this.chosen ? '.chosen' : ''), {role: 'row', style: `top:${index * ROW_HEIGHT}px`,
      'data-row': index, 'aria-selected': group === this.chosen, onclick: () => this.choose(group)},
    cells, el('span.cell.course', {role: 'gridcell'}, this.courseOf(group), growthBadge(this.app.data, label)),
    el('span.cell.where', {role: 'gridcell'}, this.whereOf(group)),
    el('i.bar', {style: `width:${Math.min(Math.abs(this.sums[state.metric][group]) / this.most, 1) * 100}%`}));
  }

  cell(group, column) {
    const value = this.sums[column.name][group], metric = METRICS[column.name], isBytes = metric.unit === 'bytes';
    const text = value === 0 && column.name !== 'live' ? '–' : isBytes ? sizeText(value, metric.signed) : shortCount(value);
    const parts = text.split(' ');
    return el('span.cell.number' + (this.app.state.metric === column.name ? '.sorted' : '') +
      (metric.signed && value !== 0 ? value > 0 ? '.more' : '.less' : ''),
    {role: 'gridcell', 'data-column': column.name, 'data-value': value, title: isBytes ? `${countText(value)} bytes` : countText(value)},
    parts[0], parts.length > 1 && isBytes ? el('small', ' ' + parts[1]) : parts.slice(1).join(' '));
  }

  courseOf(group) {
    let svg = this.courses.get(group);
    if (svg === undefined) {
      const {figures} = this.app;
      this.courses.set(group, svg = sparkline(figures.course(figures.tracesOf(this.key, group)), 92, 20));
    }
    return svg;
  }

  whereOf(group) {
    let lines = this.wheres.get(group);
    if (lines === undefined) this.wheres.set(group, lines = whereLines(this.app, this.key, group));
    return lines;
  }

  // ---- choosing ----

  choose(group) {
    this.chosen = group;
    this.draw();
    this.app.chose(this.key, group);
  }

  // The group of which one asks that its label is so.
  find(test) {
    return this.key.labels.findIndex(test);
  }

  reveal(group) {
    const index = this.order.indexOf(group);
    if (index < 0) return;
    const top = index * ROW_HEIGHT, height = this.scroller.clientHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW_HEIGHT > this.scroller.scrollTop + height) this.scroller.scrollTop = top + ROW_HEIGHT - height;
  }

  press(event) {
    const steps = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9}, step = steps[event.key];
    if (step === undefined || this.order.length === 0 || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const at = this.order.indexOf(this.chosen);
    const next = this.order[Math.max(0, Math.min(this.order.length - 1, at < 0 ? 0 : at + step))];
    this.chosen = next;
    this.reveal(next);
    this.choose(next);
  }

  // On paper there is nothing to scroll.
  print() {
    this.body.style.height = Math.min(this.order.length, PRINTED_ROWS) * ROW_HEIGHT + 'px';
    this.body.replaceChildren(...this.order.slice(0, PRINTED_ROWS).map((group, i) => this.row(group, i)));
  }
}

function labelText(label) {
  return label.name ?? `${label.file}:${label.line} ${label.fullName} ${label.module}`;
}

// Words, all of which must occur; or /a pattern/.
function matcher(text) {
  const pattern = /^\/(.+)\/$/.exec(text);
  if (pattern)
    try {
      const expression = new RegExp(pattern[1], 'i');
      return name => expression.test(name);
    } catch {
      return () => false;
    }
  const words = text.toLowerCase().split(/\s+/).filter(word => word !== '');
  return name => {
    const lower = name.toLowerCase();
    return words.every(word => lower.includes(word));
  };
}

function growthBadge(data, label) {
  if (label.row === undefined) return null;
  const name = data.head.growth[data.rows.growth[label.row]];
  return name === 'unknown' ? null : el('em.badge.' + name, {title: data.texts.get(data.rows.reason[label.row])}, name);
}

// Two lines: what it is called, and where it is and what stands there, or who called it.
function whereLines(app, key, group) {
  const label = key.labels[group];
  if (label.name !== undefined)
    return [el('b', {title: label.name}, label.isPath ? app.shortPath(label.name) : label.name)];
  const place = label.line > 0 ? `${app.shortPath(label.file)}:${label.line}` : baseName(label.module || label.file);
  const source = label.line > 0 && !label.isFunction ? app.sourceLine(label.file, label.line) : '';
  return [el('b', {title: `${label.fullName || place}\n${label.file}${label.line > 0 ? ':' + label.line : ''}`}, label.func || place),
    el('span.source', label.func ? el('span.place', place + '   ') : null, source || app.callers(key, group, label))];
}
