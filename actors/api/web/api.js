// Calls of the HTTP API, and polling that slows down while the controller does not answer and stops
// while nobody looks. Streams (?watch=1) are not used: a browser keeps six connections to one host,
// over all of its windows, and a stream holds one for good.

export class ApiError extends Error {
  constructor(status, message, help) {
    super(message);
    this.status = status;
    this.help = help;
  }
  // Whether the controller has answered and will answer the same again: there is no such thing, or
  // it cannot be read. A controller that is away, or a browser that is not signed in, is no refusal.
  get refuses() {
    return this.status >= 400 && this.status !== 401;
  }
}

const kDeadlineMs = 15000;

// Whether the controller answers: told to `listener` with {ok, since, status, retryAt}.
export const connection = {
  ok: null, since: null, status: 0, retryAt: null, listener: () => {},
  good() {
    if (this.ok === true) return;
    Object.assign(this, {ok: true, since: Date.now(), status: 200, retryAt: null});
    this.listener(this);
  },
  bad(status) {
    if (this.ok !== false) this.since = Date.now();
    Object.assign(this, {ok: false, status});
    this.listener(this);
  },
};

async function call(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      credentials: 'same-origin',
      cache: 'no-store',
      ...options,
      signal: options.signal
          ? AbortSignal.any([options.signal, AbortSignal.timeout(kDeadlineMs)])
          : AbortSignal.timeout(kDeadlineMs),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    connection.bad(0);
    throw new ApiError(0, 'the controller does not answer', 'tandem status');
  }
  if (answer.status === 401) connection.bad(401);
  else connection.good();
  if (answer.ok) return answer;
  const text = await answer.text();
  let error = {};
  try {
    error = JSON.parse(text).error ?? {};
  } catch {
    error = {};
  }
  throw new ApiError(answer.status, error.message ?? `HTTP status ${answer.status}`, error.help);
}

export async function get(path, signal) {
  return (await call(path, {signal})).json();
}

export async function getText(path, signal) {
  return (await call(path, {signal})).text();
}

export async function post(path, body) {
  const answer = await call(path, {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify(body ?? {}),
  });
  return answer.json();
}

// A path below /api/v1 with each part escaped, and a query without its empty values.
export function apiPath(parts, query = {}) {
  const path = '/api/v1/' + parts.map(encodeURIComponent).join('/');
  const text = Object.entries(query)
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
      .join('&');
  return text ? `${path}?${text}` : path;
}

const kRetryMsMax = 15000;

// Runs `task(signal)` now and again `intervalMs` after it ended; after a failure it waits twice as
// long each time. `refused(error)` is told of an ApiError that refuses. stop() ends it for good, poke() runs it at once.
export class Poll {
  static all = new Set();

  constructor(task, intervalMs, refused = () => {}) {
    this.task = task;
    this.refused = refused;
    this.intervalMs = intervalMs;
    this.failures = 0;
    this.abort = new AbortController();
    Poll.all.add(this);
    this.run();
  }

  async run() {
    clearTimeout(this.timer);
    if (this.abort.signal.aborted || this.running) return;
    if (document.hidden) return;  // visibilitychange pokes
    this.running = true;
    try {
      await this.task(this.abort.signal);
      this.failures = 0;
    } catch (error) {
      if (this.abort.signal.aborted) void 0;  // the view was left meanwhile
      else if (!(error instanceof ApiError)) console.error(error);
      else if (error.refuses) this.refused(error);
      ++this.failures;
    }
    this.running = false;
    if (this.abort.signal.aborted) return;
    const wait = Math.min(this.intervalMs * 2 ** this.failures,
                          Math.max(kRetryMsMax, this.intervalMs));
    if (this.failures && connection.ok === false) {
      const at = Date.now() + wait;
      if (!connection.retryAt || at < connection.retryAt || connection.retryAt < Date.now()) {
        connection.retryAt = at;
        connection.listener(connection);
      }
    }
    this.timer = setTimeout(() => this.run(), wait);
  }

  poke() {
    this.run();
  }

  stop() {
    this.abort.abort();
    clearTimeout(this.timer);
    Poll.all.delete(this);
  }
}

export function pokeAll() {
  for (const poll of Poll.all) poll.poke();
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) pokeAll();
});

// The polls and clean-up functions of a view. When the view is left the polls end and the functions
// run.
export class Scope {
  constructor() {
    this.ends = [];
  }
  poll(task, intervalMs, refused) {
    const poll = new Poll(task, intervalMs, refused);
    this.ends.push(() => poll.stop());
    return poll;
  }
  onEnd(end) {
    this.ends.push(end);
  }
  end() {
    for (const end of this.ends.splice(0)) end();
  }
}
