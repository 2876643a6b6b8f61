// The text follows the runbook: what was measured, the fleet that matches, what to recover before
// anything is added, and the fleets around it in one table.
#include "actors/main/size_report.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/fleet_json.h"
#include "actors/main/size_numbers.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::app {

using nlohmann::json;
using scheduler::FleetCost;
using scheduler::SteadyState;

namespace {

constexpr double kTenMinutes = 600;
constexpr std::size_t kSplitsShown = 9;  // in the text, around the best one

FleetCost cost_of_fleet(const SizeReport& report, const SteadyState& fleet, std::int64_t ranks) {
  return scheduler::cost_of({.prices = *report.input.prices,
                             .devices_per_rollout = report.input.plan.devices_per_rollout,
                             .devices_per_rank = report.input.plan.devices_per_rank},
                            fleet, ranks);
}

// Of steps that were measured; nullopt: all figures are given.
std::optional<std::int64_t> measured_steps(const SizeInput& input) {
  return input.from == RatesFrom::kFlags ? std::nullopt : std::optional(input.rates.steps);
}

std::string source_words(const SizeReport& report) {
  const SizeInput& input = report.input;
  if (input.from == RatesFrom::kFlags) return "the command line";
  return (input.from == RatesFrom::kMeasured ? "a run made for this" : input.job) + " (" +
         input.of + "), the newest " + steps_word(input.rates.steps) + " in " +
         grouped(input.rates.seconds) + " s" +
         (input.rates.since_resize ? ", since its rollouts last changed in number" : "");
}

std::string rollout_words(const SizeReport& report) {
  const auto& all = report.model.rollouts_per_s;
  const auto [slowest, fastest] = std::ranges::minmax(all);
  std::string text;
  if (report.input.plan.replicas) text = std::to_string(*report.input.plan.replicas) + " of ";
  text += grouped(report.mean.instance_per_s) + " tok/s each";
  if (slowest != fastest)
    text += " (" + grouped(slowest) + " to " + grouped(fastest) + " while they generate)";
  if (report.model.pause_fraction > 0.0005)
    text += ", installs taken off (" + percent(report.model.pause_fraction) + ")";
  if (report.model.generated_per_trained > 1.005)
    text +=
        " to train, " + grouped(report.model.generated_per_trained, 2) + " times as much generated";
  return text;
}

std::string lines_of_facts(const SizeReport& report) {
  const SizeInput& input = report.input;
  std::string text = "rates     " + source_words(report) + "\n";
  text += "trainer   " + grouped(report.model.step_tokens) + " tokens per step in " +
          short_seconds(report.model.step_seconds) + " s: " + grouped(report.mean.consumed_per_s) +
          " tok/s when it never waits\n";
  text += "rollouts  " + rollout_words(report) + "\n";
  if (input.as_it_ran)
    text += "measured  trainer idle " + percent(input.rates.trainer_idle_fraction) +
            ", rollouts idle " + percent(input.rates.rollout_idle_fraction) + "\n";
  if (input.rates.prefix_hit_ratio) {
    const scheduler::RecoveryFacts facts{
        .rates = {},
        .completions_per_prompt = input.plan.completions_per_prompt,
        .group_prompt_shared = input.plan.group_prompt_shared};
    text += "prompts   " +
            percent(scheduler::prompt_share_saved(facts, *input.rates.prefix_hit_ratio)) +
            " of their tokens need no computation (prefix hits " +
            percent(*input.rates.prefix_hit_ratio) + ", " +
            std::to_string(input.plan.completions_per_prompt) + " completions each)\n";
  }
  text += "matched   " + rollouts_word(report.matched) + " (headroom " +
          grouped(input.headroom, 2) + ")\n";
  if (input.room)
    text += "room      for " + rollouts_word(input.room->rollouts) + " in all on " +
            input.room->where + "\n";
  for (const std::string& note : input.notes) text += "note      " + note + "\n";
  return text;
}

std::string mark_of(const SizeReport& report, std::int64_t rollouts) {
  std::string mark = report.input.plan.replicas == rollouts ? "present" : "";
  if (rollouts == report.matched) mark += mark.empty() ? "matched" : ", matched";
  return mark;
}

std::string fleet_table(const SizeReport& report, int width) {
  using cli::Align;
  std::vector<cli::Column> columns{
      {"ROLLOUTS", Align::kRight},      {""},
      {"TRAINER IDLE", Align::kRight},  {"ROLLOUTS IDLE", Align::kRight},
      {"BACKLOG TOK/S", Align::kRight}, {"IN 10 MIN", Align::kRight},
      {"S/STEP", Align::kRight},        {"COMPLETIONS/S", Align::kRight},
      {"STEPS/DAY", Align::kRight}};
  if (report.input.prices)
    for (const char* const title : {"/STEP", "/DAY", "/1000 COMPLETIONS"})
      columns.push_back({report.input.prices->currency + title, Align::kRight});
  std::vector<cli::Row> rows;
  for (const SteadyState& fleet : report.fleets) {
    const double backlog = fleet.backlog_per_s;
    cli::Row row{std::to_string(fleet.rollouts),
                 mark_of(report, fleet.rollouts),
                 percent(fleet.trainer_idle_fraction),
                 percent(fleet.rollout_idle_fraction),
                 backlog > 0 ? "+" + grouped(backlog) : "0",
                 cli::short_count(backlog * kTenMinutes),
                 short_seconds(fleet.cycle_seconds),
                 fleet.completions_per_s > 0 ? grouped(fleet.completions_per_s) : "-",
                 grouped(fleet.steps_per_day, 0)};
    if (report.input.prices) {
      const FleetCost cost = cost_of_fleet(report, fleet, report.input.plan.ranks);
      row.push_back(money(cost.per_step));
      row.push_back(money(cost.per_day));
      row.push_back(fleet.completions_per_s > 0 ? money(cost.per_thousand_completions) : "-");
    }
    rows.push_back(std::move(row));
  }
  return cli::render_table(columns, rows, width);
}

std::string split_words(const SizeReport& report) {
  const SizeInput& input = report.input;
  return std::to_string(*input.devices) + " devices, each rollout at headroom " +
         grouped(input.headroom, 2) + "; the learner's speed " +
         (input.efficiency_given
              ? "times " + grouped(2 * input.learner_efficiency, 2) + " as its ranks double"
              : "taken as linear in its ranks, which nothing has measured "
                "(--learner-efficiency)") +
         "\n";
}

std::string split_table(const SizeReport& report, int width) {
  using cli::Align;
  std::vector<cli::Column> columns{{"ROLLOUTS", Align::kRight},
                                   {"LEARNER", Align::kRight},
                                   {""},
                                   {"STEPS/HOUR", Align::kRight},
                                   {"TRAINER IDLE", Align::kRight},
                                   {"ROLLOUTS IDLE", Align::kRight}};
  if (report.input.prices)
    columns.push_back({report.input.prices->currency + "/STEP", Align::kRight});
  const auto& all = report.splits->all;
  const std::size_t best = report.splits->best;
  const std::size_t first = std::min(best - std::min(best, kSplitsShown / 2),
                                     all.size() - std::min(all.size(), kSplitsShown));
  const std::size_t last = std::min(all.size(), first + kSplitsShown);
  std::vector<cli::Row> rows;
  for (std::size_t i = first; i < last; ++i) {
    const scheduler::Split& split = all[i];
    rows.push_back({std::to_string(split.fleet.rollouts), std::to_string(split.ranks),
                    i == best ? "best" : "", grouped(split.steps_per_hour),
                    percent(split.fleet.trainer_idle_fraction),
                    percent(split.fleet.rollout_idle_fraction)});
    if (report.input.prices)
      rows.back().push_back(money(cost_of_fleet(report, split.fleet, split.ranks).per_step));
  }
  std::string text = cli::render_table(columns, rows, width);
  if (rows.size() < all.size())
    text += std::to_string(all.size() - rows.size()) + " others are slower; -o json has all\n";
  return text;
}

std::string advice_lines(const SizeReport& report) {
  std::string text;
  int number = 0;
  const auto add = [&](const AdviceWords& words, const std::string& behind) {
    text += "  " + std::to_string(++number) + ". " + words.seen + behind + "\n";
    if (!words.mend.empty()) text += "     " + words.mend + "\n";
  };
  if (report.input.troubles > 0)
    add({"the run tells of " + std::to_string(report.input.troubles) +
             (report.input.troubles == 1 ? " trouble" : " troubles") + " of its own",
         "tandem why " + report.input.job +
             ": a trainer that is not healthy looks like rollouts "
             "that cannot keep up"},
        "");
  for (const scheduler::Advice& advice : report.advice)
    add(words_of(advice, report),
        advice.matched_after && *advice.matched_after < report.matched
            ? "; without it " + std::to_string(*advice.matched_after) + " would match"
            : "");
  return text.empty() ? "" : "recover before adding rollouts:\n" + text;
}

json cost_json(const FleetCost& cost) {
  return {{"per_hour", cost.per_hour},
          {"per_day", cost.per_day},
          {"per_step", cost.per_step},
          {"per_thousand_completions", cost.per_thousand_completions}};
}

json fleet_json(const SizeReport& report, const SteadyState& fleet, std::int64_t ranks) {
  json object{{"rollouts", fleet.rollouts},
              {"cycle_seconds", fleet.cycle_seconds},
              {"trainer_idle_fraction", fleet.trainer_idle_fraction},
              {"rollout_idle_fraction", fleet.rollout_idle_fraction},
              {"backlog_per_s", fleet.backlog_per_s},
              {"backlog_tokens_in_10_min", fleet.backlog_per_s * kTenMinutes},
              {"completions_per_s", fleet.completions_per_s},
              {"steps_per_day", fleet.steps_per_day}};
  if (report.input.prices) object["cost"] = cost_json(cost_of_fleet(report, fleet, ranks));
  return object;
}

json plan_json(const SizeInput& input) {
  return {{"rollouts", input.plan.replicas ? json(*input.plan.replicas) : json()},
          {"learner_ranks", input.plan.ranks},
          {"completions_per_prompt", input.plan.completions_per_prompt},
          {"prompts_per_step", input.plan.prompts_per_step},
          {"max_staleness", input.plan.max_staleness},
          {"headroom", input.headroom},
          {"target_trainer_idle", input.trainer_idle_target}};
}

json raise_json(const std::optional<scheduler::LimitRaise>& raise) {
  if (!raise) return {};
  return {{"key", spelling(raise->limit)}, {"now", raise->now}, {"raised", raise->raised}};
}

json advice_json(const SizeReport& report) {
  json list = json::array();
  for (const scheduler::Advice& advice : report.advice) {
    AdviceWords words = words_of(advice, report);
    list.push_back({{"kind", spelling(advice.kind)},
                    {"seen", advice.seen},
                    {"threshold", advice.threshold},
                    {"actor", advice.actor.empty() ? json() : json(advice.actor)},
                    {"matched_after", advice.matched_after ? json(*advice.matched_after) : json()},
                    {"raise", raise_json(advice.raise)},
                    {"message", std::move(words.seen)},
                    {"mend", std::move(words.mend)}});
  }
  return list;
}

// Of a trainer that waits much longer than predicted; else null.
json cause_json(const SizeReport& report) {
  if (!report.gap || !report.gap->cause) return {};
  const scheduler::CauseWords words = cause_words(*report.gap);
  return {{"wait", spelling(report.gap->cause->wait)},
          {"seconds", report.gap->cause->seconds},
          {"raise", raise_json(report.gap->cause->raise)},
          {"message", words.what},
          {"mend", words.mend}};
}

json splits_json(const SizeReport& report) {
  json splits = json::array();
  for (std::size_t i = 0; i < report.splits->all.size(); ++i) {
    const scheduler::Split& split = report.splits->all[i];
    json one = fleet_json(report, split.fleet, split.ranks);
    one["learner_ranks"] = split.ranks;
    one["step_seconds"] = split.step_seconds;
    one["steps_per_hour"] = split.steps_per_hour;
    one["best"] = i == report.splits->best;
    splits.push_back(std::move(one));
  }
  return {{"devices", *report.input.devices},
          {"learner_efficiency", report.input.learner_efficiency},
          {"learner_efficiency_given", report.input.efficiency_given},
          {"splits", std::move(splits)}};
}

}  // namespace

