// One run: its state and figures, scaling and cancelling it, and the tabs with the rest.

import {ActorsView} from './actors_view.js';
import {apiPath, get, post, Scope} from './api.js';
import {badge, el, emptyState, keyed, refusal, setAttribute, setBadge, setText, toast, visible}
  from './dom.js';
import {ConfigView} from './config_view.js';
import {EventsView} from './events_view.js';
import * as format from './format.js';
import {PlotsView} from './plots_view.js';
import {go, link, parse} from './route.js';
import {fetchRuns, isFinal, merged, progressOf} from './runs_view.js';
import {SamplesView} from './samples_view.js';
import {WaitsView} from './waits_view.js';

const kLiveMs = 1500;
const kEndedMs = 10000;
// [key, title, of training]: a job of actors alone has no plots, waits and samples.
const kTabs = [['plots', 'Plots', true], ['actors', 'Actors'], ['waits', 'Waits', true],
               ['samples', 'Samples', true], ['events', 'Events'], ['config', 'Configuration']];

// The figures above the tabs: [title, value(run), explanation, shape]; null is not shown.
const kFigures = [
  ['Reward', (run) => format.number(run.reward_mean), 'Mean of the last step'],
  ['Evaluation', format.evaluation, 'Mean over the validation files, without what failed'],
  ['Staleness', (run) => run.staleness ? `${format.number(run.staleness.max)} of ${
    format.number(run.staleness.bound)}` : format.kNone, 'Largest so far, of what is allowed'],
  ['Version', (run) => format.count(run.policy_version), 'Of the policy, the newest'],
  ['Queue', (run) => format.count(run.queue_depth), 'Groups generated and not yet in training'],
  ['Learner idle', (run) => format.percent(run.trainer_idle_fraction), 'Share of its time'],
  ['Idle now', (run) => run.predicted && run.rates
      ? format.percent(run.rates.trainer_idle_fraction) : null,
   'Share of the learner\'s time, over the newest steps'],
  ['Predicted idle', (run) => run.predicted
      ? format.percent(run.predicted.trainer_idle_fraction) : null,
   'Of the learner, by the rates of both pools in the newest steps'],
  ['Matched by', (run) => run.predicted ? format.count(run.predicted.rollouts_matched) : null,
   'Rollouts with which the learner would not wait for samples'],
  ['Autoscale', autoscale, 'Limits of the rollouts\' number, and the newest decision', 'wide'],
  ['Rollouts idle', (run) => typeof run.rollout_idle_fraction === 'number'
      ? format.percent(run.rollout_idle_fraction) : null, 'Share of their time'],
  ['Generated', (run) => rate(run.tokens_per_second?.generated), 'Tokens per second, all rollouts'],
  ['Trained', (run) => rate(run.tokens_per_second?.trained), 'Tokens per second'],
  ['Evaluation in detail', evaluationDetails, 'Of samples, and the mean of each data set', 'wide'],
  ['Goodput and cost', cost,
   'Of the run, and of a step the mean of the newest; a device is a GPU, or an actor without one',
   'wide'],
];

const rate = (value) =>
    value === undefined ? format.kNone : `${format.number(Math.round(value))}/s`;

// "1 to 8, 3 wanted · trainer idle 31 % over 64 steps, 4 would match (…) · 2 to 3 at 22:46:22". Null
// for a job without it.
function autoscale(run) {
  const scaling = run.autoscale;
  if (!scaling) return null;
  const parts = [`${format.count(scaling.min)} to ${format.count(scaling.max)}, ${
    format.count(scaling.wanted)} wanted`];
  if (!scaling.on) parts.push('off: the number is a user\'s');
  if (scaling.at_limit) parts.push('at its limit');
  if (scaling.reason) parts.push(visible(scaling.reason));
  if (scaling.last)
    parts.push(`${format.count(scaling.last.from)} to ${format.count(scaling.last.to)} at ${
      format.shortTime(scaling.last.at)}`);
  return parts.join(' · ');
}

