// The box above a list that finds what holds its text. The text lies in the address as `find`.

import {el} from './dom.js';
import {parse, setQuery} from './route.js';

export class Search {
  constructor({placeholder, label, onchange}) {
    this.text = parse().query.find ?? '';
    this.node = el('input', {
      type: 'search', placeholder, value: this.text, 'aria-label': label,
      oninput: () => {
        this.text = this.node.value;
        setQuery({find: this.text});
        onchange();
      },
    });
  }

  // Whether the text is in one of `texts`; an empty text is in all.
  finds(...texts) {
    return texts.join(' ').toLowerCase().includes(this.text.toLowerCase());
  }
}
