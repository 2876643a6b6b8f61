// A table that is kept up to date in place: rows by key, cells that change only where their text
// does, sorting by a click on a column's head. On a narrow screen each row is a card (style.css).
//
// A column: {key, title, text(row) or fill(cell, row), sort(row), number, wide, hint}.

import {el, keyed, setAttribute, setText} from './dom.js';

export class Table {
  constructor({columns, key, label, sort = null, onsort = () => {}, rowClass = null}) {
    this.columns = columns;
    this.key = key;
    this.rowClass = rowClass;
    this.sort = sort;  // {key, down}
    this.onsort = onsort;
    this.rows = [];
    this.heads = columns.map((column) => this.head(column));
    this.body = el('tbody');
    this.node = el('div.table-wrap', {},
        el('table', {'aria-label': label},
            el('thead', {}, el('tr', {}, this.heads)), this.body));
  }

  head(column) {
    const classes = `col-${column.key}` + (column.number ? ' number' : '');
    if (!column.sort) return el('th', {class: classes, scope: 'col'}, column.title);
    const button = el('button.sort', {
      title: column.hint ?? `Sort by ${column.title.toLowerCase()}`,
      onclick: () => this.sortBy(column.key),
    }, column.title);
    return el('th', {class: classes, scope: 'col'}, button);
  }

  // The first click sorts numbers downwards and text upwards, the next turns it, the third ends it.
  sortBy(key) {
    const column = this.columns.find((one) => one.key === key);
    const first = Boolean(column.number);
    if (this.sort?.key !== key) this.sort = {key, down: first};
    else if (this.sort.down === first) this.sort = {key, down: !first};
    else this.sort = null;
    this.onsort(this.sort);
    this.update(this.rows);
  }

  sorted(rows) {
    const column = this.sort && this.columns.find((one) => one.key === this.sort.key);
    if (!column?.sort) return rows;
    const sign = this.sort.down ? -1 : 1;
    return rows.toSorted((a, b) => {
      const x = column.sort(a), y = column.sort(b);
      if (x === y) return 0;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return typeof x === 'number'
          ? sign * (x - y)
          : sign * String(x).localeCompare(String(y), 'en', {numeric: true});
    });
  }

  update(rows) {
    this.rows = rows;
    this.columns.forEach((column, i) => {
      const on = this.sort?.key === column.key;
      setAttribute(this.heads[i], 'aria-sort',
                   on ? (this.sort.down ? 'descending' : 'ascending') : null);
    });
    keyed(this.body, this.sorted(rows), {
      key: this.key,
      make: () => el('tr', {}, this.columns.map((column) => el('td', {
        class: `col-${column.key}` + (column.number ? ' number' : '') +
            (column.wide ? ' wide' : ''),
        'data-label': column.title,
      }))),
      update: (row, item) => this.fill(row, item),
    });
  }

  fill(row, item) {
    if (this.rowClass) setAttribute(row, 'class', this.rowClass(item) || null);
    this.columns.forEach((column, i) => {
      const cell = row.children[i];
      if (column.fill) column.fill(cell, item);
      else setText(cell, column.text(item));
      if (column.hover) setAttribute(cell, 'title', column.hover(item));
    });
  }
}
