// The list of all runs, those that live first, and the choice of runs to compare.

import {apiPath, get} from './api.js';
import {badge, el, emptyState, refusal, setAttribute, setBadge, setText, visible} from './dom.js';
import * as format from './format.js';
import {link} from './route.js';
import {Search} from './search.js';
import {Table} from './table.js';

const kLiveMs = 2000;

const finals = new Set(['Succeeded', 'Failed', 'Cancelled', 'Interrupted']);
export const isFinal = (state) => finals.has(state);

// Runs of the disk and jobs of the controller are the same things seen twice: one list, by id, in
// which a job's fresh figures win.
export function merged(runs, jobs) {
  const byId = new Map(runs.map((run) => [run.id, {...run}]));
  for (const job of jobs) {
    const run = byId.get(job.id) ?? {};
    byId.set(job.id, {
      ...run, ...job, live: run.live ?? !isFinal(job.state),
      eval_final: job.eval ?? run.eval_final,
      created: run.created ?? job.created, wall_seconds: run.wall_seconds ?? job.age_s,
    });
  }
  return [...byId.values()].sort((a, b) =>
    (isFinal(a.state) - isFinal(b.state)) ||
    (format.timeOf(b.created) ?? 0) - (format.timeOf(a.created) ?? 0));
}

export async function fetchRuns(signal) {
  const [runs, jobs] = await Promise.all([
    get(apiPath(['runs']), signal), get(apiPath(['jobs']), signal)]);
  return merged(runs, jobs);
}

// How far a run is: of its warm start while that is under way, else of its steps. A job of actors
// alone has no steps: null.
export function progressOf(run) {
  if (run.trains === false) return null;
  const warm = run.state === 'WarmStart' ? run.warm_start : null;
  const done = (warm ? warm.step : run.step) ?? 0;
  const all = warm ? warm.max_steps : run.total_steps;
  return {warm, done, all, share: all ? done / all : 0};
}

function progress(cell, run) {
  if (!cell.firstChild)
    cell.append(el('span.steps'), el('progress', {'aria-label': 'Progress', max: '1', value: 0}));
  const [text, bar] = cell.children;
  const at = progressOf(run);
  bar.hidden = !at;
  if (!at) return setText(text, format.kNone);
  setText(text, `${at.warm ? 'warm ' : ''}${format.count(at.done)} / ${format.count(at.all)}`);
  if (bar.value !== at.share) bar.value = at.share;
}

// What its job calls it besides its id: a name, a group, tags.
export function labelsOf(run) {
  return [run.run_name ?? '', run.group ?? '', ...(run.tags ?? [])];
}

function rates(run) {
  const rate = run.tokens_per_second;
  if (!rate || isFinal(run.state)) return format.kNone;
  const whole = (value) => format.number(Math.round(value));
  return `${whole(rate.generated)} / ${whole(rate.trained)}`;
}

