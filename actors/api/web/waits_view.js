// Who waits for whom: a drawing, and the same as a table with the longest wait first.
//
// Nodes of one kind and state that wait for the same are drawn as one ("48 rollouts"): with fifty
// actors the shape is what one looks at, and the table has the names.

import {apiPath, get} from './api.js';
import {badge, el, emptyState, refusal, setAttribute, setBadge, setText, svg, visible} from './dom.js';
import * as format from './format.js';
import {Table} from './table.js';

const kLiveMs = 1500;
const kBox = {width: 176, height: 46, columnGap: 172, rowGap: 26, margin: 12};
const kTextMax = 24;

const cut = (text, most = kTextMax) => {
  const shown = visible(text);
  return shown.length <= most ? shown
      : shown.slice(0, most / 2) + '…' + shown.slice(shown.length - most / 2 + 1);
};

// The nodes that wait or are waited for, equal ones put together, and the edges between them. Pure.
export function grouped({nodes, edges}) {
  const ends = (id, mine, other) => edges.filter((edge) => edge[mine] === id)
      .map((edge) => `${edge[other]} ${edge.what.replace(/\d+/g, '#')}`).sort().join('|');
  const groups = new Map();
  for (const node of nodes) {
    if (!edges.some((edge) => edge.from === node.id || edge.to === node.id)) continue;
    const key = [node.kind, node.state, ends(node.id, 'from', 'to'), ends(node.id, 'to', 'from')]
        .join('\n');
    if (!groups.has(key)) groups.set(key, {...node, of: []});
    groups.get(key).of.push(node.id);
  }
  const groupOf = new Map();
  for (const group of groups.values()) for (const id of group.of) groupOf.set(id, group.id);
  const joined = new Map();
  for (const edge of edges) {
    const from = groupOf.get(edge.from), to = groupOf.get(edge.to);
    if (from === undefined || to === undefined || from === to) continue;
    const key = `${from}\n${to}\n${edge.what.replace(/\d+/g, '#')}`;
    const one = joined.get(key);
    if (!one) joined.set(key, {...edge, from, to, count: 1});
    else {
      ++one.count;
      if ((edge.since ?? Infinity) < (one.since ?? Infinity)) one.since = edge.since;
    }
  }
  return {nodes: [...groups.values()], edges: [...joined.values()]};
}

// A column per distance from what nothing waits for; those that take part in a circle come first.
export function columnsOf({nodes, edges}) {
  const depth = new Map(nodes.map((node) => [node.id, 0]));
  for (let round = 0; round < nodes.length; ++round)
    for (const edge of edges) {
      const next = Math.min(depth.get(edge.from) + 1, nodes.length);
      if (depth.get(edge.to) < next) depth.set(edge.to, next);
    }
  const levels = [...new Set(depth.values())].sort((a, b) => a - b);
  const columns = levels.map(() => []);
  for (const node of nodes) columns[levels.indexOf(depth.get(node.id))].push(node);
  return columns;
}

function titleOf(node) {
  return node.of.length === 1 ? node.id : `${node.of.length} × ${node.kind}`;
}

function drawNode(node, x, y) {
  const {width, height} = kBox;
  return svg('g', {class: `node kind-${String(node.kind).replace(/[^a-z]/gi, '')}`,
                   transform: `translate(${x} ${y})`},
      svg('title', {}, visible(node.of.join('\n'))),
      svg('rect', {width, height, rx: 7}),
      svg('text', {x: 12, y: 19, class: 'name'}, cut(titleOf(node))),
      svg('text', {x: 12, y: 36, class: 'state'},
          cut([node.of.length === 1 && node.kind, node.state].filter(Boolean).join(' · '), 28)));
}

