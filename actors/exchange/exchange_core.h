// Decides for one job's groups, from the next prompt to the committed step: which prompt gets a
// group, which rollout generates it, which reward actor scores it, which groups form the next
// batch, what the learner does next, which version an evaluation has. Pure: messages, times and the
// answers to its effects go in, effects come out (effects.h); the same inputs give the same
// effects. It asks scheduler/fleet (ledger, staleness budget, fixed lag, broadcast group). It sees
// headers, never tokens. Not responsible for processes: the controller starts and ends actors, and
// says so.
//
// Messages change state; step(Decide) then decides on all of them together, so their order within
// one decision does not matter, and journals what was decided.
//
//   EX-J  No message leaves before the journal holds what it follows from.
//   EX-E  An evaluation is pinned to one version, which stays published until every prompt is
//         generated: training waits for it only where the publisher's K + 2 places are taken.
//   EX-L  An incarnation that ended is never given work again, however late its messages are.
//   EX-C  A requested checkpoint is asked for again until it is saved, whoever dies meanwhile.
//   EX-P  A version's place in a broadcast is told once to each rollout that the broadcast reaches.
//   EX-I  No work goes to a rollout that installed other weights than were published, and none of
//         its tokens is taken after that: its incarnation ends.
//   EX-S  A cancelled job ends once what it has trained is saved, or at that save's deadline.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/effects.h"
#include "actors/exchange/evaluation.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/exchange_state.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/run_statistics.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::actors {

class ExchangeCore {
 public:
  explicit ExchangeCore(ExchangeConfig config);

  // `now` never goes back.
  std::vector<ExchangeEffect> step(ExchangeInput input, Time now);

  bool ended() const { return stage_ == Stage::kEnded; }
  const scheduler::Ledger& ledger() const { return flow_.ledger; }
  const std::string& job() const { return config_.job; }
  ExchangeReport report(Time now) const;
  std::vector<GroupView> groups(Time now) const;

 private:
  enum class Stage { kStarting, kWarmStart, kRunning, kFinishing, kEnded };

  using Worker = ExchangeWorker;
  using Entry = ExchangeEntry;

  void take(RolloutUp up);
  void take(Installed installed);
  void take(GroupsGenerated stored);
  void take(Unservable unservable);
  void take(Evaluated evaluated);
  void take(RolloutStats stats);
  void take(RewardUp up);
  void take(GroupsScored scored);
  void take(TextsScored scored);
  void take(RewardTrouble trouble);
  void take(LearnerUp up);
  void take(Published published);
  void take(WarmStartProgress progress);
  void take(WarmStarted started);
  void take(StepCommitted committed);
  void take(CheckpointSaved saved);
  void take(LearnerFailed failed);
  void take(BroadcastEvents event);
  void take(ActorDown down);
  void take(DrainActor drain);
  void take(EndJob end);
  void take(Decide);
  void take(DeadlineCame);
  void take(MessagesSent);
  void take(JournalFailed failed);
  void take(RecordFailed failed);
  void take(SendFailed failed);
  void take(HistoryRead read);
  void take(RunTakenUp);

