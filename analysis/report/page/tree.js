// tree.js: the tree of calls as it is drawn. From main inwards it is made at once, in one pass over the nodes; from the
// allocator outwards a branch is made when it is first seen, because all of it would be larger than the recording.
//
// Both answer: value, base and blocks of a node, its children, its key. A key is a function, or a line; what libraries
// did may be left out, and recursion folded.

// Numbers for what frames are called in the picture.
class FrameKeys {
  constructor(data, byLine) {
    const {frames, texts} = data, numbers = new Map();
    this.of = new Int32Array(frames.count);
    this.frame = [];
    for (let i = 0; i < frames.count; i++) {
      const known = frames.func[i] !== 0;
      const id = known && !byLine ? 'f' + frames.func[i]
        : frames.line[i] > 0 ? `l${frames.file[i]}:${frames.line[i]}`
          : known ? 'f' + frames.func[i] : 'm' + (frames.module[i] || -frames.file[i]);
      let number = numbers.get(id);
      if (number === undefined) {
        numbers.set(id, number = this.frame.length);
        this.frame.push(i);
      }
      this.of[i] = number;
    }
    this.names = this.frame.map(frame => frameName(data, frame, byLine));
    this.isOwn = Uint8Array.from(this.frame, frame => frames.flags[frame] & 1);
  }
}

function frameName(data, frame, byLine) {
  const {frames, texts} = data, line = frames.line[frame], func = frames.short[frame] || frames.func[frame];
  const place = line > 0 ? `${baseName(texts.get(frames.file[frame]))}:${line}` : '';
  if (func !== 0) return byLine && place ? `${texts.get(func)}  ${place}` : texts.get(func);
  if (place) return place;
  return baseName(texts.get(frames.module[frame] || frames.file[frame]));
}

const PIECE = 30000; // nodes or traces between two moments in which the page may answer

class TopDownTree {
  constructor(data, keys) {
    this.data = data;
    this.keys = keys;
  }

  // Nodes come depth first, so the way from the root to a node is known when it comes. In pieces, as weighing is.
  * build(nodes, {ownOnly, fold}) {
    const {keys} = this, flags = this.data.frames.flags, size = nodes.count, of = new Int32Array(size);
    const parent = new Int32Array(size), key = new Int32Array(size), depth = new Int32Array(size);
    const slots = new Int32Array(1 << Math.ceil(Math.log2(size * 2 + 2))), mask = slots.length - 1;
    const onWay = fold ? new Int32Array(keys.frame.length) : null; // key: node on the way from the root
    const setBy = fold ? new Int32Array(nodes.count) : null;       // by depth: the key + 1 that was put on the way there
    let count = 1, last = 0;
    key[0] = -1;
    for (let node = 1; node < nodes.count; node++) {
      if (node % PIECE === 0) yield;
      const frame = nodes.frame[node], above = of[nodes.parent[node]], name = keys.of[frame], level = nodes.depth[node];
      if (fold)
        for (; last >= level; last--)
          if (setBy[last] > 0) {
            onWay[setBy[last] - 1] = 0;
            setBy[last] = 0;
          }
      last = level;
      if (ownOnly && (flags[frame] & 1) === 0) {
        of[node] = above;
        continue;
      }
      if (fold && onWay[name] > 0) {
        of[node] = onWay[name];
        continue;
      }
      let at = (Math.imul(above, 0x9E3779B1) ^ Math.imul(name + 1, 0x85EBCA6B)) >>> 0;
      at = (at ^ at >>> 15) & mask;
      while (slots[at] !== 0 && (parent[slots[at]] !== above || key[slots[at]] !== name)) at = at + 1 & mask;
      if (slots[at] === 0) {
        slots[at] = count;
        parent[count] = above;
        key[count] = name;
        depth[count] = depth[above] + 1;
        count++;
      }
      of[node] = slots[at];
      if (fold) {
        onWay[name] = of[node];
        setBy[level] = name + 1;
      }
    }
    this.of = of;
    this.count = count;
    this.parent = parent.subarray(0, count);
    this.key = key.subarray(0, count);
    this.depth = depth.subarray(0, count);
    this.child = new Int32Array(count);
    this.sibling = new Int32Array(count);
    for (let i = count - 1; i > 0; i--) {
      this.sibling[i] = this.child[parent[i]];
      this.child[parent[i]] = i;
    }
  }

