// The plots of a run, alone or with other runs laid over it: which series belong together, fetching
// them, the tools above them. Zooming into one plot zooms all and asks for finer buckets there.

import {apiPath, get} from './api.js';
import {ConfigDifference, variantsOf} from './config_view.js';
import {el, emptyState, keyed, setAttribute, setText, toast, visible} from './dom.js';
import * as format from './format.js';
import {Plot} from './plot.js';
import {csvOf, fileName, save} from './plot_files.js';
import {parse, setQuery} from './route.js';
import {joined, meanOf} from './series.js';

// Each line names the keys that it may be under; the first that the run has is taken.
const kPlots = [
  {title: 'Reward', hint: 'Mean reward of the groups of a step',
   lines: [['mean', 'critic/rewards/mean']]},
  {title: 'Evaluation', hint: 'Mean reward over the validation files, each evaluation at its version',
   lines: [['mean', 'val/reward/mean']]},
  {title: 'Staleness', hint: 'Policy versions between generating a sample and training on it',
   lines: [['max', 'tandem/staleness/max'], ['p99', 'tandem/staleness/p99'],
           ['p50', 'tandem/staleness/p50']]},
  {title: 'KL', hint: 'Between the behaviour policy and the policy that is trained',
   lines: [['ppo_kl', 'actor/ppo_kl'], ['to the start', 'actor/kl_loss']]},
  {title: 'Entropy', hint: 'Of the policy, per token', lines: [['entropy', 'actor/entropy']]},
  {title: 'Tokens per second', hint: 'By rollouts and by the learner',
   lines: [['generated', 'tandem/tokens_generated_per_s'],
           ['trained', 'tandem/tokens_trained_per_s', 'perf/throughput']]},
  {title: 'Idle', unit: 'fraction', hint: 'Share of time that learner and rollouts waited',
   lines: [['learner', 'tandem/trainer_idle_fraction'],
           ['newest steps', 'tandem/recent/trainer_idle_fraction'],
           ['predicted', 'tandem/predicted/trainer_idle_fraction'],
           ['rollouts', 'tandem/rollout_idle_fraction']]},
  {title: 'Queue age', hint: 'Age of the oldest sample that waits to be trained, in steps',
   lines: [['oldest', 'tandem/oldest_sample_age_steps', 'tandem/oldest_sample_age',
            'tandem/queue_age', 'tandem/queue_age_s']]},
  {title: 'Queue', hint: 'Groups generated and not yet in training',
   lines: [['groups', 'tandem/queue_depth']]},
];
const kWall = ['tandem/wall_seconds', 'tandem/wall_s', 'time_s'];
const kLiveMs = 2000;
const kTailPoints = 12;
const kFilePoints = 5000;  // of a series in a file; the API gives no more
const kRunsMax = 8;  // as many as there are colours

const kOwnKeys = new Set(kPlots.flatMap((plot) => plot.lines.flatMap((line) => line.slice(1)))
    .concat(kWall, 'step'));

export class PlotsView {
  constructor(scope, run, runsOf) {
    this.scope = scope;
    this.run = run;
    this.runsOf = runsOf;   // () => every known run, for the comparison
    this.data = new Map();  // run -> {series, keys, step_max, live, full}
    this.plots = new Map();
    this.read();
    this.grid = el('div.plots');
    this.more = el('div.plots');
    this.moreBox = el('details.more', {ontoggle: () => this.moreBox.open && this.reload()},
        el('summary', {}, 'All other series'), this.more);
    this.difference = new ConfigDifference();
    this.unknown = el('p.hint.unknown', {hidden: true});
    this.node = el('div', {}, this.tools(), this.unknown, this.difference.node, this.grid,
                   this.moreBox);
    for (const plot of kPlots) this.addPlot(plot, this.grid);
    scope.poll((signal) => this.refresh(signal), kLiveMs);
    scope.onEnd(() => this.abort?.abort());  // of a refresh that reload() began
    this.observe();
  }

