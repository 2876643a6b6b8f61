// Samples: completions with reward, advantage and policy versions. Everything here was written by a
// model or a reward program: it is shown as text, with control characters made visible, cut where
// it is long.

import {apiPath, get} from './api.js';
import {el, emptyState, refusal, setClass, setText, showText, visible} from './dom.js';
import * as format from './format.js';
import {parse, setQuery} from './route.js';

const kLiveMs = 4000;
const kPage = 20;
const kShownMax = 1500;  // characters of a text before it is cut

export class SamplesView {
  constructor(scope, run) {
    this.run = run;
    const {query} = parse();
    this.asked = {step: query.step ?? '', eval: query.eval ?? '', failed: query.failed ?? ''};
    this.samples = [];
    this.older = false;
    this.list = el('div.samples');
    this.status = el('span.hint', {role: 'status'});
    this.moreButton = el('button', {onclick: () => this.loadOlder()}, 'Older samples');
    this.empty = el('div');
    this.node = el('div', {}, this.tools(), this.empty, this.list,
                   el('div.buttons', {}, this.moreButton));
    this.moreButton.hidden = true;
    this.empty.replaceChildren(el('p.empty', {}, 'loading'));
    this.poll = scope.poll((signal) => this.refresh(signal), kLiveMs,
                           (error) => this.empty.replaceChildren(refusal(error)));
  }

  tools() {
    const step = el('input', {
      type: 'number', min: '0', placeholder: 'any step', value: this.asked.step,
      'aria-label': 'Step', onchange: () => this.ask({step: step.value}),
    });
    const kind = el('select', {'aria-label': 'Kind of samples',
                               onchange: () => this.ask(kinds[kind.value])},
        el('option', {value: 'training'}, 'training'),
        el('option', {value: 'all'}, 'training and evaluation'),
        el('option', {value: 'evaluation'}, 'evaluation'),
        el('option', {value: 'failed'}, 'failed rewards'),
        el('option', {value: 'failedEvaluation'}, 'failed in evaluation'));
    const kinds = {
      training: {eval: '', failed: ''}, all: {eval: 'any', failed: ''},
      evaluation: {eval: '1', failed: ''},
      failed: {eval: '', failed: '1'}, failedEvaluation: {eval: '1', failed: '1'},
    };
    kind.value = Object.keys(kinds).find((key) => kinds[key].eval === this.asked.eval &&
                                                  kinds[key].failed === this.asked.failed);
    this.hold = el('input', {type: 'checkbox', onchange: () => this.poll.poke()});
    return el('div.tools', {}, kind, el('label', {}, 'Step', step),
              el('label', {}, this.hold, 'hold still'), this.status);
  }

  ask(changes) {
    Object.assign(this.asked, changes);
    setQuery(this.asked);
    this.samples = [];
    this.older = false;
    this.list.replaceChildren();
    this.load().catch(() => {});
  }

  async refresh(signal) {
    if (this.samples.length && (this.older || this.hold.checked)) return;  // somebody reads
    await this.load(signal);
  }

  path(before) {
    return apiPath(['runs', this.run, 'samples'], {...this.asked, limit: kPage, before});
  }

  async load(signal) {
    const asked = JSON.stringify(this.asked);
    const samples = newestFirst(await get(this.path(), signal));
    if (asked !== JSON.stringify(this.asked)) return;
    const same = samples.length === this.samples.length &&
        keyOf(samples[0]) === keyOf(this.samples[0]);
    if (!same || !samples.length) {
      this.samples = samples;
      this.list.replaceChildren(...samples.map(card));
    }
    this.show(samples.length);
  }

  async loadOlder() {
    this.moreButton.disabled = true;
    try {
      const last = this.samples.at(-1);
      const samples = newestFirst(await get(this.path(last.seq)));
      this.older = true;
      this.samples.push(...samples);
      this.list.append(...samples.map(card));
      this.show(samples.length);
    } finally {
      this.moreButton.disabled = false;
    }
  }

  show(lastPage) {
    this.moreButton.hidden = lastPage < kPage || this.samples.at(-1)?.seq === undefined;
    setText(this.status, this.samples.length
        ? `the newest ${this.samples.length}, newest first` : '');
    if (this.samples.length) return void this.empty.replaceChildren();
    this.empty.replaceChildren(emptyState('No such samples.',
        this.asked.failed ? 'No reward has failed here.'
                          : 'A few of each step are kept once it has been trained.'));
  }
}

function newestFirst(answer) {
  const samples = Array.isArray(answer) ? answer : answer.samples ?? [];
  const [first, last] = [samples[0]?.seq, samples.at(-1)?.seq];
  return first !== undefined && first < last ? samples.toReversed() : samples;
}

const keyOf = (sample) => sample && (sample.seq ?? JSON.stringify(sample).slice(0, 400));

function versionsOf(sample) {
  const versions = sample.versions ?? [];
  if (!versions.length) return null;
  const first = Math.min(...versions), last = Math.max(...versions);
  return first === last ? `version ${format.count(first)}`
                        : `versions ${format.count(first)} – ${format.count(last)}`;
}

function card(sample) {
  const failed = sample.error !== undefined;
  const reward = el('span.reward', {}, failed ? 'failed' : format.number(sample.reward));
  setClass(reward, 'reward ' + (failed ? 'bad' : sample.reward > 0 ? 'good' : 'wait'));
  const facts = [
    sample.eval ? `evaluation ${visible(sample.eval)}` : null,
    sample.greedy ? 'greedy' : typeof sample.sample === 'number' ?
        `sample ${format.count(sample.sample)}` : null,
    sample.data_source === undefined ? null : `from ${visible(sample.data_source)}`,
    sample.step === undefined ? null : `step ${format.count(sample.step)}`,
    typeof sample.advantage === 'number' ? `advantage ${format.number(sample.advantage)}` : null,
    versionsOf(sample),
    sample.finish_reason ? `ended by ${visible(sample.finish_reason)}` : null,
    sample.answer === undefined || sample.answer === null ? null :
        `expected ${visible(typeof sample.answer === 'string' ? sample.answer
                                                              : JSON.stringify(sample.answer))}`,
    sample.group === undefined ? null : `group ${visible(sample.group)}`,
  ].filter(Boolean);
  return el('article.sample', {},
      el('header', {}, reward, facts.map((fact) => el('span', {}, fact))),
      failed ? el('p.why', {}, visible(sample.error)) : null,
      text('Prompt', sample.prompt), text('Completion', sample.completion));
}

function text(title, value) {
  if (value === undefined || value === null) return null;
  const whole = typeof value === 'string' ? value : JSON.stringify(value, null, 1);
  const box = el('pre', {tabindex: '0', 'aria-label': title});
  const parts = [el('h4', {}, title), box];
  if (whole.length <= kShownMax) {
    showText(box, whole);
  } else {
    showText(box, whole.slice(0, kShownMax) + '…');
    const all = el('button.plain', {onclick: () => {
      showText(box, whole);
      all.remove();
    }}, `Show all ${format.count(whole.length)} characters`);
    parts.push(all);
  }
  return el('div.said', {}, parts);
}
