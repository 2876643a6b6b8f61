// A plot as a file: its values as CSV, and the plot itself as a PNG.
//
// The PNG is not a copy of the screen: a plot is small there, so dygraphs draws it once more, in a
// box outside the window that is large enough for a paper. Labels of axes are elements of the
// document, which a canvas cannot hold; they are written where they stand.

/* global Dygraph */

import {el} from './dom.js';

const kWidth = 1000, kHeight = 420;  // of the plot alone
const kScale = 2;                    // pixels of the picture for each of them
const kHead = 62, kMargin = 18;
const kFont = 'system-ui, sans-serif';

// A file's name of what is in it, without characters that some system refuses.
export function fileName(parts, ending) {
  return parts.join(' ').toLowerCase().replace(/[^a-z0-9.]+/g, '-').replace(/^-+|-+$/g, '')
      .slice(0, 120) + ending;
}

export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const anchor = el('a', {href: address, download: name});
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

// Whether each bucket holds one value, so that its minimum and maximum say nothing more.
const single = ({min, max}) => min.every((value, i) => value === max[i]);

// columns: [{name, series}]. One row per step; a bucket of several steps has the first one's number
// and three columns. An empty cell is a value that there is not.
export function csvOf(columns) {
  const values = columns.flatMap(({name, series}) => single(series)
      ? [{name, series, of: 'mean'}]
      : ['mean', 'min', 'max'].map((of) => ({name: `${name} ${of}`, series, of})));
  const rows = new Map();
  values.forEach(({series, of}, i) => series.steps.forEach((step, at) => {
    if (!rows.has(step)) rows.set(step, Array(values.length).fill(''));
    rows.get(step)[i] = series[of][at] ?? '';
  }));
  const lines = [...rows].sort(([a], [b]) => a - b).map((row) => row.flat().join(','));
  return [['step', ...values.map(({name}) => quoted(name))].join(','), ...lines, ''].join('\n');
}

// Draws the dygraph of `options` and `data` in a box of the picture's size; the caller removes it.
function largePlot(data, options) {
  const box = el('div.picture');
  document.body.append(box);
  const graph = new Dygraph(box, data, {
    ...options, width: kWidth, height: kHeight, pixelRatio: kScale, axisLabelFontSize: 12,
    strokeWidth: 1.8, interactionModel: {},
  });
  return {box, end: () => {
    graph.destroy();
    box.remove();
  }};
}

function drawLabels(context, box, colour) {
  const from = box.getBoundingClientRect();
  context.fillStyle = colour;
  context.font = `12px ${kFont}`;
  context.textBaseline = 'middle';
  for (const label of box.querySelectorAll('.dygraph-axis-label')) {
    const {left, right, top, bottom} = label.getBoundingClientRect();
    const ofY = label.classList.contains('dygraph-axis-label-y');
    context.textAlign = ofY ? 'right' : 'center';
    context.fillText(label.textContent, (ofY ? right : (left + right) / 2) - from.left,
                     (top + bottom) / 2 - from.top);
  }
}

// The title, and under it the lines' names in their colours.
function drawHead(context, title, lines, colours) {
  context.textBaseline = 'alphabetic';
  context.textAlign = 'left';
  context.fillStyle = colours.ink;
  context.font = `600 16px ${kFont}`;
  context.fillText(title, 0, 18);
  context.font = `12px ${kFont}`;
  let x = 0;
  for (const {name, colour, dash} of lines) {
    context.strokeStyle = colour;
    context.lineWidth = 2.5;
    context.setLineDash(dash ?? []);
    context.beginPath();
    context.moveTo(x, 38);
    context.lineTo(x + 20, 38);
    context.stroke();
    context.fillStyle = colours.dim;
    context.fillText(name, x + 26, 42, 260);
    x += 26 + Math.min(context.measureText(name).width, 260) + 22;
  }
  context.setLineDash([]);
}

// A canvas with the plot. lines: [{name, colour, dash}]; colours: {paper, ink, dim}.
export function pictureOf({title, lines, colours, data, options}) {
  const canvas = el('canvas', {width: (kWidth + 2 * kMargin) * kScale,
                               height: (kHead + kHeight + 2 * kMargin) * kScale});
  const context = canvas.getContext('2d');
  context.scale(kScale, kScale);
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(kMargin, kMargin);
  drawHead(context, title, lines, colours);
  context.translate(0, kHead);
  const {box, end} = largePlot(data, options);
  for (const drawn of box.querySelectorAll('canvas'))
    context.drawImage(drawn, 0, 0, kWidth, kHeight);
  drawLabels(context, box, colours.dim);
  end();
  return canvas;
}
