#include "actors/main/simulate_command.h"

#include <cmath>
#include <csignal>
#include <ostream>
#include <utility>

#include "actors/cli/api_client.h"
#include "actors/cli/arguments.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/sweep.h"
#include "actors/cli/views.h"
#include "actors/forecast/costs_alone.h"
#include "actors/forecast/fleet_spec.h"
#include "actors/job/load_job.h"
#include "actors/job/resume.h"
#include "actors/main/forecast_job.h"
#include "actors/main/price_option.h"
#include "actors/main/run_rates.h"
#include "actors/main/simulate_report.h"
#include "actors/main/step_notice.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/missing_directory.h"
#include "runtime/node/signals.h"

namespace tandem::app {
namespace {

Result<double> seconds_of(const std::optional<std::string>& text, double otherwise) {
  if (!text) return otherwise;
  return forecast::parse_seconds(*text);
}

// Those of a file that somebody has edited may be anything.
Result<void> check_rates(const scheduler::FleetRates& rates) {
  if (const auto good = scheduler::check_model(scheduler::model_of(rates, true)); !good)
    return good.error();
  for (const double s :
       {rates.engine.step_s, rates.engine.sequence_s, rates.engine.prompt_token_s,
        rates.install_seconds, rates.fetch_seconds, rates.score_seconds, rates.turnaround_seconds})
    if (!std::isfinite(s) || s < 0)
      return Error{ErrorCode::kInvalid, "the run's rates have a time that is none", "",
                   "state the costs: `--engine`, `--step-seconds`, `--lengths`"};
  return {};
}

// The variants of --compare: schedules side by side.
std::vector<SimulatedVariant> schedules(const job::JobSpec& job) {
  std::vector<SimulatedVariant> all{{"strict on-policy (K = 0)", {"async.max_staleness=0"}},
                                    {"one step off (K = 1)", {"async.max_staleness=1"}}};
  for (const int k : {2, 4, 8})
    all.push_back({"K = " + std::to_string(k), {"async.max_staleness=" + std::to_string(k)}});
  const std::string k = std::to_string(std::max<std::int64_t>(1, job.async.max_staleness));
  all.push_back({"fixed_lag, K = " + k, {"async.schedule=fixed_lag", "async.max_staleness=" + k}});
  all.push_back({"partial_rollout: false, K = " + k,
                 {"async.partial_rollout=false", "async.max_staleness=" + k}});
  return all;
}

class Simulation {
 public:
  Simulation(const SimulateCommand& command, const cli::VerbContext& context)
      : command_(command),
        context_(context),
        console_(context.console),
        signals_({SIGINT, SIGTERM}) {}

  Result<int> run();

 private:
  Result<std::vector<SimulatedVariant>> variants(const job::JobSpec& job) const;
  Result<ForecastPlan> plan(const job::JobSpec& job) const;
  Result<forecast::Lengths> lengths(const job::JobSpec& job) const;
  // The number of the signal that ended it, or 0.
  Result<int> simulate(SimulatedVariant& variant);