  read() {
    const {query} = parse();
    const number = (text) => text === undefined || text === '' || !Number.isFinite(Number(text))
        ? null : Number(text);
    this.smoothing = Math.min(Math.max(number(query.smooth) ?? 0, 0), 0.99);
    this.wall = query.x === 'time';
    this.means = query.mean === '1';
    this.logs = new Set((query.log ?? '').split(',').filter(Boolean));
    this.compared = (query.compare ?? '').split(',').filter(Boolean).slice(0, kRunsMax - 1);
    const from = number(query.from), to = number(query.to);
    this.window = from !== null && to !== null && to > from ? [from, to] : null;
  }

  // The address has been changed by hand.
  route() {
    this.read();
    this.slider.value = String(this.smoothing);
    setText(this.smoothingShown, this.smoothing.toFixed(2));
    this.axis.value = this.wall ? 'time' : 'step';
    this.lines.value = this.means ? 'groups' : 'runs';
    this.reload();
  }

  get runs() {
    return [this.run, ...this.compared.filter((one) => one !== this.run)];
  }

  tools() {
    const slider = this.slider = el('input', {
      type: 'range', min: '0', max: '0.99', step: '0.01', value: String(this.smoothing),
      'aria-label': 'Smoothing',
      oninput: () => {
        this.smoothing = Number(slider.value);
        setText(shown, this.smoothing.toFixed(2));
        setQuery({smooth: this.smoothing || ''});
        this.show();
      },
    });
    const shown = this.smoothingShown = el('output', {}, this.smoothing.toFixed(2));
    this.axis = el('select', {
      'aria-label': 'Horizontal axis',
      onchange: () => {
        this.wall = this.axis.value === 'time';
        this.window = null;
        setQuery({x: this.wall ? 'time' : '', from: '', to: ''});
        this.reload();
      },
    }, el('option', {value: 'step'}, 'by step'), el('option', {value: 'time'}, 'by time'));
    this.axis.value = this.wall ? 'time' : 'step';
    this.lines = el('select', {
      'aria-label': 'Lines', hidden: true,
      title: 'The mean of the runs of a group that differ in their seed alone, and its 95 % ' +
          'interval as the band',
      onchange: () => {
        this.means = this.lines.value === 'groups';
        setQuery({mean: this.means ? '1' : ''});
        this.show();
      },
    }, el('option', {value: 'runs'}, 'each run'), el('option', {value: 'groups'}, 'mean of groups'));
    this.lines.value = this.means ? 'groups' : 'runs';
    this.reset = el('button', {onclick: () => this.zoom(null, null)}, 'Whole run');
    this.compareList = el('div.compare-list');
    this.compareBox = el('details.compare', {ontoggle: () => this.showRuns()},
        el('summary', {}, 'Compare'), this.compareList);
    document.addEventListener('click', this.closeCompare = (event) => {
      if (!this.compareBox.contains(event.target)) this.compareBox.open = false;
    });
    this.scope.onEnd(() => document.removeEventListener('click', this.closeCompare));
    this.groupButton = el('button.group', {hidden: true, onclick: () => this.compareGroup()});
    return el('div.tools', {}, this.compareBox, this.groupButton,
        el('label.slider', {}, 'Smoothing', slider, shown), this.axis, this.lines,
        this.reset,
        el('span.hint.mouse', {}, 'Drag over a plot to zoom; double-click for the whole run.'));
  }

  // The runs that may be laid over this one, as boxes to tick.
  showRuns() {
    const runs = this.runsOf().filter((run) => run.id !== this.run && run.trains !== false);
    if (!runs.length)
      return void this.compareList.replaceChildren(
          el('p.hint', {}, 'There is no other run yet.'));
    this.compareList.querySelector('p')?.remove();
    keyed(this.compareList, runs, {
      key: (run) => run.id,
      make: (run) => {
        const box = el('input', {type: 'checkbox', onchange: () => this.compare(run.id, box)});
        return el('label', {}, box, el('span', {}, visible(run.id)),
                  el('span.dim', {}, visible(run.state)));
      },
      update: (node, run) => {
        node.firstChild.checked = this.compared.includes(run.id);
      },
    });
  }