export class RunsView {
  constructor(scope) {
    this.chosen = new Set();
    this.table = new Table({
      label: 'Runs',
      key: (run) => run.id,
      rowClass: (run) => isFinal(run.state) ? 'ended' : 'lives',
      columns: [
        {key: 'pick', title: '', fill: (cell, run) => this.pick(cell, run)},
        {key: 'run', title: 'Run', sort: (run) => run.id,
         fill: (cell, run) => this.name(cell, run)},
        {key: 'state', title: 'State', sort: (run) => run.state,
         fill: (cell, run) => this.state(cell, run)},
        {key: 'step', title: 'Step', sort: (run) => run.step, number: true, fill: progress},
        {key: 'reward', title: 'Reward', number: true, sort: (run) => run.reward_mean,
         text: (run) => format.number(run.reward_mean)},
        {key: 'eval', title: 'Evaluation', number: true, sort: (run) => run.eval_final,
         text: format.evaluation},
        {key: 'rate', title: 'Tokens/s', number: true, hint: 'Generated and trained',
         sort: (run) => run.tokens_per_second?.generated, text: rates},
        {key: 'created', title: 'Created', sort: (run) => format.timeOf(run.created),
         text: (run) => format.shortTime(run.created),
         hover: (run) => format.dateTime(run.created)},
        {key: 'took', title: 'Took', number: true, sort: (run) => run.wall_seconds,
         text: (run) => format.duration(run.wall_seconds)},
      ],
    });
    this.search = new Search({placeholder: 'Find a run', label: 'Find a run',
                              onchange: () => this.show()});
    this.compare = el('a.button', {href: '#/', 'aria-disabled': 'true'}, 'Compare');
    this.empty = el('div');
    this.count = el('span.dim');
    this.node = el('div.page', {},
        el('div.title', {}, el('h1', {}, 'Runs'), this.count, el('span.grow'), this.search.node,
           this.compare),
        this.empty, this.table.node);
    this.runs = null;
    scope.poll(async (signal) => {
      this.runs = await fetchRuns(signal);
      this.show();
    }, kLiveMs, (error) => this.empty.replaceChildren(refusal(error)));
    this.show();
  }

  show() {
    const runs = this.runs ?? [];
    const shown = runs.filter((run) => this.search.finds(run.id, run.state, ...labelsOf(run)));
    this.table.node.hidden = !shown.length;
    setText(this.count, this.runs ? `${runs.length} in all, ` +
        `${runs.filter((run) => !isFinal(run.state)).length} live` : '');
    if (!this.runs) {
      this.empty.replaceChildren(el('p.empty', {}, 'loading'));
    } else if (!runs.length) {
      this.empty.replaceChildren(emptyState('No run yet.', 'Start one with ',
          el('code', {}, 'tandem submit configs/arithmetic.yaml'), '; it appears here by itself.'));
    } else if (!shown.length) {
      this.empty.replaceChildren(emptyState('No run has that name, state, group or tag.'));
    } else {
      this.empty.replaceChildren();
    }
    this.table.update(shown);
    this.showCompare();
  }

  showCompare() {
    const [first, ...others] = this.chosen;
    setText(this.compare, this.chosen.size > 1 ? `Compare ${this.chosen.size}` : 'Compare');
    setAttribute(this.compare, 'aria-disabled', String(this.chosen.size < 2));
    setAttribute(this.compare, 'title',
                 this.chosen.size < 2 ? 'Tick two runs or more, to lay their plots over one another'
                                      : null);
    setAttribute(this.compare, 'href', this.chosen.size < 2 ? null :
        link(['runs', first, 'plots'], {compare: others.join(',')}));
  }

  pick(cell, run) {
    if (cell.firstChild || run.trains === false) return;  // that one has no plots
    const box = el('input', {
      type: 'checkbox', 'aria-label': `Choose ${visible(run.id)} to compare`,
      onchange: () => {
        if (box.checked) this.chosen.add(run.id);
        else this.chosen.delete(run.id);
        this.showCompare();
      },
    });
    cell.append(box);
  }

  name(cell, run) {
    if (cell.firstChild) return;
    cell.append(el('a', {href: link(['runs', run.id, 'plots']), title: visible(run.run_dir)},
                   visible(run.id)));
    const labels = labelsOf(run).filter(Boolean);
    if (labels.length)
      cell.append(el('span.labels', {title: visible(run.notes || labels.join(', '))},
                     ...labels.map((label) => el('span', {}, visible(label)))));
  }

  state(cell, run) {
    if (!cell.firstChild) cell.append(badge(run.state), el('span.reason'));
    setBadge(cell.firstChild, run.state);
    const why = isFinal(run.state) && run.state === 'Succeeded' ? '' : run.message || run.reason;
    setText(cell.lastChild, visible(why ?? ''));
    setAttribute(cell.lastChild, 'title', visible(why ?? ''));
  }
}
