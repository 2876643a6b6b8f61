// One function per event gives its row; the order is that of a group's trip, then the run's events.
// Columns and words are those that users' queries rely on, so they change only by addition.
#include "actors/exchange/journal_rows.h"

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "actors/exchange/evaluation_json.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

std::int64_t number(GroupId group) { return static_cast<std::int64_t>(group.value); }
std::int64_t number(scheduler::LeaseId lease) { return static_cast<std::int64_t>(lease.value); }

JournalRow of_group(const char* kind, GroupId group) {
  return {.kind = kind, .group = number(group)};
}

JournalRow admitted(GroupId group, std::int64_t position,
                    const std::optional<scheduler::Slot>& slot) {
  JournalRow row{.kind = "admitted", .group = number(group), .position = position};
  if (slot) {
    row.step = slot->step.value;
    row.detail = std::to_string(slot->index) + "/" + std::to_string(slot->attempt);
  }
  return row;
}

JournalRows rows(const GroupAdmitted& event) {
  return {admitted(event.group, event.position, event.slot), {}};
}

JournalRows rows(const RolloutLeased& event) {
  return {{.kind = "rolling",
           .group = number(event.group),
           .lease = number(event.lease),
           .holder = to_string(event.holder),
           .version = event.version.value},
          {}};
}

JournalRows rows(const GroupGenerated& event) {
  JournalRow row{.kind = "generated",
                 .group = number(event.header.group),
                 .lease = event.header.attempt,
                 .holder = event.holder.name,
                 .version = 0};
  if (!event.header.trajectories.empty())
    row.version =
        std::ranges::min(event.header.trajectories, {}, &messages::TrajectoryHeader::oldest)
            .oldest.value;
  return {std::move(row), {}};
}

JournalRows rows(const RewardLeased& event) {
  return {{.kind = "scoring",
           .group = number(event.group),
           .lease = number(event.lease),
           .holder = to_string(event.holder)},
          {}};
}

JournalRows rows(const GroupScored& event) {
  JournalRow row = of_group("scored", event.group);
  if (event.kept) row.detail = "kept by filter_groups: max_num_gen_batches is reached";
  if (event.failed > 0)
    row.detail += (row.detail.empty() ? "" : "; ") + std::to_string(event.failed) +
                  " failed, with the reward of reward.on_failure";
  return {std::move(row), {}};
}

JournalRows rows(const BatchFormed& event) {
  JournalRows rows;
  for (const GroupId group : event.groups) {
    rows.of_groups.push_back(of_group("training", group));
    rows.of_groups.back().step = event.step.value;
  }
  return rows;
}

JournalRows rows(const StepTrained& event) {
  const std::int64_t version = event.step.value + 1;
  JournalRows rows{{.kind = event.groups.empty() ? "retrained" : "committed",
                    .step = event.step.value,
                    .version = version,
                    .detail = std::to_string(event.checksum)},
                   {}};
  for (const GroupId group : event.groups) {
    rows.of_groups.push_back(of_group("trained", group));
    rows.of_groups.back().step = event.step.value;
    rows.of_groups.back().version = version;
  }
  return rows;
}

JournalRows rows(const LeaseReleased& event) {
  JournalRow row = of_group("released", event.group);
  row.holder = event.holder.name;
  return {std::move(row), {}};
}

JournalRows rows(const LeaseAdopted& event) {
  return {{.kind = "lease_adopted",
           .group = number(event.group),
           .lease = number(event.lease),
           .holder = to_string(event.holder)},
          {}};
}

JournalRows rows(const EngineCrashed& event) {
  JournalRows rows{{.kind = "engine_crashed",
                    .holder = to_string(event.who),
                    .detail = event.cause + (event.alone ? "; it held one group alone" : "")},
                   {}};
  for (const GroupId group : event.groups) {
    rows.of_groups.push_back(of_group("suspected", group));
    rows.of_groups.back().holder = event.who.name;
  }
  return rows;
}

JournalRows rows(const LeaseExpired& event) { return {of_group("expired", event.group), {}}; }

JournalRows rows(const GroupHandedBack& event) {
  return {{.kind = "handed_back",
           .group = number(event.group),
           .lease = number(event.lease),
           .holder = event.holder.name,
           .detail = event.message},
          {}};
}

JournalRows rows(const GroupDiscarded& event) {
  JournalRow row = of_group("discarded", event.group);
  row.detail = scheduler::name(event.reason);
  return {std::move(row), {}};
}

JournalRows rows(const LiveDiscarded& event) {
  JournalRows rows;
  for (const GroupId group : event.groups) {
    rows.of_groups.push_back(of_group("discarded", group));
    rows.of_groups.back().detail = scheduler::name(event.reason);
  }
  return rows;
}

