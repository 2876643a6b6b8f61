// Numbers, sizes and times as people read them. '–' stands for a value that there is not.

export const kNone = '–';

const missing = (value) => typeof value !== 'number' || !Number.isFinite(value);

// At most four significant digits: 0.8712, 12.3k, 4.1e-7.
export function number(value) {
  if (missing(value)) return kNone;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size < 1e-3) return Number(value.toPrecision(3)).toExponential().replaceAll('-', '−');
  if (size >= 1e9) return trimmed(value / 1e9, 3) + 'G';
  if (size >= 1e6) return trimmed(value / 1e6, 3) + 'M';
  if (size >= 1e5) return trimmed(value / 1e3, 4) + 'k';
  if (size >= 1e4 && !Number.isInteger(value)) return trimmed(value / 1e3, 4) + 'k';
  return Number.isInteger(value) ? count(value) : trimmed(value, 4);
}

function trimmed(value, digits) {
  return String(Number(value.toPrecision(digits))).replace('-', '−');
}

// 100 000 with thin spaces, which no locale mistakes for a decimal sign.
export function count(value) {
  if (missing(value)) return kNone;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f').replace('-', '−');
}

// An evaluation's mean, and what it leaves out: "0.79 (over 97 of 100, 3 failed)".
export function evaluation(run) {
  const mean = number(run.eval_final);
  if (missing(run.eval_final) || missing(run.eval_failed) || run.eval_failed === 0) return mean;
  const all = run.eval_scored + run.eval_failed;
  return `${mean} (over ${count(run.eval_scored)} of ${count(all)}, ${count(run.eval_failed)} failed)`;
}

export function percent(fraction) {
  return missing(fraction) ? kNone : trimmed(fraction * 100, fraction < 0.1 ? 2 : 3) + ' %';
}

export function bytes(value) {
  if (missing(value)) return kNone;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

// The two largest units: 4.2 s, 3 min 20 s, 5 h 12 min, 2 d 3 h.
export function duration(seconds) {
  if (missing(seconds)) return kNone;
  if (seconds < 0) seconds = 0;
  if (seconds < 10) return seconds.toFixed(1) + ' s';
  if (seconds < 60) return Math.round(seconds) + ' s';
  const s = Math.round(seconds);
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

// Times come as milliseconds since 1970, as text that Date reads, or not at all.
export function timeOf(value) {
  if (value === null || value === undefined || value === '' || value === 0) return null;
  const time = typeof value === 'number' ? value : Date.parse(value);
  return Number.isFinite(time) ? time : null;
}

const two = (value) => String(value).padStart(2, '0');

export function clock(value) {
  const time = timeOf(value);
  if (time === null) return kNone;
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function dateTime(value) {
  const time = timeOf(value);
  if (time === null) return kNone;
  const date = new Date(time);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(time)}`;
}

// The clock alone for today, the date as well for other days.
export function shortTime(value) {
  const time = timeOf(value);
  if (time === null) return kNone;
  const today = new Date().toDateString() === new Date(time).toDateString();
  return today ? clock(time) : dateTime(time).slice(5, 16);
}

export function ago(value, now = Date.now()) {
  const time = timeOf(value);
  return time === null ? kNone : duration((now - time) / 1000);
}
