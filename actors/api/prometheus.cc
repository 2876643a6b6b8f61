// The format demands that all samples of a family follow its header, so each family goes through
// the jobs and actors again. The families are grouped by where their values come from: engines,
// progress, rates, evaluations, the newest step, the cluster. Each group has a small function that
// writes one family from a pointer to a member, so that a family is one line of code.
#include "actors/api/prometheus.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/exchange/fleet_json.h"
#include "runtime/base/json.h"

namespace tandem::api {
namespace {

// The format has names for values that JSON cannot write.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return dump_json(value);
}

struct Label {
  const char* name;
  std::string_view value;
};

std::string label_list(const std::vector<Label>& all) {
  std::string text;
  for (const Label& one : all) {
    text += (text.empty() ? "" : ",") + std::string(one.name) + "=\"";
    // A label's value escapes the backslash, the quote and the line feed, and nothing else.
    for (const char c : one.value) {
      if (c == '\\' || c == '"') text += '\\';
      if (c == '\n')
        text += "\\n";
      else
        text += c;
    }
    text += '"';
  }
  return text;
}

struct Family {
  const char* name;
  const char* type;
  const char* help;
};

// The families as text, or the samples of some of them as values.
class PrometheusText {
 public:
  PrometheusText() = default;
  explicit PrometheusText(std::span<const std::string> wanted)
      : wanted_(std::in_place, wanted.begin(), wanted.end()) {}

  void family(const Family& which) {
    name_ = which.name;
    if (wanted_) return;
    text_ += "# HELP " + name_ + " " + which.help + "\n# TYPE " + name_ + " " + which.type + "\n";
  }
  // Writes nothing where there is no value.
  template <class Value>
  void sample(const std::string& labels, const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>)
      line("", labels, static_cast<double>(value));
    else if (value)
      line("", labels, *value);
  }
  // The histogram's counts are per bucket; the format wants cumulative ones and a last bucket +Inf.
  void histogram(const std::string& labels, std::span<const double> bounds,
                 const messages::Histogram& of) {
    std::uint64_t count = 0;  // cumulative: a bucket counts the values of all lower ones too
    for (std::size_t i = 0; i < of.counts.size(); ++i) {
      count += of.counts[i];
      const std::string bound = i < bounds.size() ? number(bounds[i]) : "+Inf";
      line("_bucket", labels + ",le=\"" + bound + "\"", static_cast<double>(count));
    }
    line("_sum", labels, of.sum);
    line("_count", labels, static_cast<double>(count));
  }
  std::string take() { return std::move(text_); }
  std::vector<MetricSample> take_samples() { return std::move(samples_); }

 private:
  void line(const char* suffix, const std::string& labels, double value) {
    if (!wanted_)
      text_ += name_ + suffix + "{" + labels + "} " + number(value) + "\n";
    else if (wanted_->contains(name_))
      samples_.push_back({.family = name_ + suffix, .labels = labels, .value = value});
  }
  std::string text_, name_;
  const std::optional<std::set<std::string>> wanted_;
  std::vector<MetricSample> samples_;
};

