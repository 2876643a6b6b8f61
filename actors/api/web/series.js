// Changes of series between the API's answer and a plot, as functions of values: joining a fresh
// tail to what is there, smoothing, the wall clock as x, several runs on one x axis, their mean.
//
// A series is {steps, min, max, mean}, one entry per bucket of steps, as the API sends it.

// `base` up to the first step of `tail`, then `tail`.
export function joined(base, tail) {
  if (!tail?.steps.length) return base;
  if (!base?.steps.length) return tail;
  let keep = base.steps.length;
  while (keep > 0 && base.steps[keep - 1] >= tail.steps[0]) --keep;
  const join = (name) => base[name].slice(0, keep).concat(tail[name]);
  return {steps: join('steps'), min: join('min'), max: join('max'), mean: join('mean')};
}

// An exponential moving average that starts unbiased; `weight` in [0, 1) is what the past counts.
// Values that are no numbers stay gaps.
export function smoothed(values, weight) {
  if (!(weight > 0)) return values;
  let sum = 0, total = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

// Student's t at 97.5 % for 1, 2, … degrees of freedom; beyond, the normal distribution's.
const kStudent = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
                  2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086];
const student = (freedom) => kStudent[freedom - 1] ?? 1.96;

// The mean of several runs' series with its 95 % interval: a series whose `min` and `max` are the
// interval's ends. Its steps are those of the run that has most of them; a run counts where it has
// steps before and after, so that one that ended early pulls nothing. One run alone has no
// interval.
export function meanOf(all) {
  const known = all.map(withoutGaps).filter((series) => series.steps.length);
  const out = {steps: [], min: [], max: [], mean: []};
  if (!known.length) return out;
  const {steps} = known.reduce((a, b) => b.steps.length > a.steps.length ? b : a);
  for (const step of steps) {
    const values = known.filter((one) => one.steps[0] <= step && step <= one.steps.at(-1))
        .map((one) => valueAt(one, step));
    const n = values.length;
    const mean = values.reduce((sum, value) => sum + value, 0) / n;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const half = n > 1 ? student(n - 1) * Math.sqrt(squares / (n - 1) / n) : 0;
    out.steps.push(step);
    out.mean.push(mean);
    out.min.push(mean - half);
    out.max.push(mean + half);
  }
  return out;
}

function withoutGaps({steps, mean}) {
  const there = steps.map((_, i) => i).filter((i) => usable(mean[i], false));
  return {steps: there.map((i) => steps[i]), mean: there.map((i) => mean[i])};
}

// The value of a series without gaps at `step`, between buckets by straight lines; null where it
// has none.
export function valueAt({steps, mean}, step) {
  if (!steps.length) return null;
  let low = 0, high = steps.length - 1;
  if (step <= steps[0]) return mean[0];
  if (step >= steps[high]) return mean[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle;
    else high = middle;
  }
  const share = (step - steps[low]) / (steps[high] - steps[low]);
  return mean[low] + share * (mean[high] - mean[low]);
}

const usable = (value, log) => value !== null && Number.isFinite(value) && (!log || value > 0);

// One line's points as [x, [low, middle, high]]; null where there is nothing to draw. On a
// logarithmic axis what is not positive cannot be drawn, and a band's low end is its middle then.
export function points(series, {smoothing = 0, clock = null, log = false}) {
  const middle = smoothed(series.mean, smoothing);
  const out = [];
  series.steps.forEach((step, i) => {
    const x = clock ? valueAt(clock, step) : step;
    if (x === null) return;
    if (!usable(middle[i], log)) return void out.push([x, null]);
    const low = usable(series.min[i], log) ? series.min[i] : middle[i];
    const high = usable(series.max[i], log) ? series.max[i] : middle[i];
    out.push([x, [low, middle[i], high]]);
  });
  return out;
}

// Rows for dygraphs: x, then one [low, middle, high] per line, nulls where a line has no point.
export function rows(lines) {
  const at = new Map();
  lines.forEach((line, i) => {
    for (const [x, value] of line) {
      let row = at.get(x);
      if (!row) at.set(x, row = [x, ...lines.map(() => [null, null, null])]);
      if (value) row[i + 1] = value;
    }
  });
  return [...at.values()].sort((a, b) => a[0] - b[0]);
}

// The entry of a line that is nearest to x, or null.
export function nearest(line, x) {
  let best = null;
  for (const point of line)
    if (point[1] && (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x))) best = point;
  return best;
}
