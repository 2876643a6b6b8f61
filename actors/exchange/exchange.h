// The exchange of one job: its groups, from the next prompt to the committed step.
//
// It decides by scheduler/fleet (ledger, staleness budget, fixed lag) and acts by messages: leases
// groups to rollouts, has them scored, forms batches, drives the learner through publish, warm
// start, steps and checkpoints, runs evaluations, and writes what happened. It sees headers, never
// tokens. Not responsible for processes: the controller starts and ends actors, and says so here.
//
// Every handler changes state, notes journal events and queues messages; flush() then journals and
// sends, in that order, once for all messages that were waiting.
//
//   EX-J  No message leaves before the journal holds what it follows from.
//   EX-E  An evaluation is pinned to one version, which stays published until every prompt is
//         generated: training waits for it only where the publisher's K + 2 places are taken.
//   EX-L  A life that ended is never given work again, however late its messages are.
//   EX-C  A requested checkpoint is asked for again until it is saved, whoever dies meanwhile.
//   EX-P  Each rollout that a broadcast of a version reaches is told its place there, once.
//   EX-I  A rollout that installed other weights than were published gets no more work, and no more
//         of its tokens are taken: its incarnation ends.
//   EX-S  A cancelled job ends once what it has trained is saved, or at that save's deadline.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/exchange/broadcasts.h"
#include "actors/exchange/evaluation.h"
#include "actors/exchange/exchange_config.h"
#include "actors/exchange/exchange_state.h"
#include "actors/exchange/group_history.h"
#include "actors/exchange/held_payloads.h"
#include "actors/exchange/outgoing.h"
#include "actors/exchange/reward_troubles.h"
#include "actors/exchange/run_record.h"
#include "actors/exchange/run_statistics.h"
#include "actors/messages/exchange.h"
#include "actors/messages/learner.h"
#include "actors/messages/payload.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::actors {

class Exchange {
 public:
  using Inbox =
      std::variant<RolloutUp, Installed, Generated, Unservable, Evaluated, RolloutStats, RewardUp,
                   GroupsScored, TextsScored, RewardTrouble, LearnerUp, Published,
                   WarmStartProgress, WarmStarted, StepCommitted, CheckpointSaved, LearnerFailed,
                   BroadcastUp, EpochOpened, EpochJoined, EpochInUse, EpochFailed, EpochLeft,
                   EpochProgress, ActorDown, DrainActor, EndJob, runtime::Ask<GetExchangeReport>,
                   runtime::Ask<GetGroups>>;

  // `record` and `shelf` outlive the exchange.
  Exchange(ExchangeConfig config, ExchangeLinks links, RunRecord& record, PayloadShelf& shelf);

  void handle(runtime::Context& cx, RolloutUp up);
  void handle(runtime::Context& cx, Installed installed);
  void handle(runtime::Context& cx, Generated generated);
  void handle(runtime::Context& cx, Unservable unservable);
  void handle(runtime::Context& cx, Evaluated evaluated);
  void handle(runtime::Context& cx, RolloutStats stats);
  void handle(runtime::Context& cx, RewardUp up);
  void handle(runtime::Context& cx, GroupsScored scored);
  void handle(runtime::Context& cx, TextsScored scored);
  void handle(runtime::Context& cx, RewardTrouble trouble);
  void handle(runtime::Context& cx, LearnerUp up);
  void handle(runtime::Context& cx, Published published);
  void handle(runtime::Context& cx, WarmStartProgress progress);
  void handle(runtime::Context& cx, WarmStarted started);
  void handle(runtime::Context& cx, StepCommitted committed);
  void handle(runtime::Context& cx, CheckpointSaved saved);
  void handle(runtime::Context& cx, LearnerFailed failed);
  template <std::convertible_to<BroadcastEvents> Event>
  void handle(runtime::Context& cx, Event event) {
    take_broadcast(cx, BroadcastEvents(std::move(event)));
  }
  void handle(runtime::Context& cx, ActorDown down);
  void handle(runtime::Context& cx, DrainActor drain);
  void handle(runtime::Context& cx, EndJob end);
  void handle(runtime::Context& cx, runtime::Ask<GetExchangeReport> ask);
  void handle(runtime::Context& cx, runtime::Ask<GetGroups> ask);

  const scheduler::Ledger& ledger() const { return ledger_; }

 private:
  enum class Stage { kStarting, kWarmStart, kRunning, kFinishing, kEnded };

  using Worker = ExchangeWorker;
  using Entry = ExchangeEntry;