// The engines' families have vLLM's names, so that its dashboards show Tandem's rollouts.
void add_engines(PrometheusText& text, const ExchangeReports& reports) {
  // Only rollouts have statistics of an engine, and only after their first report.
  const auto each = [&](const Family& family, const auto& add) {
    text.family(family);
    for (const auto& [job, report] : reports)
      for (const messages::ActorLoad& load : report.loads)
        if (load.engine)
          add(label_list({{"tandem_job", job}, {"actor", load.actor}}), *load.engine);
  };
  const auto figures = [&](const Family& family, auto value) {
    each(family, [&](const std::string& labels, const messages::RolloutStats& stats) {
      text.sample(labels, std::invoke(value, stats));
    });
  };
  figures({"vllm:generation_tokens_total", "counter", "Generated tokens."},
          &messages::RolloutStats::generation_tokens);
  figures({"vllm:prompt_tokens_total", "counter", "Prefilled tokens."},
          &messages::RolloutStats::prompt_tokens);
  figures({"vllm:num_requests_running", "gauge", "Sequences in the running batch."},
          &messages::RolloutStats::requests_running);
  figures({"vllm:num_requests_waiting", "gauge", "Sequences that wait."},
          &messages::RolloutStats::requests_waiting);
  figures({"vllm:num_preemptions_total", "counter", "Preemptions of sequences."},
          &messages::RolloutStats::preemptions);
  figures({"vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up."},
          &messages::RolloutStats::prefix_cache_queries);
  figures({"vllm:prefix_cache_hits_total", "counter", "Prompt tokens found."},
          &messages::RolloutStats::prefix_cache_hits);
  figures({"vllm:kv_cache_usage_perc", "gauge", "Share of KV pages in use, 0 to 1."},
          &messages::RolloutStats::kv_cache_usage);
  for (const messages::LatencyFamily& latency : messages::kLatencyFamilies)
    each({latency.name, "histogram", latency.help},
         [&](const std::string& labels, const messages::RolloutStats& stats) {
           text.histogram(labels, latency.bounds, stats.latencies.*latency.histogram);
         });
}

void add_progress(PrometheusText& text, const ExchangeReports& reports) {
  const auto figures = [&](const Family& family, auto part, auto value) {
    text.family(family);
    for (const auto& [job, report] : reports)
      text.sample(label_list({{"tandem_job", job}}), std::invoke(value, std::invoke(part, report)));
  };
  constexpr auto kStatus = &messages::ExchangeReport::status;
  constexpr auto kLedger = &messages::ExchangeReport::ledger;
  figures({"tandem_step", "gauge", "Committed training steps."}, kStatus,
          &messages::JobStatus::step);
  figures({"tandem_steps_left", "gauge", "Steps that the run has yet to commit."}, kStatus,
          [](const messages::JobStatus& status) { return status.total_steps - status.step; });
  figures({"tandem_policy_version", "gauge", "Newest published policy version."}, kStatus,
          &messages::JobStatus::policy_version);
  figures({"tandem_staleness_max", "gauge", "Highest staleness of a trained trajectory."}, kStatus,
          &messages::JobStatus::staleness_max);
  figures({"tandem_staleness_bound", "gauge", "async.max_staleness."}, kStatus,
          &messages::JobStatus::staleness_bound);
  figures({"tandem_queue_limit", "gauge", "Groups that may wait while the learner trains a step."},
          kStatus, &messages::JobStatus::queue_limit);
  figures({"tandem_disk_waits", "gauge", "1 while the run stands still until its disk has room."},
          kStatus, [](const messages::JobStatus& status) { return status.disk_full ? 1 : 0; });
  figures({"tandem_seconds_per_step", "gauge", "Mean time from one commit to the next."}, kStatus,
          &messages::JobStatus::step_s);
  figures({"tandem_seconds_since_progress", "gauge",
           "Since the newest commit, or answer of an evaluation."},
          kStatus, &messages::JobStatus::since_progress_s);
  figures({"tandem_queue_depth", "gauge", "Groups generated and not yet in training."}, kStatus,
          &messages::JobStatus::queue_depth);
  figures({"tandem_trainer_idle_fraction", "gauge", "Share of time the learner waited."}, kStatus,
          &messages::JobStatus::trainer_idle_fraction);
  figures({"tandem_tokens_generated_per_second", "gauge", "Over the last seconds."}, kStatus,
          &messages::JobStatus::tokens_generated_per_s);
  figures({"tandem_tokens_trained_per_second", "gauge", "Over the last seconds."}, kStatus,
          &messages::JobStatus::tokens_trained_per_s);
  figures({"tandem_groups_issued_total", "counter", "Groups admitted to the ledger."}, kLedger,
          &messages::LedgerView::issued);
  figures({"tandem_groups_trained_total", "counter", "Groups trained."}, kLedger,
          &messages::LedgerView::trained);
  figures({"tandem_groups_live", "gauge", "Groups admitted, neither trained nor discarded."},
          kLedger, &messages::LedgerView::live);
  figures({"tandem_steps_skipped_total", "counter", "Steps without a finite gradient."}, kStatus,
          &messages::JobStatus::steps_skipped);
  figures({"tandem_steps_without_gradient_total", "counter", "Steps whose gradient was 0."},
          kStatus, &messages::JobStatus::steps_without_gradient);
  figures({"tandem_rewards_failed_total", "counter",
           "Trained completions with the reward of reward.on_failure."},
          kStatus, &messages::JobStatus::rewards_failed);
  figures({"tandem_broadcasts_total", "counter", "Versions that the learner broadcast."}, kStatus,
          &messages::JobStatus::broadcasts);
  figures({"tandem_broadcast_failures_total", "counter", "Epochs of broadcasts that failed."},
          kStatus, &messages::JobStatus::broadcast_failures);
  text.family({"tandem_groups_discarded_total", "counter", "Groups discarded, by reason."});
  for (const auto& [job, report] : reports)
    for (const auto& [reason, count] : report.ledger.discarded)
      text.sample(label_list({{"tandem_job", job}, {"reason", reason}}), count);
}