  void tell_rollout(const runtime::Address& to, RolloutInbox message);
  void tell_reward(const runtime::Address& to, RewardInbox message);
  void tell_learner(LearnerInbox message);
  void notify(ExchangeNotices notice);
  void release(const runtime::PayloadRef& payload);
  // core_workers.cc: rollouts and rewards come up, answer and end.
  Worker* sender(std::map<std::string, Worker>& role, const Sender& from);
  bool has_ended(const Sender& from) const;
  void end_incarnation(const std::string& actor, Incarnation incarnation);
  void forget_worker(Worker& worker, Time now);
  double lifetime(const Worker& worker, Time now) const;
  void extend_leases(const Worker& worker, Time deadline);
  void discard(GroupId group, scheduler::DiscardReason reason);
  void take_scores(Worker& from, const GroupScore& group);
  bool may_filter(const Entry& entry) const;
  // core_checks.cc: whether a message fits what the exchange knows; why not.
  using Misfit = std::optional<std::string>;
  void refuse(const Sender& from, const std::string& why);
  void refuse(const Generated& generated, const std::string& why);
  Misfit misfit(const Worker& from, GroupId group, std::uint32_t attempt) const;
  Misfit misfit(const Worker& from, const GroupHeader& header) const;
  Misfit misfit(const Installed& installed) const;
  Misfit misfit(const Publication& publication) const;
  Misfit misfit(const Published& published) const;
  Misfit misfit(const WarmStarted& started) const;
  Misfit misfit(const StepCommitted& committed) const;
  Misfit misfit(const CheckpointSaved& saved) const;
  // core_learner.cc: the learner's incarnations and steps, resuming.
  void meet_before_training(const LearnerUp& up);
  void meet_again(const LearnerUp& up);
  void after_commit(const StepCommitted& committed);
  void ask_checkpoint();
  void finish_training();
  void ask_to_publish(StepId checkpoint);
  void restore(const GroupHistory& history, const std::vector<RestoredGroup>& groups,
               StepId checkpoint);
  Misfit misfit(const std::vector<RestoredGroup>& groups, StepId at) const;
  // core_broadcast.cc: versions that are published, and their broadcasts.
  void order_broadcasts(Time now);
  void take_publication(const Publication& publication);
  void end_broadcasts_of_learner();
  void announce(Worker& rollout, PolicyVersion version);
  void condemn(const Sender& rollout, const std::string& why);
  // core_decisions.cc: decisions.
  void wake();  // decide, once the waiting messages are handled
  void admit();
  void open_entry(GroupId group, Entry entry);
  void lease_rollouts();
  void lease_rewards();
  void form();
  void send_step(StepId step, const std::vector<GroupId>& batch);
  void finish_drains();
  void expire_leases();
  void enter(Stage stage, std::string message);
  void fail(std::string reason);
  void end(JobOutcome outcome, std::string reason);
  bool publishes(StepId step) const;
  bool evaluation_in_the_way(StepId step) const;
  bool saves_first();
  PolicyVersion oldest_needed() const;
  // core_evaluation.cc: evaluations.
  void start_evaluation(EvaluationKind kind, PolicyVersion version);
  void run_evaluations();
  void evaluate_on(Evaluation& evaluation, Worker& rollout, std::size_t prompts);
  void score_texts(Evaluation& evaluation);
  void evaluation_done(const Evaluation& evaluation);
  void write_evaluation_sample(const Evaluation& of, const Evaluation::Judged& judged);
  // core_report.cc: what people see.
  JobStatus status(Time now) const;
  WorkTotals work(Time now) const;
  double rollout_idle_fraction(Time now) const;
  std::vector<Wait> waits(Time now) const;
  void note(JournalEvent event);
  void note_totals(Time now, const std::optional<Publication>& publication);
  void write_metrics(Time now, const StepCommitted& committed);
  void write_samples(const StepCommitted& committed);
  void write_failure_sample(const Entry& entry, std::size_t trajectory, const ScoreFailed& failure);
  std::string result_json(Time now, JobOutcome outcome) const;

  const ExchangeConfig config_;

  Stage stage_ = Stage::kStarting;
  GroupFlow flow_;
  ExchangeWorkers workers_;
  LearnerTalk training_;
  PublishedVersions versions_;
  EvaluationsUnderWay evaluations_;
  ExchangeEnding ending_;
  RunStatistics statistics_;

  std::vector<JournalEvent> events_;           // since the last Decide
  Durability durability_ = Durability::kKill;  // of the next Journal
  std::optional<Time> deadline_wake_;          // WakeAtDeadline was asked for

  Time now_;                             // of the step under way
  std::vector<ExchangeEffect> effects_;  // of the step under way
};

}  // namespace tandem::actors
