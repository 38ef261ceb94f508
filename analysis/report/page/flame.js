// flame.js: the tree of calls as boxes on a canvas, as wide as what they hold. Only what is wide enough to be seen is
// looked at, and only the rows in view are drawn: so it stays fluid at hundreds of thousands of nodes.
// docs/decisions/0013-report.md says why no library draws it.

const FLAME_ROW = 18;

class Flame {
  constructor(app) {
    this.app = app;
    this.options = {upside: false, outwards: false, ownOnly: false, fold: false, byLine: false};
    this.zoomed = 0;
    this.boxes = [];
    this.marked = null;
    this.canvas = el('canvas', {role: 'img', 'aria-label': 'tree of calls'});
    this.mark = el('div.flame-mark');
    this.space = el('div.flame-space', this.canvas, this.mark);
    this.scroller = el('div.flame', {tabindex: 0, 'aria-label': 'tree of calls: arrow keys move, Enter zooms'}, this.space);
    this.tip = el('div.tip', {hidden: true});
    document.body.append(this.tip);
    this.scroller.addEventListener('scroll', () => this.draw());
    this.canvas.addEventListener('mousemove', event => this.hover(event));
    this.canvas.addEventListener('mouseleave', () => this.leave());
    this.canvas.addEventListener('click', event => this.click(event));
    this.scroller.addEventListener('keydown', event => this.press(event));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  // The tree anew: after another selection only its sums are.
  * rebuild() {
    const {app, options} = this, {data} = app, path = this.path(this.zoomed), allKeys = this.allKeys ??= {};
    const keys = allKeys[options.byLine] ??= new FrameKeys(data, options.byLine);
    const name = JSON.stringify([options.outwards, options.ownOnly, options.fold, options.byLine]);
    let {tree} = this;
    if (this.treeName !== name) {
      yield;
      tree = options.outwards ? new BottomUpTree(data, keys, {...options}) : new TopDownTree(data, keys);
      yield* tree.build(data.nodes, options);
    }
    yield* tree.weigh(app.figures, app.state.metric);
    Object.assign(this, {keys, tree, treeName: name});
    this.zoomed = this.follow(path);
    this.search(app.state.search);
  }

  // Names from the root to a node, and back: numbers change with the tree.
  path(node) {
    const names = [];
    for (; this.tree && node > 0; node = this.tree.parent[node]) names.unshift(this.keys.names[this.tree.key[node]]);
    return names;
  }

  follow(names) {
    let node = 0;
    for (const name of names) {
      const next = this.tree.children(node).find(child => this.keys.names[this.tree.key[child]] === name);
      if (next === undefined) return 0;
      node = next;
    }
    return node;
  }

  search(text) {
    const matches = matcher(text);
    this.hits = text === '' ? null : Uint8Array.from(this.keys.names, (name, i) =>
      matches(name) || matches(this.app.fileOf(this.keys.frame[i])) ? 1 : 0);
    this.draw();
  }

  // Frames that are framed: those of a row that was chosen.
  markFrames(frames) {
    this.marked = frames !== null && frames.size > 0 ? frames : null;
    this.draw();
  }

  // ---- layout ----

  // Boxes in view: the ones above the zoomed one as wide as the picture, then everything that is wide enough.
  layOut(width, top, bottom) {
    const {tree} = this, boxes = [], chain = [];
    for (let node = this.zoomed; ; node = tree.parent[node]) {
      chain.unshift(node);
      if (node === 0) break;
    }
    const all = tree.value[this.zoomed], scale = all > 0 ? width / all : 0;
    if (all === 0) boxes.push({node: 0, x: 0, wide: width, depth: 0, isAbove: false});
    let rows = chain.length;
    const level = (node, x, depth) => {
      const wide = tree.value[node] * scale;
      rows = Math.max(rows, depth + 1);
      if (depth >= top && depth <= bottom) boxes.push({node, x, wide, depth, isAbove: depth < chain.length - 1});
    };
    for (let depth = 0; depth < chain.length - 1; depth++)
      if (depth >= top && depth <= bottom)
        boxes.push({node: chain[depth], x: 0, wide: width, depth, isAbove: true});
    const waiting = [[this.zoomed, 0, chain.length - 1]];
    const until = performance.now() + 8; // what is not made yet comes with the next frames
    this.isPartial = false;
    while (waiting.length > 0) {
      const [node, x, depth] = waiting.pop();
      level(node, x, depth);
      if (this.options.outwards && tree.made[node] === null && performance.now() > until) {
        this.isPartial = true;
        continue;
      }
      const wide = [], rest = {count: 0, value: 0};
      for (const child of tree.children(node)) {
        if (tree.value[child] * scale >= 0.6) {
          wide.push(child);
          continue;
        }
        rest.count++;
        rest.value += tree.value[child];
      }
      wide.sort((a, b) => tree.value[b] - tree.value[a]);
      let at = x;
      for (const child of wide) {
        waiting.push([child, at, depth + 1]);
        at += tree.value[child] * scale;
      }
      if (rest.value * scale >= 2 && depth + 1 >= top && depth < bottom) // together they can be seen
        boxes.push({node, x: at, wide: rest.value * scale, depth: depth + 1, rest});
    }
    this.rows = rows;
    return boxes;
  }

  draw() {
    if (!this.tree || this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.paint();
    });
  }

