// Events of one run, or of the cluster, the newest first.

import {apiPath, get} from './api.js';
import {el, emptyState, refusal, setAttribute, setText, visible} from './dom.js';
import * as format from './format.js';
import {Search} from './search.js';
import {Table} from './table.js';

const kLiveMs = 2000;
const kLimit = 500;
const kShownMax = 500;
// The looks of the levels that are marked. Messages are not searched for words.
const kClassOf = {error: 'alarming', warning: 'warned'};

export class EventsView {
  // run: whose events, or null for all of the cluster.
  constructor(scope, run = null) {
    this.run = run;
    this.events = [];
    this.last = null;
    this.search = new Search({placeholder: 'Find in level, subject, message',
                              label: 'Find events', onchange: () => this.show()});
    this.status = el('span.hint');
    this.empty = el('div', {}, el('p.empty', {}, 'loading'));
    this.table = new Table({
      label: 'Events',
      key: (event) => `${event.seq} ${event.time}`,
      rowClass: (event) => kClassOf[event.level],
      columns: [
        {key: 'time', title: 'Time', fill: (cell, event) => {
          setText(cell, format.shortTime(event.time));
          setAttribute(cell, 'title', format.dateTime(event.time));
        }},
        {key: 'kind', title: 'Kind', fill: (cell, event) => {
          if (!cell.firstChild) cell.append(el('span'), el('span.level'));
          setText(cell.firstChild, visible(event.kind));
          setText(cell.lastChild, kClassOf[event.level] ? visible(event.level) : '');
        }},
        {key: 'subject', title: 'Subject', text: (event) => visible(this.subject(event)),
         hover: (event) => visible(event.subject)},
        {key: 'message', title: 'Message', wide: true, text: (event) => visible(event.message)},
      ],
    });
    this.node = el('div', {}, el('div.tools', {}, this.search.node, this.status), this.empty,
                   this.table.node);
    this.table.node.hidden = true;
    scope.poll((signal) => this.refresh(signal), kLiveMs,
               (error) => this.empty.replaceChildren(refusal(error)));
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
    const shown = this.events.filter((event) =>
      this.search.finds(event.kind, event.level, event.subject, event.message));
    this.table.node.hidden = !shown.length;
    setText(this.status,
            this.events.length ? `the newest ${this.events.length}, newest first` : '');
    if (shown.length) this.empty.replaceChildren();
    else if (this.search.text) this.empty.replaceChildren(emptyState('No event matches.'));
    else this.empty.replaceChildren(emptyState('No events yet.',
        'States that change, scaling, failures and restarts appear here.'));
    this.table.update(shown);
  }
}