// "1205 tokens trained per device second · 12.4 USD · 0.0312 USD a step". The costs are those of a
// run with prices.
function cost(run) {
  if (!run.cost) return null;
  const parts = [
    `${format.number(run.cost.goodput_tokens_per_device_second)} tokens trained per device second`];
  const currency = visible(run.cost.currency ?? '');
  if (typeof run.cost.total === 'number')
    parts.push(`${format.number(run.cost.total)} ${currency}`);
  if (typeof run.cost.per_step === 'number')
    parts.push(`${format.number(run.cost.per_step)} ${currency} a step`);
  return parts.join(' · ');
}

// The figures of an evaluation beside its mean, and the mean of each data set: "pass@8 0.93 ·
// greedy 0.81 · code 0.41 (3 failed) · math 0.79". Null where there are none.
function evaluationDetails(run) {
  const figures = run.eval_figures ?? {};
  const parts = [];
  const sizes = Object.keys(figures).filter((key) => key.startsWith('pass@'))
      .map((key) => Number(key.slice(5)));
  if (sizes.length) {
    const most = Math.max(...sizes);
    parts.push(`pass@${most} ${format.number(figures[`pass@${most}`])}`);
  }
  if (typeof figures.greedy === 'number') parts.push(`greedy ${format.number(figures.greedy)}`);
  for (const [name, source] of Object.entries(figures.sources ?? {}))
    parts.push(`${visible(name)} ${format.number(source.mean)}` +
        (source.failed ? ` (${format.count(source.failed)} failed)` : ''));
  return parts.length ? parts.join(' · ') : null;
}

// The figures that are shown of a run: of one that has ended only those that are known.
function figuresOf(run) {
  if (run.trains === false) return [];
  const over = isFinal(run.state);
  return kFigures.map(([title, value, ...rest]) => [title, value(run), ...rest])
      .filter(([, text]) => text !== null && !(over && text === format.kNone));
}

// What its job calls it besides its id: [title, text, shape], of those that it has.
function labelsOf(run) {
  return [['Name', run.run_name], ['Group', run.group], ['Tags', (run.tags ?? []).join(', ')],
          ['Notes', run.notes, 'notes']].filter(([, text]) => text);
}

function timesOf(run) {
  const parts = [`created ${format.shortTime(run.created)}`,
                 `took ${format.duration(run.wall_seconds ?? run.age_s)}`];
  const warm = progressOf(run)?.warm;
  if (typeof warm?.steps_per_second === 'number')
    parts.push(`${format.number(warm.steps_per_second)} steps/s`);
  if (typeof warm?.metric === 'number') parts.push(`metric ${format.number(warm.metric)}`);
  const left = warm ? warm.eta_seconds : run.eta_seconds;
  if (typeof left === 'number' && !isFinal(run.state))
    parts.push(`${format.duration(left)} left${warm ? ' of the warm start, at most' : ''}`);
  return parts.join(' · ');
}

export class RunView {
  constructor(scope, id) {
    this.scope = scope;
    this.id = id;
    this.run = null;
    this.others = [];
    this.title = el('h1', {}, visible(id));
    this.state = badge('');
    this.about = el('dl.facts.about', {hidden: true});
    this.reason = el('p.why');
    this.bar = el('progress', {max: '1', value: 0, 'aria-label': 'Progress'});
    this.steps = el('span');
    this.times = el('span.dim');
    this.figures = el('dl.figures');
    this.controls = el('div.controls');
    this.tabs = el('nav.tabs', {'aria-label': 'Parts of the run', onclick: () => {
      // The plots come back as they were left.
      if (this.shown === 'plots') this.tabs.firstChild.setAttribute('href', location.hash);
    }});
    this.panel = el('div.panel');
    this.problem = el('div');
    this.parts = [this.state, this.controls, this.about, this.reason,
                  el('div.progress', {}, this.bar, this.steps, this.times), this.figures,
                  this.tabs, this.panel];
    this.node = el('div.page', {},
        el('div.title', {}, this.title, this.state, el('span.grow'), this.controls),
        ...this.parts.slice(2, 6), this.problem, this.tabs, this.panel);
    this.makeControls();
    this.makeTabs();
    this.main = scope.poll((signal) => this.refresh(signal), kLiveMs,
                           (error) => this.refuse(error));
    scope.poll(async (signal) => {
      this.takeList(await fetchRuns(signal));
    }, kEndedMs);
    scope.onEnd(() => this.tab?.end());
    this.route();
  }

