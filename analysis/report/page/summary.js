// summary.js: the page in words: what lives, what grew, what the rest of the process is. For the selection.

function summary(app) {
  const {data, figures, state} = app;
  return (data.compares ? [...compared(app)] : [lives(app), grew(app), ...(state.range === null ? [rest(app), died(app)] : [])])
    .filter(sentence => sentence !== null).flatMap(sentence => [...sentence, ' ']);
}

const strong = text => el('b', text);

function nameOfGroup(app, label) {
  const named = label.name ?? (label.func || (label.line > 0 ? `${baseName(label.file)}:${label.line}` : baseName(label.file)));
  return el('button.link', {type: 'button', onclick: () => app.reveal(label)}, named);
}

function subject(app) {
  const {data, state} = app, {filter} = state;
  if (filter.source !== undefined) return processName(data.files[filter.source]);
  if (filter.domain !== undefined) return 'Domain ' + domainName(data, filter.domain);
  return data.files.length > 1 ? `${data.files.length} processes` : programName(data.files[0]);
}

// Of the groups of one's own code that with the most of a figure; with sign -1 the least, its value without the sign.
function largest(figures, name, sign = 1) {
  const key = figures.key('own'), sums = figures.sumBy(key, name);
  let best = -1;
  for (let i = 0; i < key.count; i++) if (best < 0 || sign * sums[i] > sign * sums[best]) best = i;
  return best < 0 || sign * sums[best] <= 0 ? null : {label: key.labels[best], value: sign * sums[best]};
}

function lives(app) {
  const {figures, data, state} = app, {sums} = figures, most = largest(figures, 'live');
  const when = state.range === null ? 'at the end' : `at ${timeText(endOf(app))}`;
  const words = [`${subject(app)} held `, strong(sizeText(sums.live)), ` in ${thingsText(sums.blocks, 'block')} ${when}`];
  if (sums.peak > 0) words.push(', and ', strong(sizeText(peakOf(app))), data.files.length > 1 ? ' each at its own peak' : ' at the most',
    state.range === null || data.points.count < 2 ? '' : ' in this range');
  words.push('.');
  if (sums.calls > 0) words.push(` Of ${countText(sums.calls)} allocations ${shareText(sums.temporary, sums.calls)} came and went.`);
  if (most !== null) words.push(' Most of what lives, ', strong(shareText(most.value, sums.live)), ', belongs to ', nameOfGroup(app, most.label), '.');
  return words;
}

// What the program knew as its peak is more than what was written down at one moment.
function peakOf(app) {
  const {figures, data, state} = app, isAll = state.range === null && Object.keys(state.filter).length === 0;
  return isAll && data.files.length === 1 ? Math.max(data.files[0].about.peak, figures.sums.peak) : figures.sums.peak;
}

function endOf(app) {
  const {data, figures} = app, ends = figures.selected.map(bound => bound.to < 0 ? 0 : data.points.time[bound.to] - figures.start);
  return Math.max(...ends);
}

function grew(app) {
  const {figures, data, state} = app, {sums} = figures;
  if (data.points.count < 2) return null;
  const most = largest(figures, 'growth'), steady = data.head.growth.indexOf('steady');
  const isMany = data.files.length > 1 && state.filter.source === undefined;
  const words = [state.range !== null ? `In this range ${isMany ? 'they' : 'it'} ` : isMany ? 'Since their first entries they ' : 'Since the first entry it ',
    sums.growth >= 0 ? 'grew by ' : 'shrank by ', strong(sizeText(Math.abs(sums.growth)))];
  if (most !== null && most.value <= sums.growth) words.push(', ', strong(sizeText(most.value)), ' of it in ', nameOfGroup(app, most.label));
  else if (most !== null) words.push(sums.growth > 0 ? '; ' : ', while ', nameOfGroup(app, most.label), ' grew by ', strong(sizeText(most.value)));
  words.push('.');
  const key = figures.key('own'), grown = figures.sumBy(key, 'growth');
  const leaks = key.labels.map((label, i) => ({label, value: grown[i], row: label.row}))
    .filter(({row, value}) => data.rows.growth[row] === steady && value > 0).sort((a, b) => b.value - a.value);
  if (leaks.length > 0) {
    const rate = data.rows.perMinute[leaks[0].row];
    words.push(' ', nameOfGroup(app, leaks[0].label), ` grows steadily${rate > 0 ? `, ${sizeText(rate)} a minute` : ''}`,
      leaks.length > 1 ? `, and so do ${leaks.length - 1} more.` : '.');
  }
  return words;
}

// Where the rest of the process is.
function rest(app) {
  const {data, state} = app;
  if (data.files.length > 1 || Object.keys(state.filter).length > 0) return null;
  const {about} = data.files[0], fact = name => Number(about.facts['memory.' + name] ?? 0), resident = fact('resident');
  if (resident === 0) return null;
  const tracing = fact('tracer'), files = fact('file'), other = Math.max(0, fact('anonymous') - about.current - tracing);
  const parts = [[files, 'are files and libraries'], [tracing, 'tracing'], [other, 'other memory: mmap, stacks, pools, what malloc keeps']]
    .filter(([bytes]) => bytes >= resident / 100).map(([bytes, name]) => `${sizeText(bytes)} ${name}`);
  return ['Of ', strong(sizeText(resident)), ` that the process had in memory, ${sizeText(about.current)} were live blocks`,
    parts.length > 0 ? '; ' + parts.join(', ') : '', '.'];
}

function died(app) {
  const facts = app.data.files[0].about.facts, signal = facts['crash.signal'];
  if (signal === undefined) return null;
  return [strong(`It was ended by ${signal}`), facts['crash.address'] ? ` at address ${facts['crash.address']}` : '',
    facts['crash.frame.0'] ? ` in ${facts['crash.frame.0']}` : '', '.'];
}

function* compared(app) {
  const {figures, data} = app, {sums} = figures, old = sums.live - sums.growth, more = largest(figures, 'growth');
  const share = old > 0 ? ` (${sums.growth >= 0 ? '+' : '−'}${(Math.abs(sums.growth) / old * 100).toFixed(1)} %)` : '';
  yield [`${baseName(data.files[0].path)} holds `, strong(sizeText(sums.live)), `, ${baseName(data.files[1].path)} `, strong(sizeText(old)),
    ': ', strong(sizeText(sums.growth, true)), share, '.'];
  if (more !== null) yield ['Most was added by ', nameOfGroup(app, more.label), ', ', strong(sizeText(more.value, true)), '.'];
  const less = largest(figures, 'growth', -1);
  if (less !== null) yield ['Most was released by ', nameOfGroup(app, less.label), ', ', strong(sizeText(-less.value, true)), '.'];
}
