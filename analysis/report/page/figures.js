// figures.js: what every trace holds, held and asked for within the selection, and its sums by any key. The same sums as
// the program's: top for the end of the selection, diff for its two ends.

const METRICS = {
  live: {name: 'Live', unit: 'bytes', what: 'bytes live at the end'},
  growth: {name: 'Growth', unit: 'bytes', signed: true, what: 'bytes more than at the beginning'},
  peak: {name: 'Peak', unit: 'bytes', what: 'bytes live at the peak'},
  total: {name: 'Allocated', unit: 'bytes', what: 'bytes asked for'},
  calls: {name: 'Calls', unit: 'calls', what: 'allocations'},
  temporary: {name: 'Temporary', unit: 'calls', what: 'blocks that came and went'},
};

const FIGURES = ['live', 'growth', 'peak', 'total', 'calls', 'blocks', 'blocksGrowth', 'temporary'];

class Figures {
  constructor(data) {
    this.data = data;
    const count = data.traces.count;
    for (const name of FIGURES)
      this[name] = new Float64Array(count);
    this.keys = {};
    this.start = Math.min(...data.files.map(file => data.points.time[file.first]));
    this.totals = this.totalsOfPoints();
  }

  // Live bytes of every point, all of its file's traces together; and of one filter.
  totalsOfPoints(keep) {
    const {traces, points, files} = this.data, totals = new Float64Array(points.count), {changes} = traces;
    for (let trace = 0; trace < traces.count; trace++) {
      if (keep && !keep(trace)) continue;
      for (let i = traces.first[trace]; i < traces.first[trace + 1]; i++) totals[changes.point[i]] += changes.size[i];
    }
    for (const file of files)
      for (let point = file.first + 1; point <= file.last; point++) totals[point] += totals[point - 1];
    return totals;
  }

  // By file: the points that a range of time begins and ends at; `from` is -1 where it begins before the file.
  bounds(range) {
    const {points, files} = this.data;
    return files.map(file => {
      if (range === null) return {from: file.first, to: file.last};
      let from = -1, to = -1;
      for (let point = file.first; point <= file.last; point++) {
        const time = points.time[point] - this.start;
        if (time <= range[0]) from = point;
        if (time <= range[1]) to = point;
      }
      return {from, to};
    });
  }

  // What the selection is: a range of time or null, and a filter.
  select(range, filter) {
    this.range = range;
    const {traces, points} = this.data, bounds = this.bounds(range);
    const keep = filter && Object.keys(filter).length > 0
      ? trace => Object.entries(filter).every(([key, value]) => traces[key][trace] === value) : null;
    const totals = keep ? this.totalsOfPoints(keep) : this.totals;
    for (const bound of bounds) {
      bound.highest = bound.from < 0 ? bound.to : bound.from;
      bound.restart = -1;
      for (let point = Math.max(bound.from, 0); point >= 0 && point <= bound.to; point++) {
        if (totals[point] > totals[bound.highest]) bound.highest = point;
        if (points.restarts[point] && point > bound.from) bound.restart = point;
      }
    }
    const knowsPeak = range === null && traces.peak.some(peak => peak > 0);
    this.walk(bounds, keep, knowsPeak);
    if (this.data.compares) this.compare();
    this.sums = {};
    for (const name of FIGURES) {
      let sum = 0;
      for (const value of this[name]) sum += value;
      this.sums[name] = sum;
    }
    this.selected = bounds;
    this.knowsPeak = knowsPeak;
  }

  // Every trace through its changes. This is what a selection costs, so it looks nothing up that it need not.
  walk(bounds, keep, knowsPeak) {
    const {first, source, count, peak: knownPeaks, changes} = this.data.traces, {point, size, count: counts, calls: allCalls, bytes: allBytes} = changes;
    const isWhole = this.range === null;
    for (let trace = 0; trace < count; trace++) {
      const {from, to, highest, restart} = bounds[source[trace]], isKept = keep === null || keep(trace);
      let live = 0, base = 0, peak = 0, blocks = 0, baseBlocks = 0, calls = 0, bytes = 0, baseCalls = 0, baseBytes = 0;
      for (let i = first[trace], end = isKept ? first[trace + 1] : i; i < end && point[i] <= to; i++) {
        live += size[i];
        blocks += counts[i];
        calls += allCalls[i];
        bytes += allBytes[i];
        if (point[i] <= highest) peak = live;
        if (point[i] <= from) {
          base = live;
          baseBlocks = blocks;
          baseCalls = calls;
          baseBytes = bytes;
        }
      }
      if (isWhole || restart >= 0) baseCalls = baseBytes = 0; // since tracing began, or since it was cleared
      this.live[trace] = live;
      this.growth[trace] = live - base;
      this.peak[trace] = knowsPeak ? isKept ? knownPeaks[trace] : 0 : peak;
      this.blocks[trace] = blocks;
      this.blocksGrowth[trace] = blocks - baseBlocks;
      this.calls[trace] = calls - baseCalls;
      this.total[trace] = bytes - baseBytes;
      this.temporary[trace] = Math.max(0, calls - baseCalls - (isWhole ? blocks : blocks - baseBlocks));
    }
  }