JournalRows rows(const AnswerRefused& event) {
  JournalRow row{.kind = "refused",
                 .group = number(event.group),
                 .lease = number(event.lease),
                 .holder = event.holder.name,
                 .detail = scheduler::name(event.refusal)};
  if (event.oldest) row.version = event.oldest->value;
  return {std::move(row), {}};
}

JournalRows rows(const CommitRefused& event) {
  return {{.kind = "refused", .step = event.step.value, .detail = scheduler::name(event.refusal)},
          {}};
}

JournalRows rows(const RunBegan& event) {
  return {{.kind = "began", .detail = "epoch " + std::to_string(event.epoch.value)}, {}};
}

JournalRows rows(const ExchangeFollowed& event) {
  return {{.kind = "followed", .detail = "epoch " + std::to_string(event.epoch.value)}, {}};
}

JournalRows rows(const RunResumed& event) {
  JournalRows rows{{.kind = "resumed",
                    .step = event.checkpoint.value,
                    .detail = std::to_string(event.issued) + " groups"},
                   {}};
  for (const ResumedGroup& group : event.groups)
    if (!group.discarded)
      rows.of_groups.push_back(admitted(group.group, group.position, group.slot));
  return rows;
}

JournalRows rows(const StageEntered& event) {
  return {{.kind = "phase", .detail = event.message}, {}};
}

JournalRows rows(const EndAsked& event) {
  return {{.kind = "end_asked", .detail = event.reason}, {}};
}

JournalRows rows(const LastSaveAsked& event) {
  return {{.kind = "phase", .detail = saving_text(event.step)}, {}};
}

JournalRows rows(const RunEnded& event) { return {{.kind = "ended", .detail = event.reason}, {}}; }

JournalRows rows(const StateHashed& event) {
  return {{.kind = "state_hash", .detail = std::to_string(event.hash)}, {}};
}

nlohmann::json json_of(const TrainedTotals& totals) {
  nlohmann::json staleness = nlohmann::json::array();
  for (const StalenessBin& bin : totals.staleness.bins)
    staleness.push_back({bin.staleness, bin.trajectories});
  return {{"staleness", {{"trajectories", staleness}}},
          {"tokens", totals.tokens},
          {"logprob_diff_max_at_staleness_0", totals.logprob_diff_max_at_staleness_0},
          {"tokens_at_staleness_0", totals.tokens_at_staleness_0},
          {"steps_skipped", totals.steps_skipped},
          {"steps_without_gradient", totals.steps_without_gradient}};
}

nlohmann::json json_of(const WorkTotals& totals) {
  return {{"tokens_generated", totals.tokens_generated},
          {"publish_count", totals.publish_count},
          {"publish_bytes", totals.publish_bytes},
          {"wall_seconds", totals.wall_seconds},
          {"running_seconds", totals.running_seconds},
          {"learner_busy_seconds", totals.learner_busy_seconds},
          {"rollout_busy_seconds", totals.rollout_busy_seconds},
          {"rollout_actor_seconds", totals.rollout_actor_seconds}};
}

JournalRows rows(const TotalsNoted& event) {
  nlohmann::json totals{{"trained", json_of(event.totals.trained)},
                        {"work", json_of(event.totals.work)}};
  if (event.totals.publish_seconds) totals["publish_seconds"] = *event.totals.publish_seconds;
  return {{.kind = "totals", .step = event.step.value, .detail = dump_json(totals)}, {}};
}

JournalRows rows(const WorkerCameUp& event) {
  return {{.kind = "worker_up",
           .holder = to_string(event.who),
           .detail = "capacity " + std::to_string(event.capacity)},
          {}};
}

JournalRows rows(const WorkerDrains& event) {
  return {{.kind = "draining", .holder = to_string(event.who)}, {}};
}

JournalRows rows(const VersionInstalled& event) {
  return {{.kind = "installed", .holder = to_string(event.who), .version = event.version.value},
          {}};
}

JournalRows rows(const IncarnationEnded& event) {
  return {{.kind = "incarnation_ended", .holder = to_string(event.who)}, {}};
}

JournalRows rows(const LearnerCameUp& event) {
  JournalRow row{.kind = "learner_up", .holder = to_string(event.who)};
  if (event.checkpoint) row.step = event.checkpoint->value;
  return {std::move(row), {}};
}

JournalRows rows(const LearnerRestarted& event) {
  return {{.kind = "learner_restarted",
           .holder = to_string(event.who),
           .step = event.checkpoint.value,
           .detail = std::to_string(event.batches) + " batches to train again"},
          {}};
}

JournalRows rows(const LineageBegan& event) {
  return {{.kind = "lineage_began",
           .holder = to_string(event.who),
           .step = event.step.value,
           .detail = "checksum " + std::to_string(event.now) + ", before " +
                     std::to_string(event.before)},
          {}};
}