  groupOf(id) {
    return this.runsOf().find((run) => run.id === id)?.group || '';
  }

  // The other runs of this run's group, as many as there are colours.
  othersOfGroup() {
    const group = this.groupOf(this.run);
    return this.runsOf().filter((run) => group && run.group === group && run.id !== this.run &&
        run.trains !== false).slice(0, kRunsMax - 1);
  }

  showGroup() {
    const others = this.othersOfGroup();
    this.groupButton.hidden = !others.length;
    if (others.length)
      setText(this.groupButton, `Mean of group ${visible(this.groupOf(this.run))} (` +
          `${others.length + 1} runs)`);
  }

  // One click for all runs of this run's group.
  compareGroup() {
    this.compared = this.othersOfGroup().map((run) => run.id);
    this.means = true;
    this.lines.value = 'groups';
    setQuery({compare: this.compared.join(','), mean: '1'});
    this.showRuns();
    this.reload();
  }

  compare(id, box) {
    const rest = this.compared.filter((one) => one !== id);
    if (box.checked && this.runs.length >= kRunsMax) {
      box.checked = false;
      return;
    }
    this.compared = box.checked ? [...rest, id] : rest;
    if (!box.checked) this.data.delete(id);
    setQuery({compare: this.compared.join(',')});
    this.reload();
  }

  addPlot(spec, parent) {
    const plot = new Plot(spec, {
      onzoom: (from, to) => this.zoom(from, to),
      onhover: (x) => this.hover(plot, x),
      onlog: (on) => this.setLog(spec, on),
      oncsv: () => this.saveValues(plot),
    });
    plot.spec = spec;
    this.plots.set(spec.title, plot);
    parent.append(plot.node);
    this.watched?.observe(plot.node);
  }