  // The run's own page is asked for once and again when it has ended; while it lives, the list of
  // jobs has its figures, which costs the controller least.
  async refresh(signal) {
    this.base ??= await get(apiPath(['runs', this.id]), signal);
    // The address may hold a job's name, which means its only run.
    if (this.base.id !== this.id) return go(['runs', this.base.id, ...parse().parts.slice(2)]);
    const lived = this.run && !isFinal(this.run.state);
    const jobs = isFinal(this.base.state) ? [] : await get(apiPath(['jobs']), signal);
    this.run = merged([this.base], jobs.filter((job) => job.id === this.id))[0];
    const over = isFinal(this.run.state);
    if (lived && over) this.base = null;
    this.main.intervalMs = over && !lived ? kEndedMs : kLiveMs;
    this.show();
  }

  // Of runs that another process carries out, or that are taken up again, the list of runs tells.
  takeList(runs) {
    this.others = runs;
    const mine = runs.find((run) => run.id === this.id);
    if (mine && this.base) this.base = {...this.base, ...mine, actors: this.base.actors};
  }

  // There is no such run, or it cannot be read: nothing of it is shown, and nothing asked for.
  refuse(error) {
    if (this.base) return;
    this.tab?.end();
    this.shown = null;
    this.panel.replaceChildren();
    for (const part of this.parts) part.hidden = true;
    this.problem.replaceChildren(refusal(error));
  }

  show() {
    const run = this.run;
    if (this.problem.firstChild) {  // it is there now
      this.problem.replaceChildren();
      for (const part of this.parts) part.hidden = false;
    }
    document.title = `${visible(run.id)} · ${run.state} · Tandem`;
    setBadge(this.state, run.state);
    const why = [run.reason, run.message].filter(Boolean);
    setText(this.reason, visible(why.length > 1 && why[1].includes(why[0]) ? why[1]
                                                                            : why.join(': ')));
    this.showLabels(labelsOf(run));
    const at = progressOf(run);
    this.bar.hidden = this.steps.hidden = !at;
    if (at) {
      if (this.bar.value !== at.share) this.bar.value = at.share;
      setText(this.steps, `${at.warm ? 'warm start: ' : ''}step ${format.count(at.done)} of ` +
          format.count(at.all));
    }
    setText(this.times, timesOf(run));
    setAttribute(this.times, 'title', visible(run.run_dir ?? ''));
    const figures = figuresOf(run);
    this.figures.hidden = !figures.length;
    keyed(this.figures, figures, {
      key: ([title]) => title,
      make: ([title, , hint, shape = 'narrow']) =>
        el(`div.${shape}`, {title: hint}, el('dt', {}, title), el('dd')),
      update: (node, [, text]) => setText(node.lastChild, text),
    });
    this.showControls();
    this.select();  // which tabs a run has is known by now
  }

  showLabels(labels) {
    this.about.hidden = !labels.length;
    keyed(this.about, labels, {
      key: ([title]) => title,
      make: ([title, , shape = 'label']) => el(`div.${shape}`, {}, el('dt', {}, title), el('dd')),
      update: (node, [, text]) => setText(node.lastChild, visible(text)),
    });
  }

  makeControls() {
    this.less = el('button', {'aria-label': 'One actor less', onclick: () => this.scale(-1)},
        '−');
    this.extra = el('button', {'aria-label': 'One actor more', onclick: () => this.scale(1)},
        '+');
    this.rollouts = el('span.rollouts');
    this.cancelButton =
        el('button.danger', {onclick: () => this.confirm.showModal()}, 'Cancel run');
    this.confirm = el('dialog', {'aria-label': 'Cancel the run'},
        el('h2', {}, 'Cancel this run?'),
        el('p', {}, visible(this.id), ' stops. Its directory, with metrics, samples and ' +
            'checkpoints, stays.'),
        el('div.buttons', {},
            el('button', {onclick: () => this.confirm.close(), autofocus: true}, 'Keep it running'),
            el('button.danger', {onclick: () => this.cancel()}, 'Cancel the run')));
    this.controls.append(
        el('div.scale', {role: 'group', 'aria-label': 'Actors'}, this.less, this.rollouts,
           this.extra),
        this.cancelButton, this.confirm);
    this.controls.hidden = true;
  }