// The rates of the fleet over the newest steps, and what they predict; no series before they are
// measured.
void add_rates(PrometheusText& text, const ExchangeReports& reports) {
  const auto figures = [&](const Family& family, auto part, auto value) {
    text.family(family);
    for (const auto& [job, report] : reports)
      if (const auto& of = std::invoke(part, report.status))
        text.sample(label_list({{"tandem_job", job}}), std::invoke(value, *of));
  };
  constexpr auto kRates = &messages::JobStatus::rates;
  constexpr auto kGap = &messages::JobStatus::gap;
  figures({"tandem_trainer_idle_fraction_recent", "gauge",
           "Share of time the learner waited, over the newest steps."},
          kRates, &scheduler::FleetRates::trainer_idle_fraction);
  figures({"tandem_trainer_idle_fraction_predicted", "gauge",
           "Share of time the learner would wait in the steady state of these rates."},
          kGap, &scheduler::FleetGap::trainer_idle_fraction);
  figures({"tandem_rollouts_matched", "gauge", "Rollouts with which the learner would not wait."},
          kGap, &scheduler::FleetGap::rollouts_matched);
  figures({"tandem_install_pause_seconds", "gauge", "Mean pause of one install of weights."},
          kRates, &scheduler::FleetRates::install_seconds);
  figures({"tandem_install_bytes", "gauge", "Mean bytes that a rollout fetched for one install."},
          kRates, &scheduler::FleetRates::install_bytes);
  figures({"tandem_install_pause_fraction", "gauge", "Share of the rollouts' time in installs."},
          kRates, &exchange::install_fraction);
  figures({"tandem_prefix_cache_hit_ratio", "gauge", "Share of looked-up prompt tokens found."},
          kRates, &scheduler::FleetRates::prefix_hit_ratio);
  figures({"tandem_tokens_generated_per_trained_recent", "gauge",
           "Tokens generated per token trained."},
          kRates, &scheduler::FleetRates::generated_per_trained);
  text.family({"tandem_rollout_tokens_per_second", "gauge", "While its engine was at work."});
  for (const auto& [job, report] : reports)
    if (report.status.rates)
      for (const scheduler::RolloutRate& rollout : report.status.rates->rollouts)
        text.sample(label_list({{"tandem_job", job}, {"actor", rollout.actor}}),
                    rollout.tokens_per_s);
}

