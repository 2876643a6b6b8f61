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
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/exchange/broadcasts.h"
#include "actors/exchange/effects.h"
#include "actors/exchange/evaluation.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/exchange_state.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/held_payloads.h"
#include "actors/exchange/reward_troubles.h"
#include "actors/exchange/run_statistics.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::actors {

class ExchangeCore {
 public:
  explicit ExchangeCore(ExchangeConfig config);

  // `now` never goes back.
  std::vector<ExchangeEffect> step(ExchangeInput input, Time now);

  bool ended() const { return stage_ == Stage::kEnded; }
  const scheduler::Ledger& ledger() const { return ledger_; }
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
  bool buried(const Sender& from) const;
  void bury(const std::string& actor, Incarnation incarnation);
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
  HeldPayloads held_;

  Stage stage_ = Stage::kStarting;
  scheduler::Ledger ledger_;
  std::optional<scheduler::FixedLag> fixed_;  // set under fixed_lag
  std::map<GroupId, Entry> entries_;          // live, or trained and not yet durable
  std::int64_t position_next_ = 0;
  std::int64_t generated_for_step_ = 0;  // groups since the last batch was formed (filter_groups)
  std::int64_t reward_failures_ = 0;     // in a row
  RewardTroubles troubles_;
  std::map<std::string, Worker> rollouts_, rewards_;
  std::map<std::string, Incarnation> buried_;  // EX-L: the newest of each actor that has ended
  std::optional<Worker> learner_;
  bool learner_busy_ = false;
  std::optional<StepId> step_in_flight_;
  std::vector<GroupId> batch_in_flight_;
  std::deque<scheduler::Ledger::Resend> replay_;  // batches to send again after a restart
  std::map<StepId, std::uint64_t> checksums_;     // of versions committed since the last checkpoint
  PolicyVersion published_{-2}, oldest_retained_{-2};  // newest and oldest that the publisher has
  std::map<PolicyVersion, Publication> publications_;  // those retained, and some before them
  std::optional<runtime::WeightSource> source_;        // of the learner's publisher
  std::optional<Broadcasts> broadcasts_;               // of a job whose weights are broadcast
  std::int64_t broadcasts_started_ = 0;
  StepId durable_, last_save_;  // a checkpoint covers the steps below; the last one is to cover
  struct Restoring {
    StepId checkpoint;
    GroupHistory history;
    std::vector<RestoredGroup> groups;  // as of the checkpoint
  };
  std::optional<Restoring> restoring_;  // the run's history was asked for
  bool restored_ = false;               // from the journal of an earlier incarnation
  std::list<Evaluation> evaluations_;
  std::uint64_t evaluation_last_ = 0;
  std::set<EvaluationKind> evaluated_once_;  // those of which a run has one
  std::optional<std::int64_t> checkpoint_awaited_;
  bool save_due_ = false;  // the next Decide asks the learner for checkpoint_awaited_
  Durability durability_ = Durability::kKill;  // of the next batch of events
  std::optional<EndJob> ending_;
  std::optional<Time> save_deadline_;  // EX-S: of the checkpoint of last_save_
  std::map<std::string, Time> drain_deadlines_;
  std::vector<JournalEvent> events_;
  std::optional<Time> deadline_wake_;  // WakeAtDeadline was asked for
  WarmStartProgress warm_start_;
  RunStatistics statistics_;

  Time now_;                             // of the step under way
  std::vector<ExchangeEffect> effects_;  // of the step under way
};

}  // namespace tandem::actors
