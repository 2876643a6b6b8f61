// The format demands that all samples of a family follow its header, so each family goes through
// the jobs and actors again. The families are grouped by where their values come from: engines,
// progress, evaluations, the newest step, the cluster. Each group has a small function that writes
// one family from a pointer to a member, so that a family is one line of code.
#include "actors/api/prometheus.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/json.h"

namespace tandem::actors {
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

class PrometheusText {
 public:
  void family(const Family& which) {
    name_ = which.name;
    text_ += "# HELP " + name_ + " " + which.help + "\n# TYPE " + name_ + " " + which.type + "\n";
  }
  // Nothing where there is no value.
  template <class Value>
  void sample(const std::string& labels, const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>)
      line("", labels, static_cast<double>(value));
    else if (value)
      line("", labels, *value);
  }
  // The histogram's counts are per bucket; the format wants cumulative ones and a last bucket +Inf.
  void histogram(const std::string& labels, std::span<const double> bounds, const Histogram& of) {
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

 private:
  void line(const char* suffix, const std::string& labels, double value) {
    text_ += name_ + suffix + "{" + labels + "} " + number(value) + "\n";
  }
  std::string text_, name_;
};

// The engines' families have vLLM's names, so that its dashboards show Tandem's rollouts.
void add_engines(PrometheusText& text, const ExchangeReports& reports) {
  // Only rollouts have statistics of an engine, and only after their first report.
  const auto each = [&](const Family& family, const auto& add) {
    text.family(family);
    for (const auto& [job, report] : reports)
      for (const ActorLoad& load : report.loads)
        if (load.engine)
          add(label_list({{"tandem_job", job}, {"actor", load.actor}}), *load.engine);
  };
  const auto figures = [&](const Family& family, auto value) {
    each(family, [&](const std::string& labels, const RolloutStats& stats) {
      text.sample(labels, std::invoke(value, stats));
    });
  };
  figures({"vllm:generation_tokens_total", "counter", "Generated tokens."},
          &RolloutStats::generation_tokens);
  figures({"vllm:prompt_tokens_total", "counter", "Prefilled tokens."},
          &RolloutStats::prompt_tokens);
  figures({"vllm:num_requests_running", "gauge", "Sequences in the running batch."},
          &RolloutStats::requests_running);
  figures({"vllm:num_requests_waiting", "gauge", "Sequences that wait."},
          &RolloutStats::requests_waiting);
  figures({"vllm:num_preemptions_total", "counter", "Preemptions of sequences."},
          &RolloutStats::preemptions);
  figures({"vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up."},
          &RolloutStats::prefix_cache_queries);
  figures({"vllm:prefix_cache_hits_total", "counter", "Prompt tokens found."},
          &RolloutStats::prefix_cache_hits);
  figures({"vllm:kv_cache_usage_perc", "gauge", "Share of KV pages in use, 0 to 1."},
          &RolloutStats::kv_cache_usage);
  for (const LatencyFamily& latency : kLatencyFamilies)
    each({latency.name, "histogram", latency.help},
         [&](const std::string& labels, const RolloutStats& stats) {
           text.histogram(labels, latency.bounds, stats.latencies.*latency.histogram);
         });
}

void add_progress(PrometheusText& text, const ExchangeReports& reports) {
  const auto figures = [&](const Family& family, auto part, auto value) {
    text.family(family);
    for (const auto& [job, report] : reports)
      text.sample(label_list({{"tandem_job", job}}), std::invoke(value, std::invoke(part, report)));
  };
  constexpr auto kStatus = &ExchangeReport::status;
  constexpr auto kLedger = &ExchangeReport::ledger;
  figures({"tandem_step", "gauge", "Committed training steps."}, kStatus, &JobStatus::step);
  figures({"tandem_policy_version", "gauge", "Newest published policy version."}, kStatus,
          &JobStatus::policy_version);
  figures({"tandem_staleness_max", "gauge", "Highest staleness of a trained trajectory."}, kStatus,
          &JobStatus::staleness_max);
  figures({"tandem_queue_depth", "gauge", "Groups generated and not yet in training."}, kStatus,
          &JobStatus::queue_depth);
  figures({"tandem_trainer_idle_fraction", "gauge", "Share of time the learner waited."}, kStatus,
          &JobStatus::trainer_idle_fraction);
  figures({"tandem_tokens_generated_per_second", "gauge", "Over the last seconds."}, kStatus,
          &JobStatus::tokens_generated_per_s);
  figures({"tandem_tokens_trained_per_second", "gauge", "Over the last seconds."}, kStatus,
          &JobStatus::tokens_trained_per_s);
  figures({"tandem_groups_issued_total", "counter", "Groups admitted to the ledger."}, kLedger,
          &LedgerView::issued);
  figures({"tandem_groups_trained_total", "counter", "Groups trained."}, kLedger,
          &LedgerView::trained);
  figures({"tandem_groups_live", "gauge", "Groups admitted, neither trained nor discarded."},
          kLedger, &LedgerView::live);
  figures({"tandem_steps_skipped_total", "counter", "Steps without a finite gradient."}, kStatus,
          &JobStatus::steps_skipped);
  figures({"tandem_steps_without_gradient_total", "counter", "Steps whose gradient was 0."},
          kStatus, &JobStatus::steps_without_gradient);
  figures({"tandem_rewards_failed_total", "counter",
           "Trained completions with the reward of reward.on_failure."},
          kStatus, &JobStatus::rewards_failed);
  figures({"tandem_broadcasts_total", "counter", "Versions that the learner broadcast."}, kStatus,
          &JobStatus::broadcasts);
  figures({"tandem_broadcast_failures_total", "counter", "Epochs of broadcasts that failed."},
          kStatus, &JobStatus::broadcast_failures);
  text.family({"tandem_groups_discarded_total", "counter", "Groups discarded, by reason."});
  for (const auto& [job, report] : reports)
    for (const auto& [reason, count] : report.ledger.discarded)
      text.sample(label_list({{"tandem_job", job}, {"reason", reason}}), count);
}

// The newest evaluation: over all prompts, and under the label `source` over those of each data
// set.
void add_evaluations(PrometheusText& text, const ExchangeReports& reports) {
  enum class Of { kAll, kSources };
  using Labels = std::vector<Label>;
  using Add = std::function<void(const RewardFigures&, const Labels&)>;
  const auto each = [&](const Family& family, const Add& add, Of of) {
    text.family(family);
    for (const auto& [job, report] : reports) {
      if (!report.status.eval) continue;
      const EvaluationFigures& eval = *report.status.eval;
      if (of == Of::kAll) add(eval.all, {{"tandem_job", job}});
      for (const auto& [source, figures] : eval.sources)
        if (of == Of::kSources) add(figures, {{"tandem_job", job}, {"source", source}});
    }
  };
  const auto plain = [&](auto value) -> Add {
    return [&text, value](const RewardFigures& figures, const Labels& labels) {
      text.sample(label_list(labels), std::invoke(value, figures));
    };
  };
  // One sample per k, with the label `k`.
  const Add pass = [&text](const RewardFigures& figures, const Labels& labels) {
    for (const FigureAt& at : figures.pass) {
      const std::string k = std::to_string(at.k);
      Labels with_k = labels;
      with_k.push_back({"k", k});
      text.sample(label_list(with_k), at.value);
    }
  };
  const Add mean = plain(&RewardFigures::mean), greedy = plain(&RewardFigures::greedy);
  const Add scored = plain(&RewardFigures::scored), failed = plain(&RewardFigures::failed);
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
          &StepFigures::reward_mean);
  figures({"tandem_loss", "gauge", "Loss of the newest step."}, &StepFigures::loss);
  figures({"tandem_kl", "gauge", "actor/ppo_kl of the newest step, nats."}, &StepFigures::ppo_kl);
  figures({"tandem_entropy", "gauge", "Mean entropy of the policy, nats."}, &StepFigures::entropy);
  figures({"tandem_grad_norm", "gauge", "Norm of the gradients before clipping."},
          &StepFigures::grad_norm);
  figures({"tandem_learning_rate", "gauge", "Learning rate of the newest step."}, &StepFigures::lr);
  figures({"tandem_rollout_idle_fraction", "gauge", "Share of time the rollout engines waited."},
          &StepFigures::rollout_idle_fraction);
  figures({"tandem_oldest_sample_age_steps", "gauge", "Age of the oldest sample that waits."},
          &StepFigures::oldest_sample_age_steps);
  figures({"tandem_logprob_diff_max", "gauge",
           "Largest log-probability difference of engine and learner at staleness 0, nats."},
          &StepFigures::logprob_diff_max_at_staleness_0);
}