void add_costs(PrometheusText& text, const ExchangeReports& reports) {
  using messages::CostStatus;
  const auto figures = [&](const Family& family, auto value) {
    text.family(family);
    for (const auto& [job, report] : reports)
      text.sample(label_list({{"tandem_job", job}}), std::invoke(value, report.status.cost));
  };
  figures(
      {"tandem_cost_per_step", "gauge", "Mean cost of the newest steps, in the job's currency."},
      &CostStatus::per_step);
  figures({"tandem_cost_total", "counter", "Cost of the run, in the job's currency."},
          &CostStatus::total);
  figures({"tandem_goodput_tokens_per_device_second", "gauge",
           "Trained tokens per device second of both pools."},
          &CostStatus::goodput);
  text.family({"tandem_device_seconds_total", "counter", "Device seconds of the run, by pool."});
  for (const auto& [job, report] : reports)
    for (const auto& [pool, seconds] :
         {std::pair("rollout", report.status.cost.rollout_device_seconds),
          std::pair("learner", report.status.cost.learner_device_seconds)})
      text.sample(label_list({{"tandem_job", job}, {"pool", pool}}), seconds);
}

// The newest evaluation: over all prompts, and under the label `source` over those of each data
// set.
void add_evaluations(PrometheusText& text, const ExchangeReports& reports) {
  enum class Of { kAll, kSources };
  using Labels = std::vector<Label>;
  using Add = std::function<void(const messages::RewardFigures&, const Labels&)>;
  const auto each = [&](const Family& family, const Add& add, Of of) {
    text.family(family);
    for (const auto& [job, report] : reports) {
      if (!report.status.eval) continue;
      const messages::EvaluationFigures& eval = *report.status.eval;
      if (of == Of::kAll) add(eval.all, {{"tandem_job", job}});
      for (const auto& [source, figures] : eval.sources)
        if (of == Of::kSources) add(figures, {{"tandem_job", job}, {"source", source}});
    }
  };
  const auto plain = [&](auto value) -> Add {
    return [&text, value](const messages::RewardFigures& figures, const Labels& labels) {
      text.sample(label_list(labels), std::invoke(value, figures));
    };
  };
  // One sample per k, with the label `k`.
  const Add pass = [&text](const messages::RewardFigures& figures, const Labels& labels) {
    for (const messages::FigureAt& at : figures.pass) {
      const std::string k = std::to_string(at.k);
      Labels with_k = labels;
      with_k.push_back({"k", k});
      text.sample(label_list(with_k), at.value);
    }
  };
  const Add mean = plain(&messages::RewardFigures::mean),
            greedy = plain(&messages::RewardFigures::greedy);
  const Add scored = plain(&messages::RewardFigures::scored),
            failed = plain(&messages::RewardFigures::failed);
  each({"tandem_evaluation_reward_mean", "gauge", "Mean reward of the newest evaluation."}, mean,
       Of::kAll);
  each({"tandem_evaluation_reward_greedy", "gauge", "Mean of its greedy completions."}, greedy,
       Of::kAll);
  each({"tandem_evaluation_pass_at_k", "gauge", "Probability that one of k samples succeeds."},
       pass, Of::kAll);
  each({"tandem_evaluation_scored", "gauge", "Completions that it could score."}, scored, Of::kAll);
  each({"tandem_evaluation_failed", "gauge", "Completions that it leaves out."}, failed, Of::kAll);
  each({"tandem_evaluation_source_reward_mean", "gauge", "Its mean reward by data set."}, mean,
       Of::kSources);
  each({"tandem_evaluation_source_reward_greedy", "gauge", "Its greedy mean by data set."}, greedy,
       Of::kSources);
  each({"tandem_evaluation_source_pass_at_k", "gauge", "Its pass@k by data set."}, pass,
       Of::kSources);
  each({"tandem_evaluation_source_scored", "gauge", "Completions scored, by data set."}, scored,
       Of::kSources);
  each({"tandem_evaluation_source_failed", "gauge", "Completions left out, by data set."}, failed,
       Of::kSources);
}

