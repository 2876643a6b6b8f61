// Rates and plan are gathered here, and the report is made of both (size_report.h). With a run and
// JOB.yaml the rates are the run's, and the fleet is the one that JOB.yaml plans.
#include "actors/main/size_command.h"

#include <cmath>
#include <ostream>
#include <ranges>
#include <utility>

#include "actors/cli/arguments.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/views.h"
#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "actors/main/measured_run.h"
#include "actors/main/price_option.h"
#include "actors/main/size_numbers.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kRanksMost = 4096, kStalenessMost = 1 << 20;

Result<void> positive(const char* option, const std::optional<double>& value) {
  if (!value || (std::isfinite(*value) && *value > 0)) return {};
  return cli::usage_error(
      "`" + std::string(option) + " " + grouped(*value, 6) + "` is no positive number",
      "a finite number above 0");
}

struct Bounds {
  double least, most;
};
Result<void> share(const char* option, double value, const Bounds& bounds) {
  if (value >= bounds.least && value <= bounds.most) return {};  // not NaN
  return cli::usage_error("`" + std::string(option) + " " + grouped(value, 6) +
                              "` is no share from " + grouped(bounds.least, 3) + " to " +
                              grouped(bounds.most, 3),
                          "see `tandem size --help`");
}

Error no_rates() {
  return cli::usage_error(
      "there are no rates to size by",
      "--from RUN, --measure, or --rollout-tokens-per-s, --batch-tokens and --step-seconds");
}

}  // namespace

cli::VerbHelp SizeCommand::help() {
  return {.name = "size",
          .group = cli::VerbGroup::kLook,
          .description = "How many rollouts match the trainer, and what to mend before adding any",
          .examples = {
              "tandem size --from arithmetic-grpo-1",
              "tandem size JOB.yaml --from arithmetic-grpo-1 --devices 16",
              "tandem size JOB.yaml --measure --price rollout=2.10,learner=4.00",
              "tandem size --rollout-tokens-per-s 4000 --batch-tokens 786432 --step-seconds 20 "
              "--replicas 8"}};
}

void SizeCommand::options(cli::Options& options) {
  options.add("JOB.yaml", job, "The job whose fleet is planned; without it that of the run");
  rate_options(options);
  fleet_options(options);
  options.check([this] { return check(); });
  cli::add_sets(options, sets);
  using enum cli::OutputForm;
  cli::add_output(options, output, {kTable, kJson});
}

void SizeCommand::rate_options(cli::Options& options) {
  options
      .add("--from", from_run,
           "Take the rates of a job, a run or a run directory, over its newest steps")
      .value("RUN")
      .offers("runs");
  options.flag("--measure", measure,
               "Take those of a short run of JOB.yaml, made here and removed after it");
  options
      .add("--measure-seconds", measure_seconds,
           "How long that run may take, its start included; 60 without it")
      .value("N")
      .between(kMeasureSecondsMin, kMeasureSecondsMax);
  options
      .add("--rollout-tokens-per-s", rollout_tokens_per_s,
           "Tokens that one rollout generates per second")
      .value("N");
  options.add("--batch-tokens", batch_tokens, "Tokens that the trainer trains per step").value("N");
  options
      .add("--step-seconds", step_seconds,
           "Seconds that it takes for a step when it does not wait for samples")
      .value("N");
  options
      .add("--install-seconds", install_seconds,
           "Seconds of each step in which a rollout pauses to install weights; 0 without it")
      .value("N");
  options
      .add("--completions", completions,
           "Completions per step; else data.train_batch_size times rollout.n")
      .value("N");
}