  // Sums one or two figures up the tree. Children have larger numbers than their parents.
  * weigh(figures, metric) {
    const {traces} = this.data, {of, parent, count} = this, change = new Float64Array(count);
    const value = new Float64Array(count), blocks = new Float64Array(count), values = figures[metric];
    for (let trace = 0; trace < traces.count; trace++) {
      if (trace % PIECE === 0) yield;
      const node = of[traces.node[trace]];
      value[node] += widthOf(figures, metric, values, trace);
      change[node] += figures.growth[trace];
      blocks[node] += figures.blocks[trace];
    }
    for (let i = count - 1; i > 0; i--) {
      if (i % PIECE === 0) yield;
      value[parent[i]] += value[i];
      change[parent[i]] += change[i];
      blocks[parent[i]] += blocks[i];
    }
    Object.assign(this, {value, change, blocks});
  }

  children(node) {
    const list = [];
    for (let child = this.child[node]; child !== 0; child = this.sibling[child])
      if (this.value[child] > 0) list.push(child);
    return list;
  }
}

// How wide a trace is: for growth as wide as the larger of before and after, as a difference has no size of its own.
function widthOf(figures, metric, values, trace) {
  if (metric !== 'growth') return values[trace];
  const now = figures.live[trace], before = now - figures.growth[trace];
  return Math.max(now, before, 0);
}

// From the place that asked outwards. A node is a set of traces, each with the node of the recording that it has reached.
class BottomUpTree {
  constructor(data, keys, options) {
    this.data = data;
    this.keys = keys;
    this.options = options;
  }

  * build() {}

  * weigh(figures, metric) {
    const {nodes, traces} = this.data, values = figures[metric];
    const width = new Float64Array(nodes.count), change = new Float64Array(nodes.count);
    const blocks = new Float64Array(nodes.count), starts = [];
    for (let trace = 0; trace < traces.count; trace++) {
      if (trace % PIECE === 0) yield;
      const node = traces.node[trace], wide = widthOf(figures, metric, values, trace);
      if (wide > 0 && width[node] === 0) starts.push(node);
      width[node] += wide;
      change[node] += figures.growth[trace];
      blocks[node] += figures.blocks[trace];
    }
    Object.assign(this, {widths: width, changes: change, allBlocks: blocks});
    this.key = [-1];
    this.parent = [0];
    this.depth = [0];
    this.value = [0];
    this.change = [0];
    this.blocks = [0];
    this.starts = [Int32Array.from(starts)]; // where the traces of a node began
    this.reached = [Int32Array.from(starts)]; // and where they are: the next frame to look at
    this.made = [null];
    this.numbers = new Int32Array(this.keys.frame.length); // for children(): by key
    for (const start of starts) {
      this.value[0] += width[start];
      this.change[0] += change[start];
      this.blocks[0] += blocks[start];
    }
    yield;
    this.children(0); // the largest piece
  }

  // The next node outwards that is shown, or 0.
  skip(node, last) {
    const {nodes, frames} = this.data, {ownOnly, fold} = this.options;
    while (node !== 0) {
      const frame = nodes.frame[node];
      if (!(ownOnly && (frames.flags[frame] & 1) === 0) && !(fold && this.keys.of[frame] === last)) return node;
      node = nodes.parent[node];
    }
    return 0;
  }

  children(node) {
    if (this.made[node] !== null) return this.made[node];
    const {nodes} = this.data, starts = this.starts[node], reached = this.reached[node], children = [];
    const number = this.numbers, places = new Int32Array(starts.length);
    for (let i = 0; i < starts.length; i++) {
      const at = reached[i] = this.skip(reached[i], this.key[node]);
      if (at === 0) continue;
      const key = this.keys.of[nodes.frame[at]];
      if (number[key] === 0) {
        children.push({key, count: 0, value: 0, change: 0, blocks: 0});
        number[key] = children.length;
      }
      const child = children[(places[i] = number[key]) - 1];
      child.count++;
      child.value += this.widths[starts[i]];
      child.change += this.changes[starts[i]];
      child.blocks += this.allBlocks[starts[i]];
    }
    for (const child of children) {
      number[child.key] = 0;
      child.starts = new Int32Array(child.count);
      child.reached = new Int32Array(child.count);
      child.count = 0;
    }
    for (let i = 0; i < starts.length; i++) {
      if (places[i] === 0) continue;
      const child = children[places[i] - 1];
      child.starts[child.count] = starts[i];
      child.reached[child.count++] = nodes.parent[reached[i]];
    }
    this.reached[node] = null;
    return this.made[node] = children.map(child => this.add(node, child));
  }

  add(parent, child) {
    this.parent.push(parent);
    this.depth.push(this.depth[parent] + 1);
    for (const name of ['key', 'value', 'change', 'blocks', 'starts', 'reached']) this[name].push(child[name]);
    this.made.push(null);
    return this.key.length - 1;
  }
}