std::string grouped(double value, int decimals) {
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
  std::string text = digits;
  const std::size_t point = std::min(text.find('.'), text.size());
  if (point < text.size()) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  for (std::size_t at = point; at > 3 && text[at - 4] != '-';) text.insert(at -= 3, ",");
  return text;
}

Result<SizeReport> size_report(SizeInput input) {
  SizeReport report{.input = std::move(input), .mean = {}};
  const SizeInput& asked = report.input;
  if (asked.rates.rollouts.empty() || asked.rates.steps <= 0)
    return Error{ErrorCode::kInvalid, "there are no rates of any rollout and step", "",
                 "wait for the run's first steps"};
  if (exchange::install_fraction(asked.rates) >= 1)
    return Error{ErrorCode::kInvalid, "a rollout's pause for installs is as long as a step", "",
                 "the seconds of a pause are less than those of a step"};
  report.model = scheduler::model_of(asked.rates, asked.plan.overlaps());
  if (const auto checked = scheduler::check_model(report.model, asked.headroom); !checked)
    return checked.error();
  report.mean = scheduler::rates_of(report.model);
  report.matched = scheduler::matched_rollouts(report.model, asked.headroom);
  report.fleets = scheduler::fleets_around(report.model, asked.plan.replicas, report.matched);
  if (asked.plan.replicas)
    report.verdict = scheduler::verdict_on(
        {.present = *asked.plan.replicas,
         .matched = report.matched,
         .measured_trainer_idle =
             asked.as_it_ran ? std::optional(asked.rates.trainer_idle_fraction) : std::nullopt,
         .steps = asked.unsettled.empty() ? measured_steps(asked) : 0,
         .trainer_idle_target = asked.trainer_idle_target,
         .overlaps = asked.plan.overlaps()});
  if (asked.as_it_ran && asked.plan.replicas)
    report.gap = scheduler::gap_of({.rates = asked.rates,
                                    .overlaps = asked.plan.overlaps(),
                                    .rollouts = *asked.plan.replicas,
                                    .limits = asked.plan.limits});
  if (asked.devices)
    report.splits = scheduler::splits_of({.model = report.model,
                                          .ranks = asked.plan.ranks,
                                          .devices = *asked.devices,
                                          .learner_efficiency = asked.learner_efficiency,
                                          .headroom = asked.headroom});
  if (asked.from != RatesFrom::kFlags)
    report.advice =
        scheduler::recoveries({.rates = asked.rates,
                               .completions_per_prompt = asked.plan.completions_per_prompt,
                               .group_prompt_shared = asked.plan.group_prompt_shared,
                               .staleness_max = asked.plan.max_staleness,
                               .staleness_mean = asked.staleness_mean,
                               .trainer_idle_target = asked.trainer_idle_target,
                               .headroom = asked.headroom,
                               .rollouts = asked.as_it_ran ? asked.plan.replicas.value_or(0) : 0,
                               .limits = asked.plan.limits});
  return report;
}