  const SimulateCommand& command_;
  const cli::VerbContext& context_;
  const cli::Console& console_;
  node::Signals signals_;
  std::optional<RunRates> run_;  // of --from
  std::optional<forecast::Lengths> lengths_;
};

Result<std::vector<SimulatedVariant>> Simulation::variants(const job::JobSpec& job) const {
  std::vector<SimulatedVariant> all;
  if (command_.compare) {
    all = schedules(job);
  } else {
    const auto points = cli::sweep_points(command_.sweeps);
    if (!points) return points.error();
    for (const cli::SweepPoint& point : *points) {
      std::string name;
      for (const std::string& set : point) name += (name.empty() ? "" : " ") + set;
      all.push_back({name.empty() ? job.name : name, point});
    }
  }
  return all;
}

Result<ForecastPlan> Simulation::plan(const job::JobSpec& job) const {
  const SimulateCommand::Costs& costs = command_.costs;
  ForecastPlan plan{.rollouts = {}, .steps = command_.steps};
  forecast::EngineCosts common;
  if (run_) {
    const scheduler::FleetRates rates = forecast::rates_alone(
        run_->rates,
        {.cores = costs.cores.value_or(0),
         .learner_threads = run_->plan.threads_per_rank * static_cast<double>(run_->plan.ranks),
         .rollout_threads = run_->plan.threads_per_rollout,
         .overlaps = run_->plan.overlaps()});
    common = engine_costs(rates);
    plan.learner.token_s = rates.step_seconds / rates.step_tokens;
    plan.learner.turnaround_s = rates.turnaround_seconds;
    plan.reward.score_s = rates.score_seconds;
    plan.score_measured = !costs.score;
  }
  for (const auto& [text, to] :
       {std::pair(&costs.install, &common.install_s), std::pair(&costs.step, &plan.learner.step_s),
        std::pair(&costs.save, &plan.learner.save_s), std::pair(&costs.score, &plan.reward.score_s),
        std::pair(&costs.turnaround, &plan.learner.turnaround_s),
        std::pair(&costs.mtbf, &plan.failures.rollout_mtbf_s),
        std::pair(&costs.restart, &plan.failures.restart_s)}) {
    const auto seconds = seconds_of(*text, *to);
    if (!seconds) return seconds.error();
    *to = *seconds;
  }
  if (costs.step) plan.learner.token_s = 0;
  if (costs.train_tokens_per_s) plan.learner.token_s = 1 / *costs.train_tokens_per_s;
  plan.reward.zero_variance = costs.zero_variance.value_or(0);
  plan.prompt_tokens = static_cast<std::int32_t>(command_.prompt_tokens.value_or(0));
  plan.host_cores = costs.cores.value_or(0);
  if (plan.learner.step_s + plan.learner.token_s <= 0)
    return Error{ErrorCode::kInvalid, "how long does the learner take for a step?", "",
                 "`--step-seconds 20`, `--train-tokens-per-s 40000`, or `--from RUN`"};
  std::vector<forecast::EngineCosts> engines;
  if (run_ && costs.engines.empty() && !costs.rollout_tokens_per_s) engines.push_back(common);
  if (costs.rollout_tokens_per_s) {
    engines.push_back(common);
    engines.back() = {.name = {},
                      .sequence_s = 1 / *costs.rollout_tokens_per_s,
                      .install_s = common.install_s,
                      .fetch_s = common.fetch_s};
  }
  for (const std::string& text : costs.engines) {
    auto engine = forecast::parse_engine(text, common);
    if (!engine) return engine.error();
    engines.push_back(*std::move(engine));
  }
  if (engines.empty())
    return Error{ErrorCode::kInvalid, "how fast are the rollouts?", "",
                 "`--engine step=6.2ms,seq=0.15ms` (a decode step, and what each running sequence "
                 "adds), `--rollout-tokens-per-s 4000`, or `--from RUN`"};
  if (!costs.fleet) {
    plan.rollouts.assign(static_cast<std::size_t>(job.rollout.replicas), engines.front());
    return plan;
  }
  auto fleet = forecast::parse_fleet(*costs.fleet, engines);
  if (!fleet) return fleet.error();
  plan.rollouts = *std::move(fleet);
  return plan;
}

Result<forecast::Lengths> Simulation::lengths(const job::JobSpec& job) const {
  if (command_.lengths) return forecast::Lengths::parse(*command_.lengths);
  if (const auto& run = command_.lengths_from ? command_.lengths_from : command_.from_run) {
    const auto run_dir = job::find_run(*run, cli::tandem_home() / "runs");
    if (!run_dir) return run_dir.error();
    return recorded_lengths(*run_dir);
  }
  return Error{ErrorCode::kInvalid, "how long are the completions?", "",
               "`--lengths-from RUN` takes those of a run, `--lengths lognormal(MEAN,SIGMA," +
                   std::to_string(job.data.max_response_length) + ")` a distribution"};
}

Result<int> Simulation::simulate(SimulatedVariant& variant) {
  std::vector<std::string> sets = command_.sets;
  sets.insert(sets.end(), variant.sets.begin(), variant.sets.end());
  const auto loaded = job::load_job(command_.job, sets, job::Files::kUnchecked);
  if (!loaded) return loaded.error();
  const job::JobSpec& spec = loaded->spec;
  if (!job::trains(spec))
    return Error{ErrorCode::kInvalid, "a job of actors alone trains nothing", command_.job.string(),
                 "name a job with data, rollouts and a learner"};
  const auto fleet = plan(spec);
  if (!fleet) return fleet.error();

  const auto seed = static_cast<std::uint64_t>(command_.seed);
  const auto config = forecast_config(spec, *fleet, *lengths_, seed);
  const Time begun = steady_now();
  StepNotice notice(console_, variant.name);
  int ended_by = 0;
  auto made = forecast::forecast(config, [&](std::int64_t step) {
    ended_by = signals_.wait_for(Duration::zero());
    notice.show(step, config.exchange.budget.steps_total);
    return ended_by == 0;
  });
  notice.erase();
  if (ended_by != 0) return 128 + ended_by;
  if (!made) return made.error();
  variant.forecast = *std::move(made);
  variant.computed_s = seconds(steady_now() - begun);
  if (const auto prices = command_.prices ? command_.prices : spec.pricing;
      prices && !variant.forecast.steps.empty()) {
    const scheduler::FleetDevices& devices = config.exchange.devices;
    const double s = variant.forecast.seconds;
    const scheduler::DeviceSeconds used{
        .rollout = s * devices.per_rollout * static_cast<double>(config.rollouts.size()),
        .learner = s * devices.learner};
    variant.cost_per_step =
        cost_of(used, *prices) / static_cast<double>(variant.forecast.steps.size());
    variant.currency = prices->currency;
  }
  return 0;
}

Result<int> Simulation::run() {
  init_logging("tandem", LogLevel::kWarnings);
  if (command_.svg)
    if (const auto there = refuse_missing_directory(*command_.svg); !there) return there.error();
  const auto loaded = job::load_job(command_.job, command_.sets, job::Files::kUnchecked);
  if (!loaded) return loaded.error();
  if (command_.from_run) {
    auto run = read_run_rates(context_, *command_.from_run);
    if (!run) return run.error();
    if (const auto good = check_rates(run->rates); !good) return good.error();
    run_ = *std::move(run);
  }
  auto drawn = lengths(loaded->spec);
  if (!drawn) return drawn.error();
  lengths_ = *std::move(drawn);
  auto all = variants(loaded->spec);
  if (!all) return all.error();
  for (SimulatedVariant& variant : *all) {
    const auto done = simulate(variant);
    if (!done) return done.error();
    if (*done != 0) return *done;
  }
  if (command_.svg)
    if (const auto written =
            write_file_atomic(*command_.svg, simulate_plot(loaded->spec.name, *all));
        !written)
      return written.error();
  if (command_.output == cli::OutputForm::kJson) {
    nlohmann::json list = nlohmann::json::array();
    for (const SimulatedVariant& variant : *all) list.push_back(simulate_json(variant));
    console_.out << cli::shown_json(list, 2) << "\n" << std::flush;
  } else {
    console_.out << simulate_tables(*all, console_.columns()) << std::flush;
  }
  return 0;
}

}  // namespace

cli::VerbHelp SimulateCommand::help() {
  return {.name = "simulate",
          .group = cli::VerbGroup::kRun,
          .description = "What a job would do on a fleet: the real exchange in virtual time",
          .examples = {
              "tandem simulate JOB.yaml --from arithmetic-grpo-1 --compare",
              "tandem simulate JOB.yaml --from arithmetic-grpo-1 --sweep rollout.replicas=1,2,4",
              "tandem simulate JOB.yaml --from arithmetic-grpo-1 --fleet 64 --mtbf 6h --svg a.svg",
              "tandem simulate JOB.yaml --engine step=6ms,seq=0.1ms --step-seconds 20 --lengths "
              "'uniform(1,99)'"}};
}

// What rollouts and the learner take.
void add_pool_costs(cli::Options& options, SimulateCommand::Costs& costs) {
  options
      .add("--engine", costs.engines,
           "What a rollout's decode step takes: [NAME:]step=TIME,seq=TIME with "
           "prompt=, context=, install= and fetch=; repeatable")
      .value("COSTS")
      .one_each()
      .as_written();
  options
      .add("--rollout-tokens-per-s", costs.rollout_tokens_per_s,
           "In place of --engine: a rollout's tokens a second, whatever its batch")
      .value("N")
      .between(1e-6, 1e12);
  options.add("--fleet", costs.fleet, "Rollouts by kind: 24xA+40xB; rollout.replicas otherwise")
      .value("FLEET");
  options.add("--step-seconds", costs.step, "The learner's time for a step").value("TIME");
  options
      .add("--train-tokens-per-s", costs.train_tokens_per_s,
           "Completion tokens that the learner trains a second, beside --step-seconds")
      .value("N")
      .between(1e-6, 1e12);
}

void SimulateCommand::options(cli::Options& options) {
  options.add("JOB.yaml", job, "The job; its data and model are not needed").required();
  add_sets(options, sets);
  options.add("--sweep", sweeps, "A variant for each value of a key, or for each combination")
      .value("KEY=V1,V2,…")
      .one_each()
      .as_written();
  options.flag("--compare", compare, "Schedules side by side: K = 0, 1, 2, 4, 8, fixed_lag, …");
  options
      .add("--from", from_run,
           "Take costs and lengths of a run, a job or a run directory; options below replace them")
      .value("RUN")
      .offers("runs");
  add_pool_costs(options, costs);
  options
      .add("--lengths", lengths,
           "constant(N), uniform(A,B) or lognormal(MEAN,SIGMA,MOST), in tokens")
      .value("DISTRIBUTION");
  options.add("--lengths-from", lengths_from, "The completions of a run, a job or a run directory")
      .value("RUN")
      .offers("runs");
  options.add("--prompt-tokens", prompt_tokens, "Tokens of a prompt")
      .value("N")
      .between(std::int64_t{0}, std::int64_t{1} << 24);
  options.add("--install", costs.install, "Pause of a rollout for each version").value("TIME");
  options.add("--save", costs.save, "A checkpoint's time").value("TIME");
  options.add("--turnaround", costs.turnaround, "From a step's commit to the next batch")
      .value("TIME");
  options
      .add("--score", costs.score,
           "From a group to its scores, which use --cores; those of --from do not")
      .value("TIME");
  options.add("--zero-variance", costs.zero_variance, "Share of groups that score all the same")
      .value("SHARE")
      .between(0.0, 1.0);
  options.add("--mtbf", costs.mtbf, "Mean time between a rollout's failures").value("TIME");
  options.add("--restart", costs.restart, "Until a rollout that failed is up again; 10s")
      .value("TIME");
  options
      .add("--cores", costs.cores,
           "Cores that all actors share, here and in the run of --from; by default none do")
      .value("N")
      .between(0.01, 1e6);
  add_price(options, prices);
  options.add("--svg", svg, "Write a picture of steps, idle time, queue and ages over time")
      .value("FILE");
  options.add("--steps", steps, "In place of learner.total_training_steps")
      .value("N")
      .between(std::int64_t{1}, std::int64_t{1'000'000});
  options.add("--seed", seed, "Of lengths and failures").value("N");
  using enum cli::OutputForm;
  add_output(options, output, {kTable, kJson});
  options.check([this]() -> Result<void> {
    if (compare && !sweeps.empty())
      return cli::usage_error("--compare and --sweep together", "one of them");
    return {};
  });
}

Result<int> SimulateCommand::run(const cli::VerbContext& context) {
  return Simulation(*this, context).run();
}

}  // namespace tandem::app