function drawEdge(edge, from, to) {
  const {width, height} = kBox;
  const forward = to.x > from.x;
  const x1 = from.x + (forward ? width : width / 2), y1 = from.y + (forward ? height / 2 : height);
  const x2 = forward ? to.x - 4 : to.x + width / 2, y2 = to.y + (forward ? height / 2 : height + 4);
  const bend = forward ? (x2 - x1) / 2 : 40;
  const path = forward
      ? `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
      : `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 + bend} ${x2} ${y2}`;
  const x = (x1 + x2) / 2, y = forward ? (y1 + y2) / 2 : Math.max(y1, y2) + 34;
  const words = edge.count > 1 ? edge.what.replace(/\d+/g, '…') : edge.what;
  return svg('g', {class: 'edge'},
      svg('title', {}, visible(edge.what)),
      svg('path', {d: path, 'marker-end': 'url(#arrow)'}),
      svg('text', {x, y: y - 5, 'text-anchor': 'middle'}, cut(words, 26)));
}

export function drawing(graph) {
  const small = grouped(graph);
  const columns = columnsOf(small);
  const {width, height, columnGap, rowGap, margin} = kBox;
  const rows = Math.max(...columns.map((column) => column.length));
  const full = {
    width: 2 * margin + columns.length * width + (columns.length - 1) * columnGap,
    height: 2 * margin + rows * height + (rows - 1) * rowGap + 44,
  };
  const at = new Map();
  columns.forEach((column, c) => {
    const used = column.length * height + (column.length - 1) * rowGap;
    const top = margin + (full.height - 2 * margin - used) / 2;
    column.forEach((node, r) => at.set(node.id, {
      x: margin + c * (width + columnGap), y: top + r * (height + rowGap), node,
    }));
  });
  return svg('svg', {
    class: 'waits', viewBox: `0 0 ${full.width} ${full.height}`, width: full.width,
    height: full.height, role: 'img',
    'aria-label': 'Who waits for whom; the table below says the same',
  },
  svg('defs', {}, svg('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4,
                                 markerWidth: 8, markerHeight: 8, orient: 'auto'},
      svg('path', {d: 'M0 0 L8 4 L0 8 z', class: 'head'}))),
  small.edges.map((edge) => drawEdge(edge, at.get(edge.from), at.get(edge.to))),
  [...at.values()].map(({x, y, node}) => drawNode(node, x, y)));
}

export class WaitsView {
  constructor(scope, job) {
    this.job = job;
    this.box = el('div.drawing');
    this.empty = el('div');
    this.table = new Table({
      label: 'Waits', sort: {key: 'since', down: true},
      key: (edge) => `${edge.from}\n${edge.to}\n${edge.what}`,
      columns: [
        {key: 'who', title: 'Who', sort: (edge) => edge.from, text: (edge) => visible(edge.from)},
        {key: 'state', title: 'State', sort: (edge) => edge.state, fill: (cell, edge) => {
          if (!cell.firstChild) cell.append(badge(''));
          setBadge(cell.firstChild, edge.state);
        }},
        {key: 'whom', title: 'Waits for', sort: (edge) => edge.to,
         text: (edge) => visible(edge.to)},
        {key: 'what', title: 'What', wide: true, sort: (edge) => edge.what,
         text: (edge) => visible([edge.what, edge.detail].filter(Boolean).join(': '))},
        {key: 'since', title: 'For', number: true,
         sort: (edge) => format.timeOf(edge.since) === null
             ? null : Date.now() - format.timeOf(edge.since),
         text: (edge) => format.ago(edge.since)},
        {key: 'until', title: 'At most', number: true, hint: 'Time left until the deadline',
         sort: (edge) => format.timeOf(edge.until),
         text: (edge) => format.timeOf(edge.until) === null ? visible(edge.ended_by ?? 'no deadline')
             : format.duration((format.timeOf(edge.until) - Date.now()) / 1000)},
      ],
    });
    this.node = el('div', {}, this.empty, this.box, this.table.node);
    this.box.hidden = this.table.node.hidden = true;
    this.empty.replaceChildren(el('p.empty', {}, 'loading'));
    scope.poll(async (signal) => {
      this.show(await get(apiPath(['wait_graph'], {job}), signal));
    }, kLiveMs, (error) => this.empty.replaceChildren(refusal(error)));
  }

  // Names within the run: "rollout/0" for "arith-1/rollout/0".
  short(id) {
    return id.startsWith(this.job + '/') ? id.slice(this.job.length + 1) : id;
  }

  show(graph) {
    const nodes = (graph.nodes ?? []).map((node) => ({...node, id: this.short(node.id)}));
    const edges = (graph.edges ?? []).map((edge) =>
      ({...edge, from: this.short(edge.from), to: this.short(edge.to)}));
    const known = new Set(nodes.map((node) => node.id));
    for (const edge of edges)
      for (const id of [edge.from, edge.to])
        if (!known.has(id)) {
          known.add(id);
          nodes.push({id, kind: '', state: ''});
        }
    const state = new Map(nodes.map((node) => [node.id, node.state]));
    this.box.hidden = this.table.node.hidden = !edges.length;
    if (!edges.length)
      return void this.empty.replaceChildren(emptyState('Nobody waits.',
          'While a run lives, this shows who waits for whom, since when and until when. ',
          el('code', {}, 'tandem why'), ' prints the same.'));
    this.empty.replaceChildren();
    const shape = JSON.stringify(grouped({nodes, edges}), (key, value) =>
      ['since', 'until', 'detail'].includes(key) ? undefined : value);
    if (shape !== this.shape) {  // else nothing that is drawn has changed
      this.shape = shape;
      this.box.replaceChildren(drawing({nodes, edges}));
    }
    this.table.update(edges.map((edge) => ({...edge, state: state.get(edge.from)})));
  }
}