std::string size_text(const SizeReport& report, int width) {
  std::string text = lines_of_facts(report) + "\n" + fleet_table(report, width);
  if (report.splits) text += "\n" + split_words(report) + split_table(report, width);
  if (const std::string advice = advice_lines(report); !advice.empty()) text += "\n" + advice;
  if (report.verdict) {
    const AdviceWords verdict = words_of_verdict(report);
    text += "\n" + verdict.seen + "\n" + (verdict.mend.empty() ? "" : "  " + verdict.mend + "\n");
  }
  return text;
}

json size_json(const SizeReport& report) {
  const SizeInput& input = report.input;
  json object{{"source",
               {{"from", spelling(input.from)},
                {"of", input.of.empty() ? json() : json(input.of)},
                {"run", input.job.empty() ? json() : json(input.job)},
                {"as_it_ran", input.as_it_ran},
                {"troubles", input.troubles},
                {"unsettled", input.unsettled.empty() ? json() : json(input.unsettled)},
                {"notes", input.notes}}},
              {"rates", exchange::rates_json(input.rates)},
              {"plan", plan_json(input)},
              {"consumed_per_s", report.mean.consumed_per_s},
              {"rollout_per_s", report.mean.instance_per_s},
              {"present", input.plan.replicas ? json(*input.plan.replicas) : json()},
              {"matched", report.matched},
              {"fleets", json::array()},
              {"advice", advice_json(report)},
              {"verdict", nullptr},
              {"cause", cause_json(report)},
              {"room", nullptr},
              {"idle_side", nullptr}};
  if (input.room)
    object["room"] = {{"rollouts", input.room->rollouts}, {"where", input.room->where}};
  for (const SteadyState& fleet : report.fleets) {
    object["fleets"].push_back(fleet_json(report, fleet, input.plan.ranks));
    object["fleets"].back()["present"] = fleet.rollouts == input.plan.replicas;
    object["fleets"].back()["matched"] = fleet.rollouts == report.matched;
  }
  if (input.prices) object["currency"] = input.prices->currency;
  if (report.splits) object["split"] = splits_json(report);
  if (report.verdict) {
    const AdviceWords words = words_of_verdict(report);
    object["verdict"] = spelling(*report.verdict);
    object["message"] = words.seen;
    object["mend"] = words.mend;
    if (input.plan.overlaps())
      object["idle_side"] = spelling(scheduler::idle_side(
          report.mean.instance_per_s * static_cast<double>(*input.plan.replicas),
          report.mean.consumed_per_s));
  }
  return object;
}

}  // namespace tandem::app