  observe() {
    this.sizes = new ResizeObserver(() => {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.plots.forEach((plot) => plot.resize()));
    });
    this.sizes.observe(this.grid);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const repaint = () => this.show();
    dark.addEventListener('change', repaint);
    this.scope.onEnd(() => {
      this.sizes.disconnect();
      dark.removeEventListener('change', repaint);
      cancelAnimationFrame(this.frame);
      this.plots.forEach((plot) => plot.destroy());
    });
  }

  hover(source, x) {
    this.plots.forEach((plot) => plot.hover(x, plot === source));
  }

  setLog(spec, on) {
    if (on) this.logs.add(spec.title);
    else this.logs.delete(spec.title);
    setQuery({log: [...this.logs].join(',')});
    this.show();
  }

  zoom(from, to) {
    this.window = from === null ? null : [from, to];
    const round = (x) => this.wall ? Number(x.toPrecision(6)) : Math.round(x);
    setQuery({from: from === null ? '' : round(from), to: to === null ? '' : round(to)});
    this.show();
    this.reload();
  }

  reload() {
    for (const data of this.data.values()) data.stale = true;
    this.abort?.abort();
    this.refresh().catch(() => {});
  }

  get points() {
    const width = this.grid.firstElementChild?.clientWidth || 400;
    return Math.min(Math.max(Math.round(width / 2), 120), 400);
  }

  get keys() {
    const keys = [...kOwnKeys].filter((key) => key !== 'step');
    if (!this.moreBox.open) return keys;
    const known = new Set(keys);
    for (const data of this.data.values()) data.keys.forEach((key) => known.add(key));
    return [...known];
  }

  // Whole series where there are none or the view has changed, else what is new of live ones.
  async refresh(signal) {
    this.abort = new AbortController();
    const until = signal ? AbortSignal.any([signal, this.abort.signal]) : this.abort.signal;
    const runs = this.runs;
    const answers = await Promise.allSettled(runs.map((run) => this.fetchRun(run, until)));
    if (until.aborted) return;
    this.show();
    // A run of the comparison that is not there leaves the others as they are.
    const refused = runs.filter((run, i) => i > 0 && answers[i].reason?.refuses);
    setText(this.unknown, refused.map((run) => answers[runs.indexOf(run)].reason)
        .map((error) => `Not compared: ${visible(error.message)}.`).join(' '));
    this.unknown.hidden = !refused.length;
    await this.compareConfigs(runs.filter((run) => !refused.includes(run)), until);
    const failed = answers.find((answer, i) => answer.status === 'rejected' &&
                                               !refused.includes(runs[i]));
    if (failed) throw failed.reason;
  }

  async compareConfigs(runs, signal) {
    const asked = runs.join('\n');
    if (asked === this.configsOf) return;
    await this.difference.compare(runs, signal);
    this.configsOf = asked;
    if (this.means && !signal.aborted) this.show();  // which runs have one mean is known now
  }

  // The values of the plot's lines, as fine as the API has them, over what the plot shows.
  async saveValues(plot) {
    const window = this.wall ? null : this.window;
    const keys = [...new Set(plot.drawn.map((line) => line.title))];
    try {
      const columns = [];
      for (const run of new Set(plot.drawn.flatMap((line) => line.runs ?? [line.run]))) {
        const {series} = await get(apiPath(['runs', run, 'metrics'], {
          keys: [...keys, ...kWall].join(','), points: kFilePoints,
          from: window && Math.max(Math.floor(window[0]), 0), to: window && Math.ceil(window[1]),
        }));
        const before = this.runs.length > 1 ? `${run} ` : '';
        for (const key of [...keys, ...kWall])
          if (series[key]?.steps.length) columns.push({name: before + key, series: series[key]});
      }
      const name = fileName([...this.runs, plot.spec.title], '.csv');
      save(name, new Blob([csvOf(columns)], {type: 'text/csv'}));
    } catch (error) {
      toast([`The values cannot be had: ${error.message}`, error.help].filter(Boolean).join('. '),
            'bad');
    }
  }

  async fetchRun(run, signal) {
    const data = this.data.get(run);
    if (data && !data.stale && !data.live) return;
    if (!data || data.stale || this.grown(data)) return this.fetchWhole(run, signal);
    if (this.window) return;  // a part of the past does not change
    const answer = await get(apiPath(['runs', run, 'metrics'], {
      keys: this.keys.join(','), from: data.whole_to + 1, points: kTailPoints}), signal);
    for (const [key, tail] of Object.entries(answer.series))
      data.series[key] = joined(data.series[key], tail);
    Object.assign(data, {step_max: Math.max(answer.step_max ?? 0, data.step_max),
                         live: answer.live});
  }

  // A tail that is a tenth of the whole is worth asking for in even buckets.
  grown(data) {
    return data.step_max - data.whole_to > Math.max(0.1 * (data.whole_to - data.step_min), 200);
  }

  async fetchWhole(run, signal) {
    const window = this.window && !this.wall ? this.window : null;
    const answer = await get(apiPath(['runs', run, 'metrics'], {
      keys: this.keys.join(','), points: this.window && this.wall ? 4 * this.points : this.points,
      from: window && Math.max(Math.floor(window[0]), 0), to: window && Math.ceil(window[1]),
    }), signal);
    this.data.set(run, {
      series: answer.series ?? {}, keys: answer.keys ?? Object.keys(answer.series ?? {}),
      step_min: answer.step_min ?? 0, step_max: answer.step_max ?? 0,
      whole_to: answer.step_max ?? 0, live: answer.live,
      stale: answer.complete === false,  // a large file is still being read: ask again
    });
  }

  show() {
    this.showGroup();
    if (this.moreBox.open) this.addOthers();
    const timed = this.runs.every((run) => this.clockOf(run) || !this.data.has(run));
    this.axis.options[1].disabled = !timed;
    setAttribute(this.axis, 'title', timed ? null : 'A run here has no times in its metrics');
    this.reset.disabled = !this.window;
    this.lines.hidden = this.runs.length < 2;
    setText(this.compareBox.firstChild,
            this.compared.length ? `Compare (${this.compared.length})` : 'Compare');
    if (!this.data.size) return;
    for (const plot of this.plots.values()) {
      this.showPlot(plot, timed);
      // For the page's test, and for whoever asks how fast this is.
      document.documentElement.dataset.firstPlotMs ??= String(Math.round(performance.now()));
    }
    document.documentElement.dataset.allPlotsMs ??= String(Math.round(performance.now()));
  }

  clockOf(run) {
    const series = this.data.get(run)?.series;
    const key = series && kWall.find((one) => series[one]?.steps.length);
    return key ? series[key] : null;
  }

  // A line per series of each run.
  linesOf(plot, wall) {
    const several = this.runs.length > 1;
    const lines = [];
    this.runs.forEach((run, runIndex) => {
      const series = this.data.get(run)?.series;
      if (!series) return;
      plot.spec.lines.forEach(([name, ...keys], lineIndex) => {
        const key = keys.find((one) => series[one]?.steps.length);
        if (key)
          lines.push({
            name, title: key, run, series: series[key], clock: wall ? this.clockOf(run) : null,
            colour: several ? runIndex : lineIndex, dash: several ? lineIndex : 0,
          });
      });
    });
    return lines;
  }

  // What the mean is of in which each run counts, with the words for it: its group's runs of its
  // configuration. Without a group, or while its configuration is not known, a run is alone.
  meanNames() {
    const byGroup = new Map();
    for (const run of this.runs) {
      const group = this.groupOf(run);
      if (group) byGroup.set(group, [...(byGroup.get(group) ?? []), run]);
    }
    const names = new Map(this.runs.map((run) => [run, run]));
    for (const [group, runs] of byGroup)
      for (const [run, variant] of variantsOf(runs, this.difference.configs))
        names.set(run, variant ? `${group} ${variant}` : group);
    return names;
  }

  // Lines of one series become their mean where their runs have one. By time that needs one clock:
  // it is the mean of the runs' clocks.
  meansOf(lines) {
    const named = this.meanNames();
    const means = new Map();
    for (const line of lines) {
      const of = named.get(line.run);
      const name = of + '\n' + line.name;
      if (!means.has(name)) means.set(name, {...line, group: of, of: []});
      means.get(name).of.push(line);
    }
    const names = [...new Set(named.values())];
    return [...means.values()].map((line) => ({
      ...line, run: line.of.length > 1 ? `${line.group} (${line.of.length} runs)` : line.group,
      runs: line.of.map((one) => one.run), colour: names.indexOf(line.group),
      series: line.of.length > 1 ? meanOf(line.of.map((one) => one.series)) : line.series,
      clock: line.clock && meanOf(line.of.map((one) => one.clock)),
    }));
  }

  showPlot(plot, timed) {
    const several = this.runs.length > 1;
    const wall = this.wall && timed;
    let lines = this.linesOf(plot, wall);
    if (several && this.means) lines = this.meansOf(lines);
    const one = new Set(lines.map((line) => line.name)).size === 1;
    if (several) for (const line of lines) line.name = one ? line.run : `${line.run} ${line.name}`;
    plot.show(lines, {smoothing: this.smoothing, log: this.logs.has(plot.spec.title), wall,
                      window: this.window});
  }

  // A plot for each series that belongs to none of the plots above.
  addOthers() {
    const keys = new Set([...this.data.values()].flatMap((data) => data.keys));
    for (const key of [...keys].filter((one) => !kOwnKeys.has(one)).sort())
      if (!this.plots.has(key)) this.addPlot({title: key, lines: [[key, key]]}, this.more);
    if (!this.more.childElementCount && !this.more.firstChild)
      this.more.replaceChildren(emptyState('There are no other series.'));
  }
}
