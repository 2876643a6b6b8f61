// The frame of the page: which view the address asks for, and whether the controller answers.

import {ActorsView} from './actors_view.js';
import {apiPath, connection, get, pokeAll, Scope} from './api.js';
import {badge, el, emptyState, keyed, refusal, setAttribute, setClass, setText, visible}
  from './dom.js';
import {EventsView} from './events_view.js';
import * as format from './format.js';
import {parse} from './route.js';
import {RunView} from './run_view.js';
import {RunsView} from './runs_view.js';

const main = document.getElementById('main');
let scope = new Scope();
let view = null;
let place = '';

class ClusterView {
  constructor(own) {
    this.nodes = el('div.nodes');
    this.node = el('div.page', {}, el('div.title', {}, el('h1', {}, 'Cluster')), this.nodes,
                   new ActorsView(own, {}).node);
    own.poll(async (signal) => this.show(await get(apiPath(['nodes']), signal)), 3000,
             (error) => this.nodes.replaceChildren(refusal(error)));
  }

  show(nodes) {
    keyed(this.nodes, nodes, {
      key: (node) => node.name,
      make: () => el('section.card', {}, el('h3'), el('p')),
      update: (box, node) => {
        setText(box.firstChild, visible(node.name));
        setClass(box, `card ${node.state === 'Ready' && !node.cordoned ? '' : 'bad'}`);
        const found = (node.gpus ?? []).filter((gpu) => !gpu.gone);
        const gpus = found.length ? ` · ${found.length} GPUs` : '';
        const cordoned = node.cordoned ? ` · cordoned: ${visible(node.cordoned)}` :
            found.filter((gpu) => gpu.cordoned)
                .map((gpu) => ` · GPU ${gpu.index} cordoned: ${visible(gpu.cordoned)}`).join('');
        setText(box.lastChild, `${visible(node.state)}${cordoned} · ` +
            `${format.number(node.leased?.cpus ?? 0)} of ${format.number(node.cpus)} CPUs given ` +
            `out · ${format.bytes(node.memory_bytes)}${gpus}`);
      },
    });
  }
}

class AllEventsView {
  constructor(own) {
    this.node = el('div.page', {}, el('div.title', {}, el('h1', {}, 'Events')),
                   new EventsView(own).node);
  }
}

function make(parts, own) {
  switch (parts[0] ?? 'runs') {
    case 'jobs':  // a job is a run that this controller has had
    case 'runs': return parts[1] ? new RunView(own, parts[1]) : new RunsView(own);
    case 'cluster': return new ClusterView(own);
    case 'events': return new AllEventsView(own);
    default: return {node: emptyState(`There is no page ${visible(parts[0])}.`,
        'Pages are ', el('a', {href: '#/'}, 'runs'), ', ', el('a', {href: '#/cluster'}, 'cluster'),
        ' and ', el('a', {href: '#/events'}, 'events'), '.')};
  }
}

function route() {
  const {parts} = parse();
  const page = parts[0] ?? 'runs';
  for (const anchor of document.querySelectorAll('[data-page]'))
    setAttribute(anchor, 'aria-current', anchor.dataset.page === page ? 'page' : null);
  const next = (page === 'runs' || page === 'jobs') && parts[1] ? `run ${parts[1]}` : page;
  if (next !== place) {
    scope.end();
    scope = new Scope();
    place = next;
    document.title = 'Tandem';
    view = make(parts, scope);
    main.replaceChildren(view.node);
    scrollTo(0, 0);
  } else {
    view.route?.();
  }
}

const banner = document.getElementById('banner');
const light = document.getElementById('connection');

function showConnection() {
  setClass(light, 'connection ' + (connection.ok === null ? '' : connection.ok ? 'good' : 'bad'));
  setText(light, connection.ok === null ? 'connecting' : connection.ok ? 'live' : 'disconnected');
  banner.hidden = connection.ok !== false;
  if (connection.ok !== false) return void banner.replaceChildren();
  if (!banner.firstChild)
    banner.append(el('span'), el('button', {onclick: pokeAll}, 'Try now'));
  const left = connection.retryAt ? Math.max(0, Math.ceil((connection.retryAt - Date.now()) / 1000))
                                  : 0;
  setText(banner.firstChild, connection.status === 401
      ? 'This browser is no longer signed in. Run: tandem dashboard'
      : `Disconnected since ${format.clock(connection.since)}. The figures are from then. ` +
        (left ? `Trying again in ${left} s.` : 'Trying again.'));
}

connection.listener = showConnection;
setInterval(() => {
  if (connection.ok === false) showConnection();
}, 1000);

// The alerts that fire, above every page: of a run's alone where one is open.
const alerts = document.getElementById('alerts');
let firing = [];

function showAlerts() {
  const [page, run] = parse().parts;
  const shown = firing.filter((one) => !(page === 'runs' || page === 'jobs') || !run || !one.job ||
      one.job === run);
  alerts.hidden = !shown.length;
  keyed(alerts, shown, {
    key: (one) => `${one.name} ${one.job} ${one.actor}`,
    make: () => el('div.alert', {}, badge(''), el('span.since'), el('span'), el('code')),
    update: (row, one) => {
      const [level, since, message, advice] = row.children;
      setText(level, visible(one.name));
      setClass(level, `badge ${one.severity === 'critical' ? 'bad' : 'warn'}`);
      setText(since, `for ${format.duration(one.since_s)}`);
      setText(message, visible(one.message));
      setText(advice, visible(one.advice));
    },
  });
}

new Scope().poll(async (signal) => {
  const status = await get(apiPath(['status']), signal);
  setText(document.getElementById('version'), `Tandem ${visible(status.version ?? '')}`.trim());
  firing = status.alerts ?? [];
  showAlerts();
}, 5000);

addEventListener('hashchange', route);
addEventListener('hashchange', showAlerts);
route();
