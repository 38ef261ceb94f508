// words.js: numbers, times and places as people read them, and elements made of them.

// As ta_size_text: below 10240 of a unit, one digit behind the point below 100.
function sizeText(size, sign) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0, value = Math.abs(size);
  while (value >= 10240 && unit < 4) {
    value /= 1024;
    unit++;
  }
  const digits = unit > 0 && value < 100 ? value.toFixed(1) : String(Math.round(value));
  return (size < 0 ? '−' : sign ? '+' : '') + digits + ' ' + units[unit];
}

// For an axis, whose steps are powers of two.
function axisText(size) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0, value = size;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    unit++;
  }
  return (Number.isInteger(value) ? value : value.toFixed(1)) + ' ' + units[unit];
}

function countText(count, sign) {
  const text = Math.abs(count).toLocaleString('en-US').replaceAll(',', ' ');
  return (count < 0 ? '−' : sign ? '+' : '') + text;
}

// "1 block", "2 blocks".
function thingsText(count, thing, sign) {
  return `${countText(count, sign)} ${thing}${count === 1 ? '' : 's'}`;
}

function shortCount(count) {
  const value = Math.abs(count), sign = count < 0 ? '−' : '';
  if (value < 10000) return sign + value;
  if (value < 1e6) return sign + (value / 1e3).toFixed(value < 1e5 ? 1 : 0) + ' k';
  if (value < 1e9) return sign + (value / 1e6).toFixed(value < 1e8 ? 1 : 0) + ' M';
  return sign + (value / 1e9).toFixed(1) + ' G';
}

function shareText(part, whole) {
  const share = whole > 0 ? part / whole * 100 : 0;
  return share >= 99.95 || share === 0 ? share.toFixed(0) + ' %' : share.toFixed(1) + ' %';
}

// Milliseconds since the beginning.
function timeText(time) {
  const seconds = time / 1000;
  if (seconds < 10) return seconds.toFixed(2) + ' s';
  if (seconds < 120) return seconds.toFixed(1) + ' s';
  const whole = Math.round(seconds), pad = number => String(number).padStart(2, '0');
  if (whole < 3600) return Math.floor(whole / 60) + ':' + pad(whole % 60) + ' min';
  return Math.floor(whole / 3600) + ':' + pad(Math.floor(whole / 60) % 60) + ':' + pad(whole % 60) + ' h';
}

const baseName = path => path.slice(path.lastIndexOf('/') + 1) || path;

// The last folders of a path: enough to know it by.
function shortPath(path) {
  const parts = path.split('/');
  return parts.length > 4 ? '…/' + parts.slice(-3).join('/') : path;
}

// An element: el('td.number', {title: 'x'}, 'text', otherElement, …). Texts are never read as HTML.
function el(what, ...parts) {
  const [tag, ...classes] = what.split('.'), element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(' ');
  for (const part of parts.flat(9)) {
    if (part === null || part === undefined || part === false) continue;
    if (part instanceof Node || typeof part !== 'object') element.append(part);
    else
      for (const [key, value] of Object.entries(part))
        if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
        else if (value === true) element.setAttribute(key, '');
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  return element;
}

// What an element consists of, anew; nothing where there is nothing.
function fill(element, ...parts) {
  element.replaceChildren(...parts.flat(9).filter(part => part !== null && part !== undefined && part !== false));
}

const svgElement = (tag, attributes) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// What is drawn on canvases takes its colours from the page's styles.
function colorOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}