// The figures of the newest step; no series before the first one.
void add_last_steps(PrometheusText& text, const ExchangeReports& reports) {
  const auto figures = [&](const Family& family, auto value) {
    text.family(family);
    for (const auto& [job, report] : reports)
      if (report.last_step)
        text.sample(label_list({{"tandem_job", job}}), std::invoke(value, *report.last_step));
  };
  figures({"tandem_reward_mean", "gauge", "Mean reward of the newest step."},
          &messages::StepFigures::reward_mean);
  figures({"tandem_loss", "gauge", "Loss of the newest step."}, &messages::StepFigures::loss);
  figures({"tandem_kl", "gauge", "actor/ppo_kl of the newest step, nats."},
          &messages::StepFigures::ppo_kl);
  figures({"tandem_entropy", "gauge", "Mean entropy of the policy, nats."},
          &messages::StepFigures::entropy);
  figures({"tandem_grad_norm", "gauge", "Norm of the gradients before clipping."},
          &messages::StepFigures::grad_norm);
  figures({"tandem_learning_rate", "gauge", "Learning rate of the newest step."},
          &messages::StepFigures::lr);
  figures({"tandem_rollout_idle_fraction", "gauge", "Share of time the rollout engines waited."},
          &messages::StepFigures::rollout_idle_fraction);
  figures({"tandem_oldest_sample_age_steps", "gauge", "Age of the oldest sample that waits."},
          &messages::StepFigures::oldest_sample_age_steps);
  figures({"tandem_steps_skipped_in_row", "gauge", "Newest steps without a finite gradient."},
          &messages::StepFigures::skipped_in_row);
  figures({"tandem_logprob_diff_max", "gauge",
           "Largest log-probability difference of engine and learner at staleness 0, nats."},
          &messages::StepFigures::logprob_diff_max_at_staleness_0);
  figures({"tandem_logprob_diff_mean", "gauge",
           "Mean absolute log-probability difference of engine and learner, nats."},
          &messages::StepFigures::logprob_diff_mean);
}

// Series of the cluster itself are there whatever its state, so that 0 can be told from unknown.
void add_nodes(PrometheusText& text, const controller::ClusterView& cluster,
               const ExchangeReports& reports) {
  const auto up = std::ranges::count_if(cluster.nodes, &controller::NodeRecord::up);
  text.family({"tandem_nodes", "gauge", "Nodes by state."});
  text.sample(label_list({{"state", "Ready"}}), up);
  text.sample(label_list({{"state", "Lost"}}), std::ssize(cluster.nodes) - up);
  text.family({"tandem_journal_fails", "gauge", "1 while the journal cannot be written."});
  text.sample(label_list({{"journal", "controller"}}), cluster.journal_fails ? 1 : 0);
  // Prometheus takes an empty label for one that is not there.
  text.family({"tandem_journal_write_seconds", "gauge",
               "Slowest write of a journal in the newest minute or two."});
  text.sample(label_list({{"tandem_job", ""}, {"journal", "controller"}}), cluster.journal_write_s);
  for (const auto& [job, report] : reports)
    text.sample(label_list({{"tandem_job", job}, {"journal", job}}), report.status.journal_write_s);
}