  // Of two files the first counts, and grows from the second.
  compare() {
    const {traces} = this.data;
    for (let trace = 0; trace < traces.count; trace++) {
      const isOld = traces.source[trace] === 1, live = this.live[trace], blocks = this.blocks[trace];
      this.growth[trace] = isOld ? -live : live;
      this.blocksGrowth[trace] = isOld ? -blocks : blocks;
      if (isOld)
        for (const name of ['live', 'peak', 'total', 'calls', 'blocks', 'temporary']) this[name][trace] = 0;
    }
  }

  // Which group of a key a trace is in, and what the groups are called.
  key(name) {
    return this.keys[name] ??= this.makeKey(name);
  }

  makeKey(name) {
    const {traces, nodes, frames, texts, files} = this.data, of = new Int32Array(traces.count), numbers = new Map();
    const labels = [];
    const group = (trace, id, label) => {
      let number = numbers.get(id);
      if (number === undefined) {
        numbers.set(id, number = labels.length);
        labels.push(label());
      }
      of[trace] = number;
    };
    const place = (table, i) => ({
      file: texts.get(table.file[i]), line: table.line[i], func: texts.get(table.short[i] || table.func[i]),
      fullName: texts.get(table.func[i]), module: texts.get(table.module[i]),
    });
    for (let trace = 0; trace < traces.count; trace++) {
      const frame = nodes.frame[traces.node[trace]];
      if (name === 'own') {
        const row = traces.row[trace];
        group(trace, row, () => ({...place(this.data.rows, row), row}));
      } else if (name === 'line') {
        const line = frames.line[frame]; // where there is none, the function
        group(trace, line > 0 ? frames.file[frame] * 4294967296 + line : `${frames.module[frame]} ${frames.func[frame]}`,
          () => place(frames, frame));
      } else if (name === 'function') {
        const func = frames.func[frame];
        group(trace, func, () => ({...place(frames, frame), name: func === 0 ? '<unknown>' : undefined, isFunction: true}));
      } else if (name === 'file') {
        group(trace, frames.file[frame], () => ({name: texts.get(frames.file[frame]), isPath: true}));
      } else if (name === 'module') {
        const module = frames.module[frame];
        group(trace, module, () => ({name: module === 0 ? '<unknown>' : texts.get(module), isPath: true}));
      } else if (name === 'domain') {
        const number = traces.domain[trace];
        group(trace, number, () => ({name: domainName(this.data, number), filter: {domain: number}}));
      } else if (name === 'thread') {
        const number = traces.thread[trace];
        group(trace, number, () => ({name: number === 0 ? 'not kept apart' : 'thread ' + number, filter: {thread: number}}));
      } else {
        const source = traces.source[trace];
        group(trace, source, () => ({name: processName(files[source]), filter: {source}}));
      }
    }
    return {name, of, labels, count: labels.length};
  }

  // The sums of one figure by the groups of a key.
  sumBy(key, name) {
    const sums = new Float64Array(key.count), values = this[name];
    for (let trace = 0; trace < values.length; trace++) sums[key.of[trace]] += values[trace];
    return sums;
  }

  // The traces of a group; made for all groups when it is first asked.
  tracesOf(key, group) {
    if (!key.first) {
      key.first = new Int32Array(key.count + 1);
      key.list = new Int32Array(key.of.length);
      for (const number of key.of) key.first[number + 1]++;
      for (let i = 0; i < key.count; i++) key.first[i + 1] += key.first[i];
      const next = key.first.slice();
      key.of.forEach((number, trace) => key.list[next[number]++] = trace);
    }
    return key.list.subarray(key.first[group], key.first[group + 1]);
  }

  // Live bytes of some traces at every point of the longest file, and when those points were.
  course(tracesOfGroup) {
    const {traces, files, points} = this.data, {changes} = traces;
    const weights = files.map(() => 0);
    for (const trace of tracesOfGroup) weights[traces.source[trace]] += 1 + Math.abs(this.peak[trace]);
    const file = files[weights.indexOf(Math.max(...weights))];
    const values = new Float64Array(file.points);
    for (const trace of tracesOfGroup)
      if (files[traces.source[trace]] === file)
        for (let i = traces.first[trace]; i < traces.first[trace + 1]; i++)
          values[changes.point[i] - file.first] += changes.size[i];
    for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
    return {values, file, times: Array.from(values, (_, i) => points.time[file.first + i] - points.time[file.first])};
  }

  // A figure summed up the tree: by node, with all below.
  nodeTotals(name) {
    const {nodes, traces} = this.data, totals = new Float64Array(nodes.count), values = this[name];
    for (let trace = 0; trace < traces.count; trace++) totals[traces.node[trace]] += values[trace];
    for (let node = nodes.count - 1; node > 0; node--) totals[nodes.parent[node]] += totals[node];
    return totals;
  }
}

function domainName(data, number) {
  for (const file of data.files)
    for (const domain of file.about.domains)
      if (domain.number === number && domain.name !== '') return `${number} ${domain.name}`;
  return number === 0 ? '0 default' : String(number);
}

// What it was called as: the program itself may go by another name.
function programName(file) {
  return baseName((file.name || file.about.facts['process.command'] || file.about.program || file.path).split(' ')[0]);
}

function processName(file) {
  const command = file.name || file.about.facts['process.command'] || file.about.program || file.path;
  const [program, ...rest] = command.split(' ');
  return [baseName(program), ...rest].join(' ') + (file.about.pid ? ` (${file.about.pid})` : '');
}
