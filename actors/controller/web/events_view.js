// Events of one run, or of the cluster, the newest first.

import {apiPath, get} from './api.js';
import {el, emptyState, setAttribute, setText, visible} from './dom.js';
import * as format from './format.js';
import {parse, setQuery} from './route.js';
import {Table} from './table.js';

const kLiveMs = 2000;
const kLimit = 500;
const kShownMax = 500;

export class EventsView {
  // run: whose events, or null for all of the cluster.
  constructor(scope, run = null) {
    this.run = run;
    this.events = [];
    this.last = null;
    this.find = parse().query.find ?? '';
    const search = el('input', {
      type: 'search', placeholder: 'Find in kind, subject or message', value: this.find,
      'aria-label': 'Find events',
      oninput: () => {
        this.find = search.value;
        setQuery({find: this.find});
        this.show();
      },
    });
    this.status = el('span.hint');
    this.empty = el('div', {}, el('p.empty', {}, 'loading'));
    this.table = new Table({
      label: 'Events',
      key: (event) => `${event.seq} ${event.time}`,
      rowClass: (event) => /fail|error|lost|hung|oom|killed/i.test(event.kind + event.message)
          ? 'alarming' : '',
      columns: [
        {key: 'time', title: 'Time', fill: (cell, event) => {
          setText(cell, format.shortTime(event.time));
          setAttribute(cell, 'title', format.dateTime(event.time));
        }},
        {key: 'kind', title: 'Kind', text: (event) => visible(event.kind)},
        {key: 'subject', title: 'Subject', text: (event) => visible(this.subject(event)),
         hover: (event) => visible(event.subject)},
        {key: 'message', title: 'Message', wide: true, text: (event) => visible(event.message)},
      ],
    });
    this.node = el('div', {}, el('div.tools', {}, search, this.status), this.empty,
                   this.table.node);
    this.table.node.hidden = true;
    scope.poll((signal) => this.refresh(signal), kLiveMs);
  }

  subject(event) {
    return this.run && event.subject?.startsWith(this.run + '/')
        ? event.subject.slice(this.run.length + 1) : event.subject;
  }

  async refresh(signal) {
    const path = this.run ? ['runs', this.run, 'events'] : ['events'];
    const answer = await get(apiPath(path, {since: this.last, limit: kLimit}), signal);
    const events = Array.isArray(answer) ? answer : answer.events ?? [];
    const fresh = events.filter((event) => this.last === null || event.seq > this.last);
    if (this.last === null || fresh.length) {
      this.events = this.events.concat(fresh).sort((a, b) => b.seq - a.seq).slice(0, kShownMax);
      this.last = this.events[0]?.seq ?? 0;
    }
    this.show();
  }

  show() {
    const wanted = this.find.toLowerCase();
    const shown = this.events.filter((event) =>
      !wanted || `${event.kind} ${event.subject} ${event.message}`.toLowerCase().includes(wanted));
    this.table.node.hidden = !shown.length;
    setText(this.status,
            this.events.length ? `the newest ${this.events.length}, newest first` : '');
    if (shown.length) this.empty.replaceChildren();
    else if (wanted) this.empty.replaceChildren(emptyState('No event matches.'));
    else this.empty.replaceChildren(emptyState('No events yet.',
        'States that change, scaling, failures and restarts appear here.'));
    this.table.update(shown);
  }
}
