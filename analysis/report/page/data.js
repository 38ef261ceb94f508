// data.js: the report's tables, read back from the page: docs/report.md describes them. Everything else stands on this.

const decoder = new TextDecoder();

async function inflate(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// One column of numbers of seven bits a byte. `signed`: 0, 1, 2, 3 stand for 0, -1, 1, -2.
function readColumn(bytes, at, count, signed, Kind) {
  const values = new Kind(count);
  for (let i = 0; i < count; i++) {
    let value = 0, scale = 1, byte = bytes[at++];
    while (byte >= 128) {
      value += (byte - 128) * scale;
      scale *= 128;
      byte = bytes[at++];
    }
    value += byte * scale;
    values[i] = signed ? (value % 2 === 1 ? -(value + 1) / 2 : value / 2) : value;
  }
  return values;
}

const SIGNED = new Set(['trace.row', 'trace.peak', 'change.count', 'change.calls', 'change.size', 'change.bytes',
  'point.time']);
const LARGE = /^(trace\.(peak|each)|change\.(count|calls|size|bytes)|point\.|row\.(grown|per))/;

// Texts are made when somebody looks at them.
class Texts {
  constructor(bytes, at, lengths) {
    this.bytes = bytes;
    this.starts = new Uint32Array(lengths.length + 1);
    this.made = new Array(lengths.length);
    this.starts[0] = at;
    for (let i = 0; i < lengths.length; i++) this.starts[i + 1] = this.starts[i] + lengths[i];
  }
  get(number) {
    return this.made[number] ??= decoder.decode(this.bytes.subarray(this.starts[number], this.starts[number + 1]));
  }
}

// The tree comes depth first: how far up from the node before, then a step down. Frames are numbered as they appear.
function readTree(up, frames) {
  const count = up.length + 1, parent = new Int32Array(count), frame = new Int32Array(count).fill(-1);
  const depth = new Int32Array(count);
  let next = 0;
  for (let i = 1; i < count; i++) {
    let above = i - 1;
    for (let steps = up[i - 1]; steps > 0; steps--) above = parent[above];
    parent[i] = above;
    depth[i] = depth[above] + 1;
    frame[i] = frames[i - 1] === 0 ? next++ : frames[i - 1] - 1;
  }
  return {count, parent, frame, depth};
}

function readTraces(columns) {
  const count = columns['trace.node'].length, node = columns['trace.node'], row = columns['trace.row'];
  const first = new Int32Array(count + 1), peak = columns['trace.peak'];
  for (let i = 1; i < count; i++) {
    node[i] += node[i - 1];
    row[i] += row[i - 1];
  }
  const changes = {
    point: columns['change.point'], count: columns['change.count'], calls: columns['change.calls'],
    size: new Float64Array(columns['change.point'].length), bytes: new Float64Array(columns['change.point'].length),
  };
  let at = 0, plain = 0;
  for (let i = 0; i < count; i++) {
    const each = columns['trace.each'][i];
    let live = 0, point = 0;
    for (const end = at + columns['trace.changes'][i]; at < end; at++) {
      point = changes.point[at] += point;
      changes.size[at] = each > 0 ? each * changes.count[at] : columns['change.size'][plain];
      changes.bytes[at] = each > 0 ? each * changes.calls[at] : columns['change.bytes'][plain++];
      live += changes.size[at];
    }
    peak[i] += live;
    first[i + 1] = at;
  }
  return {count, node, row, peak, first, changes, source: columns['trace.source'], domain: columns['trace.domain'],
    thread: columns['trace.thread']};
}

// Points of all files one after another; each file knows which are its own.
function readPoints(columns, files) {
  const time = columns['point.time'], count = time.length;
  for (let i = 1; i < count; i++) time[i] += time[i - 1];
  let first = 0;
  for (const file of files) {
    file.first = first;
    first += file.points;
    file.last = first - 1;
  }
  return {count, time, index: columns['point.index'], resident: columns['point.resident'],
    reason: columns['point.reason'], restarts: columns['point.restarts']};
}

async function readData() {
  const element = document.getElementById('data');
  const bytes = await inflate(element.textContent);
  element.remove();
  const length = new DataView(bytes.buffer).getUint32(0, true), columns = {};
  const head = JSON.parse(decoder.decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  for (const [name, count, size] of head.columns) {
    columns[name] = readColumn(bytes, at, count, SIGNED.has(name), LARGE.test(name) ? Float64Array : Int32Array);
    at += size;
  }
  const place = kind => ({
    file: columns[kind + '.file'], func: columns[kind + '.function'], short: columns[kind + '.short'],
    module: columns[kind + '.module'], line: columns[kind + '.line'], count: columns[kind + '.line'].length,
  });
  return {
    head, files: head.files, sources: head.sources, compares: head.compares === 1,
    texts: new Texts(bytes, at, columns['text.length']),
    frames: {...place('frame'), flags: columns['frame.flags']},
    rows: {...place('row'), growth: columns['row.growth'], certainty: columns['row.certainty'],
      perMinute: columns['row.perMinute'], perCall: columns['row.perCall'], grown: columns['row.grown'],
      reason: columns['row.reason']},
    nodes: readTree(columns['node.up'], columns['node.frame']),
    points: readPoints(columns, head.files),
    traces: readTraces(columns),
  };
}
