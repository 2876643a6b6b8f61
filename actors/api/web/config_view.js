// The configuration of a run, which is its effective job file with every default, and the
// differences of several runs' configurations.

import {apiPath, get} from './api.js';
import {el, emptyState, refusal, setText, visible} from './dom.js';
import * as format from './format.js';
import {Search} from './search.js';
import {Table} from './table.js';

const kEveryMs = 15000;  // it changes only when the run is resumed with another

// [{key, value}] in the job file's order.
export async function fetchConfig(run, signal) {
  return (await get(apiPath(['runs', run, 'config']), signal)).config ?? [];
}

// The keys whose values are not the same in all of `configs`, with a value for each of these; one
// that lacks the key has undefined. Keys keep the order of the first configuration that has them.
export function differing(configs) {
  const tables = configs.map((config) => new Map(config.map(({key, value}) => [key, value])));
  const keys = [...new Set(configs.flatMap((config) => config.map(({key}) => key)))];
  return keys.map((key) => ({key, values: tables.map((table) => table.get(key))}))
      .filter(({values}) => values.some((value) => value !== values[0]));
}

// Keys by which runs of one configuration may differ: a seed, and what a run is called.
const isLabel = (key) => key === 'seed' || key === 'name' || key.startsWith('tracking.');

// The configurations among the runs of one group, `configs` by run: each run's with what tells it
// apart, as "lr=0.001". Runs that differ in their seed alone have the same one; where all have the
// same, it is "". A run whose configuration is not known is left out.
export function variantsOf(runs, configs) {
  const known = runs.filter((run) => Array.isArray(configs.get(run)));
  const rows = differing(known.map((run) => configs.get(run))).filter(({key}) => !isLabel(key));
  const last = (key) => key.slice(key.lastIndexOf('.') + 1);
  const title = (key) =>
      rows.filter((row) => last(row.key) === last(key)).length > 1 ? key : last(key);
  return new Map(known.map((run, i) =>
      [run, rows.map(({key, values}) => `${title(key)}=${values[i] ?? format.kNone}`).join(' ')]));
}

export class ConfigView {
  constructor(scope, run) {
    this.config = null;
    this.search = new Search({placeholder: 'Find a key or a value',
                              label: 'Find in the configuration', onchange: () => this.show()});
    this.status = el('span.hint');
    this.empty = el('div', {}, el('p.empty', {}, 'loading'));
    this.table = new Table({
      label: 'Configuration',
      key: (row) => row.key,
      columns: [
        {key: 'key', title: 'Key', sort: (row) => row.key, text: (row) => visible(row.key)},
        {key: 'value', title: 'Value', wide: true, text: (row) => visible(row.value)},
      ],
    });
    this.node = el('div', {},
        el('div.tools', {}, this.search.node, this.status,
           el('span.hint', {}, 'The job file with its defaults, as ', el('code', {}, 'job.yaml'),
              ' of the run has it; ', el('code', {}, 'tandem explain KEY'), ' says what a key does.')),
        this.empty, this.table.node);
    this.table.node.hidden = true;
    scope.poll(async (signal) => {
      this.config = await fetchConfig(run, signal);
      this.show();
    }, kEveryMs, (error) => {
      this.table.node.hidden = true;
      this.empty.replaceChildren(refusal(error));
    });
  }

  show() {
    if (!this.config) return;
    const shown = this.config.filter(({key, value}) => this.search.finds(key, value));
    setText(this.status, `${shown.length} of ${this.config.length} keys`);
    this.table.node.hidden = !shown.length;
    this.empty.replaceChildren(...(shown.length ? [] : [emptyState('No key or value matches.')]));
    this.table.update(shown);
  }
}

// What sets the runs of a comparison apart: a column for each of them.
export class ConfigDifference {
  constructor() {
    this.runs = [];
    this.configs = new Map();  // run -> its configuration, or an ApiError
    this.title = el('summary');
    this.body = el('div');
    this.node = el('details.difference', {open: true}, this.title, this.body);
    this.node.hidden = true;
  }

  // The runs in the order of their colours; a comparison has two or more.
  async compare(runs, signal) {
    this.runs = runs;
    this.node.hidden = runs.length < 2;
    if (this.node.hidden) return;
    await Promise.all(runs.filter((run) => !this.configs.has(run)).map(async (run) => {
      try {
        this.configs.set(run, await fetchConfig(run, signal));
      } catch (error) {
        if (!error.refuses) throw error;
        this.configs.set(run, error);
      }
    }));
    if (runs === this.runs) this.show();
  }

  show() {
    const known = this.runs.filter((run) => Array.isArray(this.configs.get(run)));
    const rows = differing(known.map((run) => this.configs.get(run)));
    const columns = known.map((run, i) => ({
      key: `run-${i}`, title: visible(run), wide: true,
      text: (row) => row.values[i] === undefined ? format.kNone : visible(row.values[i]),
    }));
    setText(this.title, known.length < 2 ? 'Configurations' : !rows.length
        ? 'The configurations are the same'
        : `The configurations differ in ${rows.length} ${rows.length === 1 ? 'key' : 'keys'}`);
    const table = new Table({
      label: 'Differences of the configurations', key: (row) => row.key,
      columns: [{key: 'key', title: 'Key', text: (row) => visible(row.key)}, ...columns],
    });
    table.update(rows);
    const unknown = this.runs.filter((run) => !known.includes(run));
    this.body.replaceChildren(
        ...unknown.map((run) => el('p.hint', {},
            `${visible(run)}: ${visible(this.configs.get(run).message)}`)),
        ...(rows.length ? [table.node] : []));
  }
}
