// One plot: a title, a legend that is the read-out too, and a dygraph with a band from minimum to
// maximum and a line at the mean. dygraphs' own legend writes style attributes into HTML, which the
// page's content policy forbids, so this has its own.

import {el, keyed, setAttribute, setText, visible} from './dom.js';
import * as format from './format.js';
import {fileName, pictureOf, save} from './plot_files.js';
import {nearest, points, rows} from './series.js';

/* global Dygraph */

const kHeight = 176;
const kDashes = [null, [6, 3], [2, 3], [8, 3, 2, 3]];

const prepareDygraphs = () => {
  if (!Dygraph.PLUGINS.prepared) {
    Dygraph.PLUGINS = Dygraph.PLUGINS.filter(
        (plugin) => plugin !== Dygraph.Plugins.Legend && plugin !== Dygraph.Plugins.RangeSelector);
    Dygraph.PLUGINS.prepared = true;
  }
};

export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    lines: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => read(`--line-${i}`)),
    grid: read('--grid'),
    axis: read('--axis'),
    paper: read('--paper'),
    ink: read('--ink'),
    dim: read('--dim'),
  };
}

// A tick at round numbers only, labelled as the rest of the page writes numbers.
function axisLabel(unit) {
  return (value) => unit === 'fraction' ? Math.round(value * 100) + '%' : format.number(value);
}

function xLabel(wall) {
  return (value) => wall ? format.duration(value).replace(/ (min|h|d) 0 (s|min|h)$/, ' $1')
                         : format.count(value);
}

const readable = (value, unit) => unit === 'fraction' ? format.percent(value)
                                                      : format.number(value);

export class Plot {
  // spec: {title, unit, hint}; hooks: {onzoom(from, to), onhover(x), onlog(on), oncsv()}
  constructor(spec, hooks) {
    this.spec = spec;
    this.hooks = hooks;
    this.log = false;
    this.x = null;  // where the pointer is, in this plot or another
    this.lines = [];
    this.legend = el('ul.legend');
    this.canvas = el('div.canvas');
    this.note = el('p.plot-note');
    this.logButton = el('button.plain.log', {
      title: 'Logarithmic scale', 'aria-pressed': 'false',
      onclick: () => hooks.onlog(!this.log),
    }, 'log');
    this.csvButton = el('button.plain.save', {
      title: 'Download the values as CSV', disabled: true, onclick: () => hooks.oncsv(),
    }, 'csv');
    this.pngButton = el('button.plain.save', {
      title: 'Download the plot as PNG', disabled: true, onclick: () => this.savePicture(),
    }, 'png');
    this.where = el('span.where');
    this.node = el('section.plot', {'aria-label': spec.title},
        el('header', {}, el('h3', {title: spec.hint}, spec.title), this.where, this.csvButton,
           this.pngButton, this.logButton),
        this.legend, el('div.canvas-box', {}, this.canvas, this.note));
    this.setNote('loading');
  }

  setNote(text) {
    setText(this.note, text);
    this.note.hidden = !text;
  }

  // lines: [{name, series, clock, colour, dash}]; view: {smoothing, log, wall, window}
  show(lines, view) {
    this.view = view;
    this.log = view.log;
    setAttribute(this.logButton, 'aria-pressed', String(view.log));
    this.lines = lines.map((line) => ({
      ...line,
      points: points(line.series, {smoothing: view.smoothing, clock: line.clock, log: view.log}),
    }));
    const drawn = this.lines.filter((line) => line.points.some((point) => point[1]));
    this.readOut(this.x);
    this.drawn = drawn;
    this.csvButton.disabled = this.pngButton.disabled = !drawn.length;
    if (!drawn.length) {
      this.setNote(lines.length && view.log ? 'nothing above 0 to show on a logarithmic scale'
                                            : 'no values yet');
      this.graph?.destroy();
      this.graph = null;
      return;
    }
    this.setNote('');
    this.draw(drawn);
  }

