// The state of the page lies in the address: #/runs/ID/TAB?compare=a,b&smooth=0.6. A link to a view
// is a copy of the address.

export function parse(hash = location.hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return {parts, query: Object.fromEntries(new URLSearchParams(query))};
}

export function link(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== '' && value !== null &&
                                                           value !== undefined);
  const text = kept.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
  return '#/' + parts.map(encodeURIComponent).join('/') +
         (text ? '?' + text.replaceAll('%2C', ',').replaceAll('%2F', '/') : '');
}

// Changes the query of the current address; the view is told by `changed`, not built again.
export function setQuery(changes) {
  const {parts, query} = parse();
  const next = link(parts, {...query, ...changes});
  if (next !== location.hash) history.replaceState(null, '', next);
}

export function go(parts, query) {
  location.hash = link(parts, query);
}