  // exchange.cc: lives of rollouts and rewards, their answers.
  Worker* sender(std::map<std::string, Worker>& role, const Sender& from);
  bool buried(const Sender& from) const;
  void bury(const std::string& actor, Incarnation incarnation);
  void forget_worker(Worker& worker, Time now);
  double lifetime(const Worker& worker, Time now) const;
  void extend_leases(const Worker& worker, Time deadline);
  void discard(GroupId group, scheduler::DiscardReason reason);
  void take_scores(runtime::Context& cx, Worker& from, const GroupScore& group);
  bool may_filter(const Entry& entry) const;
  // exchange_checks.cc: whether a message fits what the exchange knows; why not.
  using Misfit = std::optional<std::string>;
  void refuse(runtime::Context& cx, const Sender& from, const std::string& why);
  void refuse(runtime::Context& cx, const Generated& generated, const std::string& why);
  bool wrote(const Sender& from, const runtime::PayloadRef& payload);
  Misfit misfit(const Worker& from, GroupId group, std::uint32_t attempt) const;
  Misfit misfit(const Worker& from, const GroupHeader& header) const;
  Misfit misfit(const Installed& installed) const;
  Misfit misfit(const Publication& publication) const;
  Misfit misfit(const Published& published) const;
  Misfit misfit(const WarmStarted& started) const;
  Misfit misfit(const StepCommitted& committed) const;
  Misfit misfit(const CheckpointSaved& saved) const;
  // exchange_learner.cc: the learner's lives and steps, resuming.
  void meet_before_training(runtime::Context& cx, const LearnerUp& up);
  void meet_again(runtime::Context& cx, const LearnerUp& up);
  void after_commit(runtime::Context& cx, const StepCommitted& committed);
  void ask_checkpoint();
  void finish_training();
  void restore(runtime::Context& cx, StepId checkpoint);
  Misfit misfit(const std::vector<RestoredGroup>& groups, StepId at) const;
  // exchange_broadcast.cc: versions that are published, and their broadcasts.
  void take_broadcast(runtime::Context& cx, BroadcastEvents event);
  void order_broadcasts(Time now);
  void take_publication(const Publication& publication);
  void end_broadcasts_of_learner();
  void announce(Worker& rollout, PolicyVersion version);
  void condemn(runtime::Context& cx, const Sender& rollout, const std::string& why);
  // exchange_pump.cc: decisions.
  void wake(runtime::Context& cx);  // a flush is due once the waiting messages are handled
  void flush(runtime::Context& cx);
  void retry(runtime::Context& cx);
  void tell_controller(runtime::Context& cx);
  void admit(runtime::Context& cx);
  void open_entry(GroupId group, Entry entry);
  void lease_rollouts(runtime::Context& cx);
  void lease_rewards(runtime::Context& cx);
  void form(runtime::Context& cx);
  void send_step(StepId step, const std::vector<GroupId>& batch);
  void finish_drains(runtime::Context& cx);
  void journal(runtime::Context& cx);
  void expire_leases(runtime::Context& cx);
  void wake_at_next_deadline(runtime::Context& cx);
  void enter(Stage stage, std::string message);
  void fail(runtime::Context& cx, std::string reason);
  void end(runtime::Context& cx, JobOutcome outcome, std::string reason);
  bool publishes(StepId step) const;
  bool evaluation_in_the_way(StepId step) const;
  bool saves_first(runtime::Context& cx);
  PolicyVersion oldest_needed() const;
  // exchange_evaluation.cc: evaluations.
  void start_evaluation(EvaluationKind kind, PolicyVersion version);
  void run_evaluations();
  void evaluate_on(Evaluation& evaluation, Worker& rollout, std::size_t prompts);
  void score_texts(Evaluation& evaluation);
  void evaluation_done(const Evaluation& evaluation);
  Result<void> write_evaluation_sample(const Evaluation& of, const Evaluation::Judged& judged);
  // exchange_report.cc: what people see.
  JobStatus status(Time now) const;
  WorkTotals work(Time now) const;
  double rollout_idle_fraction(Time now) const;
  std::vector<Wait> waits(Time now) const;
  void note(JournalEvent event);
  void note_totals(Time now, const std::optional<Publication>& publication);
  Result<void> write_metrics(Time now, const StepCommitted& committed);
  Result<void> write_samples(const StepCommitted& committed);
  void write_failure_sample(const Entry& entry, std::size_t trajectory, const ScoreFailed& failure);
  std::optional<GroupPayload> read(const runtime::PayloadRef& payload);
  std::string result_json(Time now, JobOutcome outcome) const;

  template <class Inbox, class... What>
  void send(const std::function<runtime::Ref<Inbox>(const runtime::Address&)>& dial,
            const runtime::Address& to, What... what) {
    outgoing_.add(to, dial(to), std::move(what)...);
  }

  const ExchangeConfig config_;
  const ExchangeLinks links_;
  RunRecord& record_;
  HeldPayloads shelf_;

  Stage stage_ = Stage::kStarting;
  scheduler::Ledger ledger_;
  std::optional<scheduler::FixedLag> fixed_;  // set under fixed_lag
  std::map<GroupId, Entry> entries_;          // live, or trained and not yet durable
  std::int64_t position_next_ = 0;
  std::int64_t generated_for_step_ = 0;  // groups since the last batch was formed (filter_groups)
  std::int64_t reward_failures_ = 0;     // in a row
  RewardTroubles troubles_;
  std::map<std::string, Worker> rollouts_, rewards_;
  std::map<std::string, Incarnation> buried_;  // EX-L: the newest life of each that is over
  std::optional<Worker> learner_;
  bool learner_busy_ = false, flush_due_ = false;
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
  bool restored_ = false;       // from the journal of an earlier life
  std::list<Evaluation> evaluations_;
  std::uint64_t evaluation_last_ = 0;
  std::set<EvaluationKind> evaluated_once_;  // those of which a run has one
  std::optional<std::int64_t> checkpoint_awaited_;
  Durability durability_ = Durability::kKill;  // of the next batch of events
  std::optional<EndJob> ending_;
  std::optional<Time> save_deadline_;  // EX-S: of the checkpoint of last_save_
  std::map<std::string, Time> drain_deadlines_;
  std::vector<JournalEvent> events_;
  OutgoingMessages outgoing_, to_controller_;
  std::vector<ExchangeNotices> notices_;  // of the messages in hand, see EX-J
  bool retry_due_ = false;           // a timer is set: a link or the controller's mailbox was full
  std::optional<Time> expiry_wake_;  // a timer is set for then
  WarmStartProgress warm_start_;
  RunStatistics statistics_;
};

static_assert(runtime::Actor<Exchange>);

}  // namespace tandem::actors