  // The role that the buttons scale: rollouts, or the first role of a job of actors alone. The record
  // of an ended run has a list of its actors instead.
  scaledRole() {
    const roles = this.run.actors;
    if (!roles || Array.isArray(roles)) return undefined;
    return roles.rollout ? 'rollout' : Object.keys(roles)[0];
  }

  showControls() {
    const role = this.scaledRole();
    this.controls.hidden = isFinal(this.run.state) || !role;
    if (!role) return;
    const counts = this.run.actors[role];
    const wanted = this.wanted ?? counts.desired;
    if (this.wanted === counts.desired) this.wanted = undefined;
    setText(this.rollouts, `${counts.ready}/${wanted} ${role === 'rollout' ? 'rollouts' : role}`);
    setAttribute(this.rollouts, 'title', 'Ready, of those wanted');
    this.less.disabled = wanted <= (role === 'rollout' ? 1 : 0) || this.run.state === 'Stopping';
    this.extra.disabled = this.run.state === 'Stopping';
    this.cancelButton.disabled = this.run.state === 'Stopping';
  }

  async scale(by) {
    const role = this.scaledRole();
    const wanted = (this.wanted ?? this.run.actors[role].desired) + by;
    if (wanted < (role === 'rollout' ? 1 : 0)) return;
    this.wanted = wanted;
    this.showControls();
    try {
      await post(apiPath(['jobs', this.id, 'scale']), {[role]: wanted});
      toast(`${this.id}: ${wanted} ${role}${wanted === 1 ? '' : 's'} wanted`);
    } catch (error) {
      this.wanted = undefined;
      toast([error.message, error.help].filter(Boolean).join('. '), 'bad');
    }
    this.main.poke();
  }

  async cancel() {
    this.confirm.close();
    try {
      await post(apiPath(['jobs', this.id, 'cancel']));
      toast(`${this.id} is being cancelled`);
    } catch (error) {
      toast([error.message, error.help].filter(Boolean).join('. '), 'bad');
    }
    this.main.poke();
  }

  makeTabs() {
    this.tabs.append(...kTabs.map(([key, title]) => el('a', {
      'data-tab': key, href: link(['runs', this.id, key]),
    }, title)));
  }

  // The tab that the address asks for; of a job of actors alone the actors take the plots' place.
  wantedTab() {
    const wanted = parse().parts[2] ?? 'plots';
    return wanted === 'plots' && this.run?.trains === false ? 'actors' : wanted;
  }

  // Called whenever the address changes but stays within this run.
  route() {
    const before = this.shown;
    this.select();
    if (before && before === this.shown) this.tabView.route?.();
  }

  // Shows the tab that is wanted by the address and by what the run is.
  select() {
    if (this.problem.firstChild) return;
    const wanted = this.wantedTab();
    kTabs.forEach(([key, , ofTraining], i) => {
      const tab = this.tabs.children[i];
      setAttribute(tab, 'aria-current', key === wanted ? 'page' : null);
      tab.hidden = Boolean(ofTraining) && this.run?.trains === false;
    });
    if (this.shown === wanted) return;
    this.tab?.end();
    this.tab = new Scope();
    this.shown = wanted;
    this.tabView = this.make(wanted, this.tab);
    this.panel.replaceChildren(this.tabView.node);
  }

  make(tab, scope) {
    switch (tab) {
      case 'actors': return new ActorsView(scope, {job: this.id});
      case 'waits': return new WaitsView(scope, this.id);
      case 'samples': return new SamplesView(scope, this.id);
      case 'events': return new EventsView(scope, this.id);
      case 'config': return new ConfigView(scope, this.id);
      case 'plots': return new PlotsView(scope, this.id, () => this.others);
      default: return {node: emptyState(`A run has no page ${visible(tab)}.`,
          el('a', {href: link(['runs', this.id])}, visible(this.id)))};
    }
  }
}
