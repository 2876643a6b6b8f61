// Actors with state, reason and what they use, of one run or of the cluster; one of them in detail
// with its log.

import {apiPath, ApiError, get, getText, Scope} from './api.js';
import {badge, el, emptyState, refusal, setAttribute, setBadge, setText, showText, visible}
  from './dom.js';
import * as format from './format.js';
import {link, parse, setQuery} from './route.js';
import {Search} from './search.js';
import {Table} from './table.js';

const kLiveMs = 2000;
const kLogLines = 400;
const kLineMax = 2000;  // characters of a line of a log
const kEndStates = new Set(['Stopped', 'Failed']);

const isUp = (actor) => !kEndStates.has(actor.state);

export const shortName = (actor) =>
    actor.name.startsWith(actor.job + '/') ? actor.name.slice(actor.job.length + 1) : actor.name;

function reasonOf(actor) {
  const text = actor.message || actor.reason || '';
  return visible(text);
}

function withShortLines(text) {
  return text.split('\n').map((line) => line.length <= kLineMax ? line
      : `${line.slice(0, kLineMax)}… (${format.count(line.length - kLineMax)} more characters)`)
      .join('\n');
}

export class ActorsView {
  // job: the run whose actors are shown, or null for all.
  constructor(scope, {job = null}) {
    this.scope = scope;
    this.job = job;
    this.actors = null;
    const {query} = parse();
    this.ended = query.ended === '1';
    this.opened = query.actor ?? null;
    this.table = this.makeTable();
    this.search = new Search({placeholder: 'Find by name, state or reason', label: 'Find actors',
                              onchange: () => this.show()});
    const ended = el('input', {
      type: 'checkbox', checked: this.ended,
      onchange: () => {
        this.ended = ended.checked;
        setQuery({ended: this.ended ? '1' : ''});
        this.show();
      },
    });
    this.summary = el('span.hint');
    this.empty = el('div');
    this.missing = el('div');  // where the address names an actor that is not there
    this.detail = el('dialog.drawer', {'aria-label': 'Actor'});
    this.detail.addEventListener('close', () => this.closed());
    this.node = el('div', {},
        el('div.tools', {}, this.search.node, el('label', {}, ended, 'ended ones too'), this.summary),
        this.missing, this.empty, this.table.node, this.detail);
    scope.poll(async (signal) => {
      const actors = await get(apiPath(['actors']), signal);
      this.actors = this.job ? actors.filter((actor) => actor.job === this.job) : actors;
      if (this.job && !this.actors.some(isUp)) await this.addFormer(signal);
      this.show();
    }, kLiveMs, (error) => this.empty.replaceChildren(refusal(error)));
    scope.onEnd(() => this.log?.end());
  }

  // Of a run that has ended the controller may know no actors any more, but their logs are there.
  async addFormer(signal) {
    this.former ??= (await get(apiPath(['runs', this.job]), signal)).actors ?? [];
    if (!Array.isArray(this.former)) return;
    const known = new Set(this.actors.map((actor) => actor.name));
    for (const {name, incarnations} of this.former)
      if (!known.has(`${this.job}/${name}`))
        this.actors.push({name: `${this.job}/${name}`, job: this.job, state: 'Stopped', reason: '',
                          message: '', incarnation: Math.max(...incarnations),
                          restarts: incarnations.length - 1});
  }

  makeTable() {
    const hidden = (key) => this.job && key === 'job';
    return new Table({
      label: 'Actors',
      key: (actor) => actor.name,
      columns: [
        {key: 'actor', title: 'Actor', sort: (one) => shortName(one),
         fill: (cell, one) => this.name(cell, one)},
        {key: 'job', title: 'Run', sort: (one) => one.job, fill: (cell, one) => {
          if (!cell.firstChild)
            cell.append(el('a', {href: link(['runs', one.job, 'plots'])}, visible(one.job)));
        }},
        {key: 'state', title: 'State', sort: (one) => one.state, fill: (cell, one) => {
          if (!cell.firstChild) cell.append(badge(''), el('span.reason'));
          setBadge(cell.firstChild, one.state);
          setText(cell.lastChild, reasonOf(one));
          setAttribute(cell.lastChild, 'title', reasonOf(one));
        }},
        {key: 'since', title: 'Since', number: true, sort: (one) => format.timeOf(one.since),
         text: (one) => format.ago(one.since), hover: (one) => format.dateTime(one.since)},
        {key: 'version', title: 'Version', number: true, hint: 'Policy version installed',
         sort: (one) => one.policy_version, text: (one) => format.count(one.policy_version)},
        {key: 'load', title: 'Load', sort: (one) => one.load,
         text: (one) => visible(one.load ?? format.kNone)},
        {key: 'cpu', title: 'CPU', number: true, sort: (one) => one.cpu_percent,
         text: (one) => typeof one.cpu_percent === 'number'
             ? Math.round(one.cpu_percent) + ' %' : format.kNone},
        {key: 'memory', title: 'Memory', number: true, sort: (one) => one.memory_bytes,
         text: (one) => format.bytes(one.memory_bytes)},
        {key: 'restarts', title: 'Restarts', number: true, sort: (one) => one.restarts,
         text: (one) => format.count(one.restarts)},
        {key: 'node', title: 'Node', sort: (one) => one.node,
         text: (one) => visible(one.node ?? format.kNone)},
      ].filter((column) => !hidden(column.key)),
    });
  }

