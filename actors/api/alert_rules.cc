// Thresholds are for a fleet in steady work: figures of the newest steps (rates), or of the moment.
// A figure that swings within a step, as the queue's depth does, is taken as a mean.
#include "actors/api/alert_rules.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace tandem::api {
namespace {

using std::chrono::minutes;
using enum AlertHolds;
using enum AlertSeverity;
using enum AlertUnit;

constexpr AlertRule kAlertRules[] = {
    {.name = "TandemTrainerIdle",
     .severity = kWarning,
     .unit = kShare,
     .figure = {"tandem_trainer_idle_fraction_recent"},
     .threshold = 0.25,
     .steps_min = kAlertStepsMin,
     // Without staleness the two pools take turns, so the learner always waits.
     .unless = {{"tandem_staleness_bound", kBelow, 1}},
     .lasts = minutes(5),
     .summary = "The learner of {job} waited for samples {value} of the time.",
     .advice = "tandem why {job}; tandem size --from {job} says how many rollouts match it"},
    {.name = "TandemQueueFull",
     .severity = kWarning,
     .figure = {.family = "tandem_queue_depth", .mean_over = minutes(10)},
     .threshold = 0.8,
     .against = AlertFigure{"tandem_queue_limit"},
     .steps_min = kAlertStepsMin,
     .lasts = minutes(5),
     .summary = "{value} generated groups of {job} wait for its learner, nearly all that its "
                "staleness allows: it has more rollouts than it can use.",
     .advice = "tandem size --from {job}; tandem scale {job} rollout=N"},
    {.name = "TandemSampleTooOld",
     .severity = kCritical,
     .figure = {"tandem_oldest_sample_age_steps"},
     .threshold = 1,
     .against = AlertFigure{"tandem_staleness_bound"},
     .lasts = minutes(1),
     .summary = "The oldest sample of {job} that waits is {value} steps old, more than "
                "async.max_staleness.",
     .advice = "tandem why {job}; tandem get groups, and report it: the bound is a promise"},
    {.name = "TandemTokensWasted",
     .severity = kWarning,
     .figure = {"tandem_tokens_generated_per_trained_recent"},
     .threshold = 2,
     .steps_min = kAlertStepsMin,
     .lasts = minutes(10),
     .summary = "{job} generates {value} tokens for each token that it trains.",
     .advice = "tandem get jobs {job} -o wide; docs/reasons.md says why groups are discarded"},
    {.name = "TandemPrefixHitsDropped",
     .severity = kWarning,
     .holds = kBelow,
     .unit = kShare,
     .figure = {"tandem_prefix_cache_hit_ratio"},
     .threshold = 0.5,
     .against = AlertFigure{.family = "tandem_prefix_cache_hit_ratio",
                            .mean_over = minutes(60),
                            .before = minutes(15)},
     .steps_min = kAlertStepsMin,
     .lasts = minutes(10),
     .summary = "The prefix caches of {job} have {value} of the prompts' tokens, less than half of "
                "what they had.",
     .advice = "tandem metrics {job} --keys tandem/prefix_hit_ratio; was its data or its "
               "memory changed?"},
    {.name = "TandemInstallPauseLong",
     .severity = kWarning,
     .unit = kShare,
     .figure = {"tandem_install_pause_fraction"},
     .threshold = 0.1,
     .steps_min = kAlertStepsMin,
     .lasts = minutes(5),
     .summary = "The rollouts of {job} pause {value} of the time to install weights.",
     .advice = "tandem describe {job}; publish less often (async.trigger_parameter_sync_step), or "
               "by a faster weight_broadcast.type; more rollouts do not help"},
    {.name = "TandemCostDrift",
     .severity = kWarning,
     .figure = {"tandem_cost_per_step"},
     .threshold = 1.25,
     .against =
         AlertFigure{
             .family = "tandem_cost_per_step", .mean_over = minutes(60), .before = minutes(60)},
     .steps_min = kAlertStepsMin,
     .lasts = minutes(10),
     .summary = "A step of {job} costs {value}, a quarter more than an hour before.",
     .advice = "tandem why {job}; tandem size --from {job} says which pool pays for the other"},
    // Ten minutes, or three steps where a step takes longer than three of these minutes. After the
    // last step only a final evaluation goes on, whose figures come at its end.
    {.name = "TandemNoProgress",
     .severity = kCritical,
     .unit = kSeconds,
     .figure = {"tandem_seconds_since_progress"},
     .threshold = 600,
     .steps_min = kAlertStepsMin,
     .unless = {{.family = "tandem_seconds_since_progress",
                 .holds = kBelow,
                 .threshold = 3,
                 .times = "tandem_seconds_per_step"},
                {"tandem_steps_left", kBelow, 1}},
     .lasts = minutes(5),
     .summary = "{job} has made no progress for {value}, longer than three of its steps take.",
     .advice = "tandem why {job}; tandem logs learner/0 -j {job}"},
    {.name = "TandemStepsSkipped",
     .severity = kCritical,
     .holds = kAtLeast,
     .figure = {"tandem_steps_skipped_in_row"},
     .threshold = 3,
     .lasts = minutes(1),
     .summary = "The newest {value} steps of {job} had no finite gradient and changed nothing.",
     .advice = "tandem events -j {job}; docs/guides/failures.md, A gradient that is not finite"},
    // Far above what rounding in bf16 and a few steps of staleness make of it (0.02 were seen).
    {.name = "TandemLogprobsDiffer",
     .severity = kWarning,
     .figure = {.family = "tandem_logprob_diff_mean", .mean_over = minutes(10)},
     .threshold = 0.2,
     .steps_min = kAlertStepsMin,
     .lasts = minutes(5),
     .summary = "The log-probabilities of {job} differ by {value} nats on average between its "
                "engines and its learner.",
     .advice = "tandem metrics {job} --keys tandem/logprob_diff/mean; algorithm.rollout_is: token "
               "corrects for it; docs/guides/engines.md, What servers compute otherwise"},
    // Longer than the minute for which an actor that works again still counts as one that dies.
    {.name = "TandemCrashLoop",
     .severity = kCritical,
     .figure = {"tandem_actor_crash_loop"},
     .lasts = minutes(2),
     .summary = "{actor} dies again and again.",
     .advice = "tandem why {actor}; tandem logs {actor} --previous"},
    // A twentieth of a large disk takes long to fill: it counts only below 10 GB.
    {.name = "TandemDiskNearlyFull",
     .severity = kWarning,
     .holds = kBelow,
     .unit = kBytes,
     .figure = {"tandem_disk_free_bytes"},
     .threshold = 0.05,
     .against = AlertFigure{"tandem_disk_size_bytes"},
     .unless = {{"tandem_disk_free_bytes", kAtLeast, 1e10}},
     .lasts = minutes(1),
     .summary = "The disk of {directory} has {value} left, less than a twentieth: the jobs on it "
                "stand still once it is full.",
     .advice = "tandem get runs; tandem delete RUN removes one that has ended, and "
               "learner.max_ckpt_to_keep bounds the checkpoints of each"},
    {.name = "TandemDiskFull",
     .severity = kCritical,
     .figure = {"tandem_disk_waits"},
     .lasts = minutes(1),
     .summary = "{job} stands still: the disk of its run takes nothing more.",
     .advice = "tandem why {job}; make room on the disk that it names: the job goes on by itself"},
    {.name = "TandemAutoscaleAtLimit",
     .severity = kWarning,
     .figure = {"tandem_autoscale_at_limit"},
     .lasts = minutes(10),
     .summary = "The autoscale of {job} wants more rollouts than it may have.",
     .advice = "tandem describe {job}; raise pools.rollout.autoscale.max, or add a node"},
    {.name = "TandemNodeLost",
     .severity = kCritical,
     .figure = {"tandem_nodes", "state", "Lost"},
     .lasts = minutes(1),
     .summary = "{value} of the cluster's nodes are lost.",
     .advice = "tandem get nodes; start the node again, or the controller without it"},
    {.name = "TandemJournalFails",
     .severity = kCritical,
     .figure = {"tandem_journal_fails"},
     .lasts = minutes(1),
     .summary = "The controller cannot write its journal, and starts no process.",
     .advice = "tandem events; make room on the disk of TANDEM_HOME"},
    // Half a second is what other logs that wait for their disk take for slow. The slowest write of
    // each minute must be so slow: one hiccup is none.
    {.name = "TandemJournalSlow",
     .severity = kWarning,
     .unit = kSeconds,
     .figure = {"tandem_journal_write_seconds"},
     .threshold = 0.5,
     .lasts = minutes(5),
     .summary = "A write of the journal of {journal} took {value}: all that it records waits for "
                "this disk.",
     .advice = "tandem status; journals and runs lie in its home: iostat -x 1 shows that disk, and "
               "what else writes there slows it"},
    // Prometheus alone can tell: a controller that is gone shows nothing.
    {.name = "TandemControllerDown",
     .severity = kCritical,
     .holds = kBelow,
     .figure = {"up", "job", "tandem"},
     .threshold = 1,
     .lasts = minutes(1),
     .summary = "The controller does not answer at /metrics.",
     .advice = "tandem status; on its machine, controller.log below TANDEM_HOME says why"},
};

std::string short_number(double value) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

// As Prometheus' humanizeDuration writes it: "812ms", "7.5s", "15m 36s", "2h 0m 5s", "1d 2h 0m 0s".
std::string seconds_text(double value) {
  if (value < 1) return short_number(value * 1000) + "ms";
  if (value < 60) return short_number(value) + "s";
  const auto whole = static_cast<std::int64_t>(value);
  const std::string minutes_on =
      std::to_string(whole / 60 % 60) + "m " + std::to_string(whole % 60) + "s";
  if (whole < 3600) return minutes_on;
  const auto hours = whole / 3600;
  const std::string hours_on = std::to_string(hours % 24) + "h " + minutes_on;
  return hours < 24 ? hours_on : std::to_string(hours / 24) + "d " + hours_on;
}

// As Prometheus' humanize1024 writes it, but for a space: "812 B", "4.211 GiB".
std::string bytes_text(double value) {
  constexpr const char* kUnits[] = {"B", "kiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return short_number(value) + " " + kUnits[unit];
}

const char* sign(AlertHolds holds) {
  switch (holds) {
    case kAbove:
      return " > ";
    case kBelow:
      return " < ";
    case kAtLeast:
      return " >= ";
  }
  return "";
}

std::string duration_of(minutes duration, const char* before) {
  return duration > minutes(0) ? before + duration_text(duration) : "";
}

// The series of a mean, where they were there when its time began.
std::string was_there(const AlertFigure& figure) {
  if (figure.mean_over == minutes(0)) return "";
  return std::string(" and ") + figure.family +
         duration_of(figure.mean_over + figure.before, " offset ");
}

}  // namespace

const char* name(AlertSeverity severity) { return severity == kCritical ? "critical" : "warning"; }

std::span<const AlertRule> alert_rules() { return kAlertRules; }

std::string duration_text(minutes duration) {
  const auto hours = duration.count() / 60, rest = duration.count() % 60;
  std::string text = hours > 0 ? std::to_string(hours) + "h" : "";
  if (rest > 0 || hours == 0) text += std::to_string(rest) + "m";
  return text;
}

std::string expression(const AlertFigure& figure) {
  std::string text = figure.family;
  if (figure.label) text += std::string("{") + figure.label + "=\"" + figure.value + "\"}";
  if (figure.mean_over == minutes(0)) return text;
  text += "[" + duration_text(figure.mean_over) + "]" + duration_of(figure.before, " offset ");
  return "avg_over_time(" + text + ")";
}

std::string expression(const AlertRule& rule) {
  std::string text = expression(rule.figure) + sign(rule.holds);
  if (!rule.against)
    text += short_number(rule.threshold);
  else
    text += (rule.threshold == 1 ? "" : short_number(rule.threshold) + " * ") +
            expression(*rule.against);
  text += was_there(rule.figure);
  if (rule.against) text += was_there(*rule.against);
  if (rule.steps_min > 0) text += " and tandem_step >= " + std::to_string(rule.steps_min);
  for (const AlertUnless& unless : rule.unless)
    if (unless.family)
      text += std::string(" unless ") + unless.family + sign(unless.holds) +
              short_number(unless.threshold) +
              (unless.times ? std::string(" * ") + unless.times : "");
  return text;
}

std::string filled(std::string_view text, const AlertSubject& subject, std::string_view value) {
  struct Word {
    std::string_view name, is;
  };
  const Word words[] = {{"{job}", subject.job},
                        {"{actor}", subject.actor},
                        {"{journal}", subject.journal},
                        {"{directory}", subject.directory},
                        {"{value}", value}};
  std::string out;
  while (!text.empty()) {
    std::size_t taken = 1;
    std::string_view is = text.substr(0, 1);
    for (const Word& word : words)
      if (text.starts_with(word.name)) {
        taken = word.name.size();
        is = word.is;
      }
    out += is;
    text.remove_prefix(taken);
  }
  return out;
}

std::string value_text(const AlertRule& rule, double value) {
  switch (rule.unit) {
    case kNumber:
      return short_number(value);
    case kShare:
      return short_number(std::round(value * 1000) / 10) + " %";
    case kSeconds:
      return seconds_text(value);
    case kBytes:
      return bytes_text(value);
  }
  return "";
}

}  // namespace tandem::api
