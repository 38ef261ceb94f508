// cards.js: the smaller pictures: sizes of blocks, domains with their limits, processes, and what is to be known of the
// recording itself.

// How often blocks of each power of two were asked for; a stack that asks for several sizes counts with their mean.
function sizeClasses(app, traces) {
  const {figures} = app, classes = [];
  const add = trace => {
    if (figures.calls[trace] <= 0) return;
    const size = figures.total[trace] / figures.calls[trace], index = size < 1 ? 0 : Math.floor(Math.log2(size)) + 1;
    classes[index] = (classes[index] ?? 0) + figures.calls[trace];
  };
  if (traces) traces.forEach(add);
  else for (let trace = 0; trace < app.data.traces.count; trace++) add(trace);
  const first = classes.findIndex(count => count > 0);
  return first < 0 ? [] : Array.from({length: classes.length - first}, (_, i) => ({index: first + i, count: classes[first + i] ?? 0}));
}

function sizeBars(classes) {
  const most = Math.max(...classes.map(entry => entry.count)), all = classes.reduce((sum, entry) => sum + entry.count, 0);
  const label = index => index === 0 ? '0 B' : sizeText(2 ** (index - 1)).replace(' ', ' ');
  return el('div.bars', classes.map(({index, count}) => el('div.bar-column', {'data-class': index, 'data-value': count,
    title: `${index === 0 ? 'nothing' : `${sizeText(2 ** (index - 1))} to ${sizeText(2 ** index - 1)}`}: ${thingsText(count, 'call')}, ${shareText(count, all)}`},
  el('i', {style: `height:${count > 0 ? Math.max(count / most * 100, 1.5) : 0}%`}), el('span', index % 3 === 1 || classes.length < 6 ? label(index) : ''))));
}

function drawSizes(app, element) {
  const classes = sizeClasses(app);
  fill(element, el('h2', 'Sizes'), el('p.dim', 'Blocks asked for, by powers of two'),
    classes.length > 0 ? sizeBars(classes) : el('p.dim', 'Nothing was asked for in this range.'));
}

// ---- domains ----

function drawDomains(app, element) {
  const {figures, data} = app, key = figures.key('domain');
  element.hidden = key.count < 2 && !data.files.some(file => file.about.domains.some(domain => domain.limit > 0));
  if (element.hidden) return;
  const live = figures.sumBy(key, 'live'), calls = figures.sumBy(key, 'calls'), blocks = figures.sumBy(key, 'blocks');
  const known = number => data.files.map(file => file.about.domains.find(domain => domain.number === number)).filter(Boolean);
  const rows = key.labels.map((label, i) => ({label, i, about: known(label.filter.domain)}));
  rows.sort((a, b) => live[b.i] - live[a.i]);
  fill(element, el('h2', 'Domains'), el('table.plain', el('thead', el('tr', el('th.text', 'Domain'), el('th', 'Live'),
    el('th', 'Blocks'), el('th', 'Calls'), el('th', 'Peak'), el('th.text', 'Limit'))), el('tbody', rows.map(({label, i, about}) => {
    const limit = about.length > 0 ? about[0].limit : 0, peak = about.reduce((sum, domain) => sum + domain.peak, 0);
    return el('tr.choice', {'data-domain': label.filter.domain, tabindex: 0, ...onChoice(() => app.setFilter(label.filter))}, el('td.text', label.name),
      el('td.number', {'data-value': live[i]}, sizeText(live[i])), el('td.number', {'data-value': blocks[i]}, countText(blocks[i])),
      el('td.number', {'data-value': calls[i]}, shortCount(calls[i])), el('td.number', peak > 0 ? sizeText(peak) : '–'),
      el('td.text', limit > 0 ? [el('span.limit', {title: shareText(live[i], limit) + ' of the limit'},
        el('i' + (peak > limit * 0.9 ? '.near' : ''), {style: `width:${Math.min(100, live[i] / limit * 100)}%`}),
        el('u', {style: `left:${Math.min(100, peak / limit * 100)}%`})), sizeText(limit)] : '–'));
  }))));
}

const onChoice = act => ({onclick: act, onkeydown: event => {
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    act();
  }
}});

// ---- processes ----