  name(cell, actor) {
    if (!cell.firstChild)
      cell.append(el('button.link', {
        title: 'State and log', onclick: () => this.open(actor.name),
      }, visible(shortName(actor))));
  }

  show() {
    const actors = this.actors ?? [];
    const over = this.job && !actors.some(isUp);  // then there are no others to show
    const shown = actors.filter((one) => (this.ended || over || isUp(one)) &&
        this.search.finds(one.name, one.state, one.reason, one.message));
    const states = new Map();
    for (const one of actors) states.set(one.state, (states.get(one.state) ?? 0) + 1);
    setText(this.summary, [...states].map(([state, n]) => `${n} ${state}`).join(' · '));
    this.table.node.hidden = !shown.length;
    if (!this.actors) this.empty.replaceChildren(el('p.empty', {}, 'loading'));
    else if (shown.length) this.empty.replaceChildren();
    else if (this.search.text) this.empty.replaceChildren(emptyState('No actor matches.'));
    else if (!this.empty.querySelector('.empty-title'))
      this.empty.replaceChildren(emptyState('No actor is up.',
          this.job ? 'The run waits for a place, or has left no logs; its Events say which.'
                   : 'Actors start with a run: tandem submit JOB.yaml'));
    this.table.update(shown);
    if (this.opened && !this.detail.open && this.actors) this.open(this.opened);
    this.showDetail();
  }

  open(name) {
    if (!this.actors.some((one) => one.name === name)) {
      this.opened = null;
      return void this.missing.replaceChildren(emptyState(`There is no actor ${visible(name)}.`,
          'It may be of a run that has ended, or its name may be wrong: ',
          el('code', {}, 'tandem get actors'), ' lists those that there are.'));
    }
    this.missing.replaceChildren();
    this.opened = name;
    setQuery({actor: name});
    this.log?.end();
    this.log = new Scope();
    this.follow = true;
    this.logText = null;
    this.facts = el('dl.facts');
    this.head = badge('');
    this.text = el('pre.log', {
      tabindex: '0', 'aria-label': 'Log',
      onscroll: () => {
        const {scrollTop, scrollHeight, clientHeight} = this.text;
        this.follow = scrollHeight - scrollTop - clientHeight < 24;
      },
    });
    this.why = el('p.why');
    this.detail.replaceChildren(
        el('div.title', {}, el('h2', {}, visible(name)), this.head, el('span.grow'),
           el('button', {onclick: () => this.detail.close(), autofocus: true}, 'Close')),
        this.why, this.facts, this.text);
    this.detail.showModal();
    this.showDetail();
    this.log.poll((signal) => this.readLog(name, signal), kLiveMs);
  }

  closed() {
    this.log?.end();
    this.opened = null;
    setQuery({actor: ''});
  }

  showDetail() {
    const actor = this.detail.open && this.actors?.find((one) => one.name === this.opened);
    if (!actor) return;
    setBadge(this.head, actor.state);
    setText(this.why, [actor.reason, actor.message].filter(Boolean).map(visible).join(': '));
    const facts = [
      ['since', format.dateTime(actor.since)], ['node', actor.node], ['process', actor.pid],
      ['incarnation', actor.incarnation], ['restarts', actor.restarts],
      ['policy version', actor.policy_version], ['load', actor.load],
      ['CPU', typeof actor.cpu_percent === 'number' ? Math.round(actor.cpu_percent) + ' %' : null],
      ['memory', typeof actor.memory_bytes === 'number' ? format.bytes(actor.memory_bytes) : null],
      ['GPUs', actor.gpus?.length ? actor.gpus.join(', ') : null],
    ];
    if (this.facts.childElementCount !== facts.length)
      this.facts.replaceChildren(
          ...facts.map(([title]) => el('div', {}, el('dt', {}, title), el('dd'))));
    facts.forEach(([, value], i) =>
      setText(this.facts.children[i].lastChild, value === null || value === undefined
          ? format.kNone : visible(value)));
  }

  async readLog(name, signal) {
    const actor = this.actors.find((one) => one.name === name);
    if (!actor) return;
    const path = ['runs', actor.job, 'logs', ...shortName(actor).split('/')];
    let text;
    try {
      text = await getText(apiPath(path, {tail: kLogLines}), signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      text = '';
    }
    if (text === this.logText && this.text.childNodes.length) return;
    this.logText = text;
    if (text) showText(this.text, withShortLines(text));
    else setText(this.text, 'The log is empty so far.');
    if (this.follow) this.text.scrollTop = this.text.scrollHeight;
  }
}
