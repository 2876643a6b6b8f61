// Building and changing the document. Text from outside (model output, reasons, names) only ever
// becomes text nodes; nothing here or elsewhere assigns innerHTML.

const kSvg = 'http://www.w3.org/2000/svg';

function assign(node, props) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'class') node.setAttribute('class', value);
    else if (key === 'value' || key === 'checked' || key === 'disabled') node[key] = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
}

function append(node, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

// el('a.link', {href: '#/'}, 'text', node): an element with classes, properties and children.
export function el(spec, props = {}, ...children) {
  const [name, ...classes] = spec.split('.');
  const node = document.createElement(name || 'div');
  if (classes.length) node.className = classes.join(' ');
  assign(node, props);
  return append(node, children);
}

export function svg(name, props = {}, ...children) {
  const node = document.createElementNS(kSvg, name);
  assign(node, props);
  return append(node, children);
}

// Writes only what differs, so that a selection, a tooltip or a screen reader is left alone.
export function setText(node, text) {
  const wanted = text === null || text === undefined ? '' : String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function setClass(node, name) {
  if (node.getAttribute('class') !== name) node.setAttribute('class', name);
}

export function setAttribute(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Keeps the children of `parent` equal to one node per item: make(item) once per key, then
// update(node, item) each time. Nodes whose item is gone go; the others only move when they must.
export function keyed(parent, items, {key, make, update}) {
  const nodes = parent.tandemNodes ??= new Map();
  const wanted = new Set(items.map(key));
  for (const [name, node] of nodes)
    if (!wanted.has(name)) {
      node.remove();
      nodes.delete(name);
    }
  let place = parent.firstChild;
  for (const item of items) {
    const name = key(item);
    let node = nodes.get(name);
    if (!node) nodes.set(name, node = make(item));
    update?.(node, item);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
}

const kHidden =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

// How a character is shown that would otherwise act (escape sequences, bidirectional controls) or
// not be seen at all.
function visibleName(character) {
  const code = character.charCodeAt(0);
  if (code < 0x100) return '\\x' + code.toString(16).padStart(2, '0');
  return 'U+' + code.toString(16).toUpperCase().padStart(4, '0');
}

// Fills `node` with `text`, its control characters as marked names.
export function showText(node, text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(kHidden)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(el('span.control', {}, visibleName(match[0])));
    from = match.index + 1;
  }
  parts.push(text.slice(from));
  node.replaceChildren(...parts);
  return node;
}

export function visible(text) {
  return String(text ?? '').replace(kHidden, visibleName);
}

export function badge(state) {
  const node = el('span.badge');
  setBadge(node, state);
  return node;
}

const kTone = {
  Running: 'good', Ready: 'good', Busy: 'good', Succeeded: 'done', Stopped: 'done',
  Failed: 'bad', Lost: 'bad', Interrupted: 'warn', Backoff: 'warn', Cancelled: 'done',
};

export function setBadge(node, state) {
  setText(node, visible(state || '–'));
  setClass(node, 'badge ' + (kTone[state] ?? 'wait'));
}

export function emptyState(title, ...help) {
  return el('div.empty', {}, el('p.empty-title', {}, title), el('p', {}, ...help));
}

// What the controller says where it refuses (ApiError.refuses), with what to do.
export function refusal(error) {
  const text = visible(error.message);
  return emptyState(text.charAt(0).toUpperCase() + text.slice(1) + '.',
      error.help ? visible(error.help) + '. ' : '', el('a', {href: '#/'}, 'All runs'));
}

export function toast(text, tone = 'good') {
  const box = document.getElementById('toasts');
  const node = el(`div.toast.${tone}`, {}, el('span', {}, visible(text)),
      el('button.plain', {'aria-label': 'Close', onclick: () => node.remove()}, '×'));
  box.append(node);
  while (box.childElementCount > 4) box.firstChild.remove();
  setTimeout(() => node.remove(), tone === 'bad' ? 15000 : 6000);
}