function drawProcesses(app, element) {
  const {figures, data} = app, {files, points} = data;
  element.hidden = files.length < 2 || data.compares;
  if (element.hidden) return;
  const key = {of: data.traces.source, count: files.length}, live = figures.sumBy(key, 'live'), peak = figures.sumBy(key, 'peak');
  const calls = figures.sumBy(key, 'calls'), parentOf = file => file.parent || Number(file.about.facts['process.parent'] ?? 0);
  const pidOf = file => file.process || file.about.pid;
  const depthOf = (file, seen = 0) => {
    const above = seen > 20 ? undefined : files.find(other => other !== file && pidOf(other) === parentOf(file) && pidOf(other) !== pidOf(file));
    return above === undefined ? 0 : 1 + depthOf(above, seen + 1);
  };
  const row = (file, source) => {
    const seconds = points.time[file.last] - points.time[file.first], start = points.time[file.first] - figures.start;
    return el('tr.choice', {'data-source': source, tabindex: 0, ...onChoice(() => app.setFilter({source}))},
      el('td.text', {style: `padding-left:${6 + depthOf(file) * 16}px`, title: file.about.facts['process.command'] ?? file.about.program}, processName(file)),
      el('td.number', {'data-value': live[source]}, sizeText(live[source])), el('td.number', {'data-value': peak[source]}, sizeText(peak[source])),
      el('td.number', {'data-value': calls[source]}, shortCount(calls[source])), el('td.number', timeText(start)), el('td.number', timeText(seconds)),
      el('td.text', endText(file)));
  };
  fill(element, el('h2', `${files.length} processes`), el('div.wide-scroll', el('table.plain', el('thead', el('tr', el('th.text', 'Process'), el('th', 'Live at its end'),
    el('th', 'Peak'), el('th', 'Calls'), el('th', 'Began'), el('th', 'Lasted'), el('th.text', 'Ended'))), el('tbody', files.map(row)))));
}

function endText(file) {
  const {reason} = file.about;
  if (file.end && file.end !== '-') return /^\d+$/.test(file.end) ? (file.end === '0' ? 'normally' : 'status ' + file.end) : file.end;
  return {exit: 'normally', exec: 'became another program', end: 'without a word'}[reason] ?? '–';
}

// ---- about ----

function drawAbout(app, element) {
  const {data} = app, facts = [], add = (name, value) => value && facts.push(el('div', el('dt', name), el('dd', value)));
  const file = data.files[0], {about} = file, notes = warnings(data);
  add('Program', about.program);
  add('Command', about.facts['process.command']);
  add('Host', about.host);
  add('Began', about.start > 0 ? new Date(about.start).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '');
  add(data.files.length > 1 ? 'Recordings' : 'Recording', data.files.slice(0, 20).map(entry => entry.path).join('\n') + (data.files.length > 20 ? '\n…' : ''));
  add('Points of time', countText(data.points.count) + (data.points.index[file.last] + 1 > file.points ? ` of ${countText(data.points.index[file.last] + 1)} entries` : ''));
  add('Stacks', `${countText(data.traces.count)}, of ${countText(data.nodes.count - 1)} frames in a tree`);
  if (about.sampled > 0) add('Sampled', `one allocation in ${sizeText(about.sampled)}: figures are estimates`);
  for (const [name, value] of Object.entries(about.facts))
    if (!/^(memory|process|faults|crash)\.|^run$/.test(name)) add(name, value);
  fill(element, el('h2', 'About'), notes.length > 0 ? el('ul.notes', notes.map(note => el('li', note))) : null, el('dl.about', facts));
}

// What makes figures or names less than one would expect.
function warnings(data) {
  const notes = [], bare = new Map();
  for (const file of data.files) {
    const {about} = file, name = data.files.length > 1 ? processName(file) + ': ' : '';
    if (about.warning) notes.push(name + about.warning);
    if (about.lost > 0) notes.push(`${name}${thingsText(about.lost, 'block')} could not be traced`);
    if (about.overflowed > 0) notes.push(`${name}${thingsText(about.overflowed, 'block')} under a stack for what is left over: there were too many stacks`);
    for (const module of about.unsymbolized) bare.set(module.path, module.reason);
  }
  const reasons = new Map();
  for (const [path, reason] of bare) reasons.set(reason, [...(reasons.get(reason) ?? []), baseName(path)]);
  for (const [reason, names] of reasons)
    notes.push(`No lines of ${names.slice(0, 8).join(', ')}${names.length > 8 ? ` and ${names.length - 8} more` : ''}: ${reason}`);
  return notes;
}