  paint() {
    const width = this.scroller.clientWidth, height = Math.max(this.scroller.clientHeight, FLAME_ROW);
    if (width === 0) return;
    if (this.rows) this.scroller.style.maxHeight = this.rows * FLAME_ROW + 'px';
    const before = this.rows, wasAtEnd = this.options.upside &&
      this.scroller.scrollTop + height >= (before || 0) * FLAME_ROW - 2;
    let boxes = this.layOut(width, ...this.visibleRows(height));
    const tall = Math.max(this.rows * FLAME_ROW, height);
    this.space.style.height = tall + 'px';
    if (wasAtEnd) this.scroller.scrollTop = tall;
    if (before !== this.rows) boxes = this.layOut(width, ...this.visibleRows(height));
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = width + 'px';
      this.canvas.style.height = height + 'px';
    }
    const context = this.canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.paintBoxes(context, boxes, tall);
    this.boxes = boxes;
    this.app.flamePainted(this);
    if (this.isPartial) this.draw();
  }

  visibleRows(height) {
    const rows = this.rows || 1, top = this.scroller.scrollTop / FLAME_ROW, count = Math.ceil(height / FLAME_ROW) + 1;
    const tall = Math.max(rows * FLAME_ROW, height);
    return this.options.upside ? [Math.floor(tall / FLAME_ROW - top - count), Math.ceil(tall / FLAME_ROW - top)]
      : [Math.floor(top), Math.floor(top + count)];
  }

  top(box, tall) {
    return (this.options.upside ? tall - (box.depth + 1) * FLAME_ROW : box.depth * FLAME_ROW) - this.scroller.scrollTop;
  }

  paintBoxes(context, boxes, tall) {
    const palette = this.palette ??= this.makePalette(), {tree, keys, hits, app} = this;
    const isGrowth = app.state.metric === 'growth';
    context.font = '11.5px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (const box of boxes) {
      const key = box.rest ? -1 : tree.key[box.node], y = box.y = this.top(box, tall), wide = Math.max(box.wide - (box.wide > 3 ? 1 : 0), 0.5);
      const isHit = hits === null || (key >= 0 && hits[key] === 1);
      context.globalAlpha = box.isAbove ? 0.55 : isHit ? 1 : 0.3;
      context.fillStyle = key < 0 ? palette.root : hits !== null && isHit ? palette.hit
        : isGrowth ? palette.growth(tree.change[box.node], tree.value[box.node])
          : keys.isOwn[key] ? palette.own[hashOf(keys.names[key]) % palette.own.length]
            : palette.other[hashOf(keys.names[key]) % palette.other.length];
      context.fillRect(box.x, y, wide, FLAME_ROW - 1);
      if (this.marked !== null && box.wide > 2 && key >= 0 && this.isMarked(key)) {
        context.strokeStyle = palette.accent;
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, y + 1, wide - 2, FLAME_ROW - 3);
      }
      if (box.wide > 32) {
        context.fillStyle = palette.ink;
        const room = Math.min(box.wide, 4000) - 8;
        const isEmpty = key < 0 && tree.value[0] === 0;
        const name = isEmpty ? 'nothing in this selection' : box.rest ? `… ${countText(box.rest.count)} more` : key < 0 ? 'all' : keys.names[key];
        context.fillText(fitText(name, room), box.x + 4, y + FLAME_ROW / 2);
      }
    }
    context.globalAlpha = 1;
  }

  isMarked(key) {
    if (this.markedKeys?.of !== this.marked || this.markedKeys.keys !== this.keys)
      this.markedKeys = {of: this.marked, keys: this.keys, set: new Set([...this.marked].map(frame => this.keys.of[frame]))};
    return this.markedKeys.set.has(key);
  }

  makePalette() {
    const dark = this.app.isDark(), shades = (hue, spread, saturation, light, count) => Array.from({length: count},
      (_, i) => `hsl(${hue + spread * i / count} ${saturation}% ${light + (i * 7 % count) * 1.3}%)`);
    return {
      ink: colorOf('ink'), accent: colorOf('accent'), root: colorOf('line'), hit: dark ? '#8b5cc7' : '#c9a2f2',
      own: shades(26, 22, dark ? 48 : 88, dark ? 33 : 70, 8), other: shades(212, 20, dark ? 12 : 18, dark ? 25 : 85, 6),
      growth: (change, value) => {
        const share = value > 0 ? Math.min(Math.abs(change) / value, 1) : 0;
        const light = dark ? 24 + share * 18 : 93 - share * 33;
        return `hsl(${change >= 0 ? 6 : 205} ${dark ? 20 + share * 45 : 80}% ${light}%)`;
      },
    };
  }

  recolor() {
    this.palette = null;
    this.draw();
  }

  // ---- pointer and keys ----

  boxAt(event) {
    const frame = this.canvas.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
    return this.boxes.find(box => x >= box.x && x < box.x + box.wide && y >= box.y && y < box.y + FLAME_ROW);
  }

  hover(event) {
    const box = this.boxAt(event);
    if (box === undefined) return this.leave();
    this.showMark(box);
    fill(this.tip, box.rest ? this.describeRest(box) : this.describe(box.node));
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth, tall = this.tip.offsetHeight;
    this.tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - wide - 12)) + 'px';
    this.tip.style.top = (event.clientY + 18 + tall > innerHeight ? event.clientY - tall - 10 : event.clientY + 18) + 'px';
  }

  showMark(box) {
    Object.assign(this.mark.style, {display: 'block', left: box.x + 'px', width: Math.max(box.wide - 1, 1) + 'px',
      top: box.y + this.scroller.scrollTop + 'px', height: FLAME_ROW - 1 + 'px'});
  }

  leave() {
    this.tip.hidden = true;
    this.mark.style.display = 'none';
  }

  describeRest({node, rest}) {
    const {unit, what} = METRICS[this.app.state.metric];
    return [el('b', `${countText(rest.count)} more, each too narrow to be drawn`),
      el('div', `${(unit === 'bytes' ? sizeText : countText)(rest.value)}  ${what}, ${shareText(rest.value, this.tree.value[node])} of the box that they belong to`)];
  }

  describe(node) {
    const {app, tree, keys} = this, key = tree.key[node], metric = METRICS[app.state.metric], value = tree.value[node];
    const format = metric.unit === 'bytes' ? sizeText : countText;
    const shown = app.state.metric === 'growth' ? sizeText(tree.change[node], true) : format(value);
    const lines = [el('b', key < 0 ? 'all' : keys.names[key])];
    if (key >= 0) lines.push(el('div.dim', app.placeOf(keys.frame[key])));
    lines.push(el('div', `${shown}  ${metric.what}`, ' · ', shareText(value, tree.value[0]), ' of all, ',
      shareText(value, tree.value[this.zoomed]), ' of what is shown'));
    if (app.state.metric !== 'growth') lines.push(el('div.dim', `${sizeText(tree.change[node], true)} growth · ` +
      `${thingsText(tree.blocks[node], 'block')} live`));
    return lines;
  }

  click(event) {
    const box = this.boxAt(event);
    if (box !== undefined && box.rest) this.zoom(box.node);
    else if (box !== undefined) this.zoom(box.node === this.zoomed ? this.tree.parent[box.node] : box.node);
  }

  zoom(node) {
    this.zoomed = node;
    this.leave();
    this.draw();
    this.app.zoomed(this.path(node), node === 0 ? null : this.keys.frame[this.tree.key[node]], node);
  }

  press(event) {
    const {tree} = this, children = () => tree.children(this.zoomed).sort((a, b) => tree.value[b] - tree.value[a]);
    const inwards = this.options.upside ? 'ArrowUp' : 'ArrowDown', outwards = this.options.upside ? 'ArrowDown' : 'ArrowUp';
    const sideways = step => {
      const all = tree.children(tree.parent[this.zoomed]).sort((a, b) => tree.value[b] - tree.value[a]);
      const next = all[all.indexOf(this.zoomed) + step];
      if (this.zoomed !== 0 && next !== undefined) this.zoom(next);
    };
    if (event.key === inwards && children().length > 0) this.zoom(children()[0]);
    else if (event.key === outwards || event.key === 'Backspace') this.zoom(tree.parent[this.zoomed]);
    else if (event.key === 'ArrowRight') sideways(1);
    else if (event.key === 'ArrowLeft') sideways(-1);
    else if (event.key === 'Home') this.zoom(0);
    else return;
    event.preventDefault();
  }
}

function hashOf(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

// Half a pixel more or less per letter is no matter: measuring each name would cost more than drawing it.
function fitText(text, room) {
  const letters = Math.floor(room / 6.1);
  return text.length <= letters ? text : letters < 3 ? '' : text.slice(0, letters - 1) + '…';
}