void SizeCommand::fleet_options(cli::Options& options) {
  options.add("--replicas", replicas, "Rollouts of the present fleet; else rollout.replicas")
      .value("N")
      .between(std::int64_t{1}, scheduler::kRolloutsMost);
  options.add("--ranks", ranks, "Ranks of the learner; else learner.ranks, or 1")
      .value("N")
      .between(std::int64_t{1}, kRanksMost);
  options
      .add("--max-staleness", max_staleness,
           "0: rollouts and trainer take turns; else async.max_staleness, or 1")
      .value("N")
      .between(std::int64_t{0}, kStalenessMost);
  options
      .add("--headroom", headroom,
           "The share of the rollouts' rate that is counted on, for pauses and drift; 0.8 without "
           "it")
      .value("SHARE");
  options
      .add("--target-trainer-idle", trainer_idle_target,
           "The share of time that the trainer of a matched fleet may wait; 0.05 without it")
      .value("SHARE");
  options
      .add("--devices", devices,
           "Divide so many devices, one for each rollout and each rank, in every way")
      .value("N")
      .between(std::int64_t{2}, scheduler::kDevicesMost);
  options
      .add("--learner-efficiency", learner_efficiency,
           "How far twice the ranks train twice as fast, from 0.5 (no faster) to 1; 1 without it")
      .value("SHARE");
  add_price(options, prices);
}

Result<void> SizeCommand::check() const {
  if (measure && from_run)
    return cli::usage_error("--measure excludes --from", "the rates are from one of both");
  if (measure && !job)
    return cli::usage_error("--measure needs JOB.yaml", "the job that is to be measured");
  if (!sets.empty() && !job)
    return cli::usage_error("--set needs JOB.yaml", "the job whose keys it replaces");
  const std::pair<const char*, const std::optional<double>&> numbers[] = {
      {"--rollout-tokens-per-s", rollout_tokens_per_s},
      {"--batch-tokens", batch_tokens},
      {"--step-seconds", step_seconds},
      {"--install-seconds", install_seconds},
      {"--completions", completions}};
  for (const auto& [option, value] : numbers)
    if (const auto good = positive(option, value); !good) return good;
  if (const auto good = share("--headroom", headroom, {0.01, 1}); !good) return good;
  if (const auto good = share("--target-trainer-idle", trainer_idle_target, {0, 0.99}); !good)
    return good;
  if (const auto good = share("--learner-efficiency", learner_efficiency.value_or(1), {0.5, 1});
      !good)
    return good;
  if (has_rates()) return {};
  if (rollout_tokens_per_s || batch_tokens || step_seconds) {
    for (const auto& [option, value] : std::span(numbers).first<3>())
      if (!value)
        return cli::usage_error("`" + std::string(option) + "` is missing",
                                "the rates are --rollout-tokens-per-s, --batch-tokens and "
                                "--step-seconds; or --from RUN");
  }
  // The job's own mistakes come first, a missing file above all.
  return job ? Result<void>() : no_rates();
}

bool SizeCommand::has_rates() const {
  return measure || from_run || (rollout_tokens_per_s && batch_tokens && step_seconds);
}

Result<std::optional<job::LoadedJob>> SizeCommand::loaded_job() const {
  if (!job) return std::optional<job::LoadedJob>();
  auto loaded = job::load_job(*job, sets, job::Files::kUnchecked);
  if (!loaded) return loaded.error();
  return std::optional(*std::move(loaded));
}

Result<std::optional<PoolPlan>> SizeCommand::planned(
    const std::optional<job::LoadedJob>& loaded) const {
  if (!loaded) return std::optional<PoolPlan>();
  runs::JobKeys keys;
  for (job::PrintedKey& key : job::printed_keys(loaded->spec))
    keys.emplace_back(std::move(key.path), std::move(key.value));
  auto plan = plan_of(keys, job->string());
  if (!plan) return plan.error();
  return std::optional(*std::move(plan));
}

SizeInput SizeCommand::input_of_run(const RunRates& run,
                                    const std::optional<PoolPlan>& plan) const {
  SizeInput input{.from = RatesFrom::kRun,
                  .of = run.from,
                  .job = run.id,
                  .live = run.live,
                  .autoscaled = run.autoscaled,
                  .troubles = run.troubles,
                  .unsettled = run.unsettled,
                  .room = run.room,
                  .notes = plan || replicas ? std::vector<std::string>() : run.notes,
                  .rates = run.rates,
                  .plan = run.plan,
                  .staleness_mean = run.staleness_mean,
                  .devices = {},
                  .prices = {}};
  const PoolPlan& measured = run.plan;
  if (plan) input.plan = *plan;
  if (ranks) input.plan.ranks = *ranks;
  input.rates = replanned(run.rates, measured, input.plan);
  if (input.plan.completions_per_step() != measured.completions_per_step())
    input.notes.emplace_back(
        "the batch is another one than the run's: tokens and seconds of a step are taken in "
        "proportion to it");
  if (input.plan.ranks != measured.ranks)
    input.notes.emplace_back(
        "the learner has other ranks than the run's: its speed is taken as linear in them");
  return input;
}