  // What dygraphs is given of the lines, on the page as in a picture.
  optionsOf(drawn, theme) {
    const series = {};
    drawn.forEach((line, i) => {
      const alone = line.points.filter((point) => point[1]).length <= 40;
      series[`y${i}`] = {
        strokePattern: kDashes[line.dash % kDashes.length],
        drawPoints: alone, pointSize: 2,
      };
    });
    return {
      labels: ['x', ...drawn.map((_, i) => `y${i}`)],
      colors: drawn.map((line) => theme.lines[line.colour % theme.lines.length]),
      series,
      logscale: this.view.log,
      dateWindow: this.view.window,
      fillAlpha: drawn.length > 3 ? 0.07 : 0.16,  // bands lie over one another
      axes: {
        x: {axisLabelFormatter: xLabel(this.view.wall), gridLineColor: theme.grid,
            axisLineColor: theme.axis, pixelsPerLabel: 70},
        y: {axisLabelFormatter: axisLabel(this.spec.unit), gridLineColor: theme.grid,
            axisLineColor: theme.axis, axisLabelWidth: 46, pixelsPerLabel: 30},
      },
      customBars: true,
      connectSeparatedPoints: true,
      legend: 'never',
      xRangePad: 2,
      yRangePad: 6,
      includeZero: false,
      animatedZooms: false,
    };
  }

  draw(drawn) {
    prepareDygraphs();
    const data = rows(drawn.map((line) => line.points));
    const options = this.optionsOf(drawn, themeColours());
    if (this.graph) return void this.graph.updateOptions({...options, file: data});
    this.graph = new Dygraph(this.canvas, data, {
      ...options,
      strokeWidth: 1.6,
      height: kHeight,
      highlightCircleSize: 3,
      axisLabelFontSize: 11,
      interactionModel: this.interaction(),
      highlightCallback: (event, x) => this.hooks.onhover(x),
      unhighlightCallback: () => this.hooks.onhover(null),
      zoomCallback: (from, to) => this.hooks.onzoom(from, to),
    });
  }

  savePicture() {
    const theme = themeColours();
    const runs = [...new Set(this.drawn.map((line) => line.run))];
    const colourOf = (line) => theme.lines[line.colour % theme.lines.length];
    const canvas = pictureOf({
      title: runs.length === 1 ? `${this.spec.title} · ${visible(runs[0])}` : this.spec.title,
      lines: this.drawn.map((line) => ({name: visible(line.name), colour: colourOf(line),
                                        dash: kDashes[line.dash % kDashes.length]})),
      colours: theme,
      data: rows(this.drawn.map((line) => line.points)),
      options: this.optionsOf(this.drawn, theme),
    });
    canvas.toBlob((blob) => save(fileName([...runs, this.spec.title], '.png'), blob));
  }

  // dygraphs' own by mouse; by touch it would take scrolling away, so a finger only reads.
  interaction() {
    const {mousedown, willDestroyContextMyself} = Dygraph.defaultInteractionModel;
    return {
      mousedown, willDestroyContextMyself,
      dblclick: () => this.hooks.onzoom(null, null),
    };
  }

  // The values at x, and a line there; without x the latest values.
  readOut(x) {
    keyed(this.legend, this.lines, {
      key: (line) => line.name + '\n' + line.run,
      make: () => el('li', {}, el('span.swatch'), el('span.name'), el('span.value')),
      update: (node, line) => {
        const [swatch, name, value] = node.children;
        setAttribute(swatch, 'class', `swatch line-${line.colour % 8 + 1} dash-${line.dash % 4}`);
        setText(name, visible(line.name));
        setAttribute(name, 'title', visible(line.title ?? line.name));
        const point = x === null ? line.points.findLast((one) => one[1])
                                 : nearest(line.points, x);
        setText(value, point ? readable(point[1][1], this.spec.unit) : format.kNone);
        setAttribute(value, 'title', point ? `minimum ${readable(point[1][0], this.spec.unit)}, ` +
            `maximum ${readable(point[1][2], this.spec.unit)}` : null);
      },
    });
    setText(this.where, x === null ? '' :
        this.view?.wall ? format.duration(x) : 'step ' + format.count(x));
  }

  hover(x, own) {
    this.x = x;
    this.readOut(x);
    if (own || !this.graph) return;
    if (x === null) return this.graph.clearSelection();
    const row = this.rowAt(x);
    if (row !== null) this.graph.setSelection(row);
  }

  rowAt(x) {
    let best = null;
    for (let i = 0, n = this.graph.numRows(); i < n; ++i)
      if (best === null || Math.abs(this.graph.getValue(i, 0) - x) <
                               Math.abs(this.graph.getValue(best, 0) - x)) best = i;
    return best;
  }

  resize() {
    this.graph?.resize();
  }

  destroy() {
    this.graph?.destroy();
    this.graph = null;
  }
}