void add_cluster(PrometheusText& text, const ClusterView& cluster) {
  text.family({"tandem_job_state", "gauge", "1 for the state that the job is in."});
  for (const JobRecord& job : cluster.jobs)
    text.sample(label_list({{"tandem_job", job.id}, {"state", scheduler::name(job.status.state)}}),
                1);
  text.family({"tandem_actors", "gauge", "Actors by job, role and state."});
  // Counted by the text of their labels, which are the same for the same job, role and state.
  std::map<std::string, int> counts;
  for (const JobRecord& job : cluster.jobs)
    for (const auto& [id, actor] : job.actors)
      ++counts[label_list({{"tandem_job", job.id},
                           {"role", name(actor.role)},
                           {"state", scheduler::name(actor.status.state)}})];
  for (const auto& [labels, count] : counts) text.sample(labels, count);

  const auto actors = [&](const Family& family, const auto& value) {
    text.family(family);
    for (const JobRecord& job : cluster.jobs) {
      // Series of actors end with their job: their number would grow for ever otherwise.
      if (scheduler::is_final(job.status.state)) continue;
      for (const auto& [id, actor] : job.actors)
        text.sample(
            label_list({{"tandem_job", job.id}, {"actor", actor.name}, {"role", name(actor.role)}}),
            value(job, actor));
    }
  };
  actors({"tandem_actor_restarts_total", "counter", "Restarts of the actor."},
         [](const JobRecord& job, const ActorRecord& actor) {
           return job.ladder.restarts_of(actor.name);
         });
  // The use of an actor, by one member of RankUsage; no value until it was reported.
  const auto use = [](auto part) {
    return [part](const JobRecord&, const ActorRecord& actor) -> std::optional<double> {
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

}  // namespace

std::string prometheus_text(const ClusterView& cluster, const ExchangeReports& reports) {
  PrometheusText text;
  add_engines(text, reports);
  add_progress(text, reports);
  add_evaluations(text, reports);
  add_last_steps(text, reports);
  add_cluster(text, cluster);
  return text.take();
}

}  // namespace tandem::actors