void add_cluster(PrometheusText& text, const controller::ClusterView& cluster) {
  text.family({"tandem_job_state", "gauge", "1 for the state that the job is in."});
  for (const controller::JobRecord& job : cluster.jobs)
    text.sample(label_list({{"tandem_job", job.id}, {"state", scheduler::name(job.status.state)}}),
                1);
  text.family({"tandem_actors", "gauge", "Actors by job, role and state."});
  // Actors are counted by the text of their labels, which are the same for the same job, role and
  // state.
  std::map<std::string, int> counts;
  for (const controller::JobRecord& job : cluster.jobs)
    for (const auto& [id, actor] : job.actors)
      ++counts[label_list({{"tandem_job", job.id},
                           {"role", name(actor.role)},
                           {"state", scheduler::name(actor.status.state)}})];
  for (const auto& [labels, count] : counts) text.sample(labels, count);

  // Of jobs that choose the number of their rollouts themselves.
  const auto autoscales = [&](const Family& family, const auto& value) {
    text.family(family);
    for (const controller::JobRecord& job : cluster.jobs)
      if (job.autoscaling.on && !scheduler::is_final(job.status.state))
        text.sample(label_list({{"tandem_job", job.id}}), value(job));
  };
  autoscales({"tandem_autoscale_at_limit", "gauge",
              "1: more rollouts would match than max or the room allows."},
             [](const controller::JobRecord& job) {
               return job.autoscaling.newest && job.autoscaling.newest->at_limit ? 1 : 0;
             });
  autoscales(
      {"tandem_autoscale_rollouts", "gauge", "Rollouts that autoscale has chosen."},
      [](const controller::JobRecord& job) { return job.desired.at(messages::Role::kRollout); });

  const auto actors = [&](const Family& family, const auto& value) {
    text.family(family);
    for (const controller::JobRecord& job : cluster.jobs) {
      // Series of actors end with their job: their number would grow for ever otherwise.
      if (scheduler::is_final(job.status.state)) continue;
      for (const auto& [id, actor] : job.actors)
        text.sample(
            label_list({{"tandem_job", job.id}, {"actor", actor.name}, {"role", name(actor.role)}}),
            value(job, actor));
    }
  };
  actors({"tandem_actor_restarts_total", "counter", "Restarts of the actor."},
         [](const controller::JobRecord& job, const controller::ActorRecord& actor) {
           return job.ladder.restarts_of(actor.name);
         });
  actors({"tandem_actor_crash_loop", "gauge", "1 while the actor dies again and again."},
         [&](const controller::JobRecord&, const controller::ActorRecord& actor) {
           return scheduler::loops(actor.crash_loop, actor.status, cluster.now) ? 1 : 0;
         });
  // The use of an actor, by one member of RankUsage; no value until it was reported.
  const auto use = [](auto part) {
    return [part](const controller::JobRecord&,
                  const controller::ActorRecord& actor) -> std::optional<double> {
      const auto usage = usage_of(actor.ranks);
      if (!usage) return std::nullopt;
      return static_cast<double>(std::invoke(part, *usage));
    };
  };
  actors({"tandem_actor_resident_memory_bytes", "gauge", "Resident memory of its processes."},
         use(&node::RankUsage::memory_bytes));
  actors({"tandem_actor_cpu_percent", "gauge", "CPU use of its processes, 100 for a core."},
         use(&node::RankUsage::cpu_percent));
}

void add_disk(PrometheusText& text, const std::optional<HomeDisk>& disk) {
  const auto bytes = [&](const Family& family, std::uint64_t HomeDisk::*value) {
    text.family(family);
    if (disk) text.sample(label_list({{"directory", disk->directory}}), (*disk).*value);
  };
  bytes({"tandem_disk_size_bytes", "gauge", "Size of the disk of the controller's home."},
        &HomeDisk::size_bytes);
  bytes({"tandem_disk_free_bytes", "gauge", "What the controller can still write there."},
        &HomeDisk::free_bytes);
}

void add_all(PrometheusText& text, const controller::ClusterView& cluster,
             const ExchangeReports& reports, const std::optional<HomeDisk>& disk) {
  add_engines(text, reports);
  add_progress(text, reports);
  add_rates(text, reports);
  add_costs(text, reports);
  add_evaluations(text, reports);
  add_last_steps(text, reports);
  add_cluster(text, cluster);
  add_nodes(text, cluster, reports);
  add_disk(text, disk);
}

}  // namespace

std::string prometheus_text(const controller::ClusterView& cluster, const ExchangeReports& reports,
                            const std::optional<HomeDisk>& disk) {
  PrometheusText text;
  add_all(text, cluster, reports, disk);
  return text.take();
}

std::vector<MetricSample> metric_samples(const controller::ClusterView& cluster,
                                         const ExchangeReports& reports,
                                         const std::optional<HomeDisk>& disk,
                                         std::span<const std::string> families) {
  PrometheusText text(families);
  add_all(text, cluster, reports, disk);
  return text.take_samples();
}

}  // namespace tandem::api