SizeInput SizeCommand::input_of_flags(const std::optional<PoolPlan>& plan) const {
  SizeInput input{.of = {},
                  .job = {},
                  .notes = {},
                  .rates = {.steps = 1,
                            .seconds = *step_seconds,
                            .rollouts = {{.actor = "", .tokens_per_s = 0, .busy_fraction = 1}},
                            .prefix_hit_ratio = {}},
                  .plan = plan.value_or(PoolPlan{.replicas = {}, .prices = {}}),
                  .staleness_mean = {},
                  .devices = {},
                  .prices = {}};
  input.rates.completions_per_step = static_cast<double>(input.plan.completions_per_step());
  if (ranks) input.plan.ranks = *ranks;
  return input;
}

void SizeCommand::replace(SizeInput& input) const {
  scheduler::FleetRates& rates = input.rates;
  if (rollout_tokens_per_s)
    rates.rollouts = {{.actor = "",
                       .tokens_per_s = *rollout_tokens_per_s,
                       .busy_fraction = 1,
                       .install_fraction = rates.rollouts.front().install_fraction}};
  if (batch_tokens) rates.step_tokens = *batch_tokens;
  if (completions) rates.completions_per_step = *completions;
  if (step_seconds) rates.step_seconds = *step_seconds;
  if (install_seconds) {
    rates.install_seconds = *install_seconds;
    for (scheduler::RolloutRate& rollout : rates.rollouts)
      rollout.install_fraction = *install_seconds / rates.step_seconds;
  }
  if (replicas) input.plan.replicas = *replicas;
  if (max_staleness) input.plan.max_staleness = *max_staleness;
  input.headroom = headroom;
  input.trainer_idle_target = trainer_idle_target;
  input.devices = devices;
  input.learner_efficiency = learner_efficiency.value_or(1);
  input.efficiency_given = learner_efficiency.has_value();
  input.prices = prices ? prices : input.plan.prices;
}

Result<int> SizeCommand::run(const cli::VerbContext& context) {
  const auto loaded = loaded_job();
  if (!loaded) return loaded.error();
  if (!has_rates()) return no_rates();
  const auto plan = planned(*loaded);
  if (!plan) return plan.error();
  std::optional<RunRates> run;
  if (from_run) {
    auto read = read_run_rates(context, *from_run);
    if (!read) return read.error();
    run = *std::move(read);
  } else if (measure) {
    auto measured = app::measure({.job = *job, .sets = sets, .seconds = measure_seconds}, context);
    if (!measured) return measured.error();
    if (!measured->rates) return measured->code;
    run = std::move(measured->rates);
  }
  SizeInput input = run ? input_of_run(*run, *plan) : input_of_flags(*plan);
  replace(input);
  if (measure) {
    input.from = RatesFrom::kMeasured;
    input.job.clear();  // it is gone
    input.measure_seconds = static_cast<double>(measure_seconds);
    input.notes.emplace_back(
        "these are the first steps of the job: lengths, and with them all rates, change as it "
        "learns");
  }
  const bool replaced =
      rollout_tokens_per_s || batch_tokens || step_seconds || install_seconds || completions;
  if (run && replaced)
    input.notes.emplace_back("figures of the command line take the place of the run's");
  input.as_it_ran = run && !replaced && input.plan.same_fleet(run->plan);
  if (*loaded && !input.room) input.room = room_here((*loaded)->spec);
  const auto report = size_report(std::move(input));
  if (!report) return report.error();
  if (output == cli::OutputForm::kJson)
    context.console.out << cli::shown_json(size_json(*report), 2) << "\n" << std::flush;
  else
    context.console.out << size_text(*report, context.console.columns()) << std::flush;
  return 0;
}

}  // namespace tandem::app