JournalRows rows(const LearnerAsked& event) {
  JournalRow row{.kind = "learner_asked"};
  if (event.step) row.step = event.step->value;
  switch (event.task) {
    case LearnerTask::kPublish:
      row.detail = "publish";
      break;
    case LearnerTask::kWarmStart:
      row.detail = "warm_start";
      break;
    case LearnerTask::kTrain:
      row.detail = "train";
      break;
  }
  return {std::move(row), {}};
}

JournalRows rows(const VersionPublished& event) {
  JournalRow row{.kind = "published_again", .version = event.publication.version.value};
  if (event.warm_start_steps) {
    row.kind = "published";
    row.detail = "warm start of " + std::to_string(*event.warm_start_steps) + " steps";
  }
  return {std::move(row), {}};
}

JournalRows rows(const VersionsRestored& event) {
  return {{.kind = "published_again", .version = event.publication.version.value}, {}};
}

JournalRows rows(const VersionWithdrawn& event) {
  return {
      {.kind = "version_damaged", .holder = to_string(event.by), .version = event.version.value},
      {}};
}

JournalRows rows(const CheckpointAsked& event) {
  return {{.kind = "checkpoint_asked", .step = event.step.value}, {}};
}

JournalRows rows(const BatchesKept& event) {
  return {{.kind = "batches_kept", .step = event.from.value}, {}};
}

JournalRows rows(const BroadcastEpochOpened& event) {
  return {{.kind = "broadcast_epoch", .detail = std::to_string(event.epoch)}, {}};
}

JournalRows rows(const CheckpointKept& event) {
  return {{.kind = "checkpoint", .step = event.step.value, .detail = event.directory}, {}};
}

std::string exact_text(double value) {  // a text that strtod reads back bit for bit
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return {text, end};
}

JournalRows rows(const EvaluationBegan& event) {
  return {{.kind = "evaluation_began", .version = event.version.value, .detail = name(event.kind)},
          {}};
}

JournalRows rows(const InstallPaused& event) {
  return {{.kind = "install_paused",
           .holder = to_string(event.who),
           .version = event.version.value,
           .detail = exact_text(event.seconds) + " s"},
          {}};
}

JournalRows rows(const EvaluationEnded& event) {
  const messages::EvaluationFigures figures = figures_of(event);
  std::string detail = std::string(name(event.kind)) + "=" +
                       (event.all.mean ? exact_text(*event.all.mean) : "none") +
                       " scored=" + std::to_string(event.all.scored) +
                       " failed=" + std::to_string(event.all.failed);
  if (has_more_than_mean(figures)) detail += " figures=" + dump_json(figures_json(figures));
  return {{.kind = "evaluated", .version = event.version.value, .detail = std::move(detail)}, {}};
}

JournalRows rows(const EvaluationIncomplete& event) {
  return {{.kind = "evaluation_incomplete",
           .version = event.version.value,
           .detail = std::to_string(event.prompts) +
                     " prompts: no rollout has this version, nor has the publisher"},
          {}};
}

JournalRows rows(const SamplesFull& event) {
  return {{.kind = "samples_full", .detail = text_of(event)}, {}};
}

JournalRows rows(const MetricsThinned& event) {
  return {{.kind = "metrics_thinned", .detail = text_of(event)}, {}};
}

}  // namespace

std::string text_of(const SamplesFull& event) {
  return "samples.jsonl has reached " + std::to_string(event.bytes_max) +
         " bytes, the most that it may have (retention.samples_bytes): the oldest samples go";
}

std::string text_of(const MetricsThinned& event) {
  return "metrics.jsonl has reached " + std::to_string(event.bytes_max) +
         " bytes, the most that it may have (retention.metrics_bytes): every second of its older "
         "lines goes";
}

JournalRows rows_of(const JournalEvent& event) {
  return std::visit([](const auto& what) { return rows(what); }, event);
}

messages::EventLevel level_of(const messages::RewardFigures& evaluation) {
  if (evaluation.failed == 0) return messages::EventLevel::kInfo;
  return evaluation.mean ? messages::EventLevel::kWarning : messages::EventLevel::kError;
}

messages::EventLevel level_of(const JournalEvent& event) {
  if (const auto* ended = std::get_if<RunEnded>(&event))
    return ended->outcome == messages::JobOutcome::kFailed ? messages::EventLevel::kError
                                                           : messages::EventLevel::kInfo;
  if (const auto* evaluated = std::get_if<EvaluationEnded>(&event)) return level_of(evaluated->all);
  const bool trouble =
      std::holds_alternative<EvaluationIncomplete>(event) ||
      std::holds_alternative<SamplesFull>(event) || std::holds_alternative<MetricsThinned>(event) ||
      std::holds_alternative<LearnerRestarted>(event) ||
      std::holds_alternative<EngineCrashed>(event) || std::holds_alternative<LineageBegan>(event);
  return trouble ? messages::EventLevel::kWarning : messages::EventLevel::kInfo;
}

}  // namespace tandem::exchange
