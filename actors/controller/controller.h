// The controller actor: carries out the decisions of ControllerCore, and answers questions of
// users.
//
// It is one actor of the controller's process. Agents, rank processes, exchanges and the HTTP API
// reach it by messages. It reaches them through ControllerActions, a table of functions that the
// wiring of the process fills with links and files, and a simulation with simulated ones.
//
// Events for users have numbers that never repeat within one TANDEM_HOME; the newest kEventsKept
// are in memory, all are in the controller's journal.
//
//   CC-6  A wish of a user (Submit, Scale, Cancel, Forget, Cordon) is answered as done only once
//         the journal has what it changed: the next controller knows it.
//
// While the journal cannot be written, a new job is refused before anything of it is made
// (kFailed), since none of its processes could start. Other wishes are carried out, and so is the
// submission that finds that the journal fails: the answer waits for the journal, and is kTimedOut
// where it waits in vain. The wish then stands, and is journalled once the journal can be written.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/controller_actions.h"
#include "actors/controller/controller_core.h"
#include "actors/controller/views.h"
#include "actors/runs/cluster_event.h"
#include "actors/runs/lost_events.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/recent_max.h"
#include "runtime/link/outbox.h"

namespace tandem::controller {

// Answered with the job's id. Refused with kInfeasible where no node could ever hold the job.
struct Submit {
  using Reply = std::string;
  JobShape shape;
};
struct Nothing {};
// Refused for a job that is not there or not running any more, and for the learner.
struct Scale {
  using Reply = Nothing;
  ScaleRole scale;
};
// Refused likewise, and where nothing was scaled since the job's start or the rollback before.
struct RollBackScale {
  using Reply = Nothing;
  RollBack back;
};
// The answer comes when the job begins to end, not when it has ended. Cancelling an ended job does
// nothing.
struct Cancel {
  using Reply = Nothing;
  std::string job;
};

// Takes up what the controller before this one remembered (TakeUpJobs): for each of its jobs the
// shape that its files have now, or why it has none.
struct TakeUp {
  using Reply = Nothing;
  struct Job {
    JobTaken remembered;
    Result<JobShape> shape;  // resume_dir is set where there is a run to go on with
    bool follows = false;    // as TakeUpJobs::Job's
  };
  std::vector<Job> jobs;
};

struct Forget {  // the record of a job whose run was deleted; kInvalid before the job has ended
  using Reply = Nothing;
  std::string job;
};

// The answer to a drain comes when it begins. kNotFound: there is no such node.
struct Cordon {
  using Reply = Nothing;
  std::variant<CordonNode, UncordonNode> request;
};

// A question of a user to a user's program, sent at most once; both texts are JSON. kNotFound,
// kInvalid and kUnreachable as ControllerCore::program_to_ask() says; kUnreachable also where the
// actor ends before it answers; kTimedOut; or the Error with which the program answers.
struct AskProgram {
  using Reply = messages::AskedJson;
  std::string actor, body;
  Duration timeout;
};
// Questions that wait for an answer at the same time; one more is refused with kFailed.
inline constexpr std::size_t kProgramAsksMax = 1024;

enum class ClusterCondition : std::uint8_t { kNodeReady, kNoJobRuns };
struct Await {  // answered once it holds; an asker that no longer waits is answered all the same
  using Reply = Nothing;
  ClusterCondition until;
};
inline constexpr std::size_t kAwaitsMax = 64;  // a further Await is refused with kFailed
struct ProcessNews {  // an event of the controller's own process, for people alone
  std::string message = {}, kind = "controller", subject = "controller";
  messages::EventLevel level = messages::EventLevel::kWarning;
};
struct GetEvents {  // those with seq > after, at most kEventsKept of them
  using Reply = std::vector<runs::ClusterEvent>;
  std::int64_t after = 0;
};
inline constexpr std::size_t kEventsKept = 10'000;

// Handlers of messages hand an event to the core; handlers of asks reply once, at once, but for
// Await, AskProgram and wishes (CC-6). An Error is the answer to the asker and changes nothing, but
// for the kTimedOut of a wish.
class Controller {
 public:
  using Inbox =
      std::variant<node::NodeUp, NodeDown, NodeSilent, RankSilent, node::RankSpawned,
                   node::RankSpawnFailed, node::RankExited, node::UsageReport, RankConnected,
                   messages::RankListening, messages::RankReady, messages::RankFailed,
                   messages::RankPreempted, RankHung, messages::JobProgress, messages::ActorDrained,
                   messages::ExchangeEvent, messages::FleetMeasured, messages::JobEnded,
                   ProcessNews, actor::Ask<Submit>, actor::Ask<TakeUp>, actor::Ask<Scale>,
                   actor::Ask<RollBackScale>, actor::Ask<Cancel>, actor::Ask<Forget>,
                   actor::Ask<Cordon>, actor::Ask<AskProgram>, actor::Ask<GetCluster>,
                   actor::Ask<GetCounts>, actor::Ask<GetEvents>, actor::Ask<Await>>;

  // `seed`: for the core's random numbers. `restored`: what the controller before this one
  // remembered.
  Controller(std::uint64_t seed, ControllerActions actions, const DurableState& restored = {});

  void handle(actor::Context& cx, node::NodeUp up);
  void handle(actor::Context& cx, NodeDown down);
  void handle(actor::Context& cx, NodeSilent silent);
  void handle(actor::Context& cx, RankSilent silent);
  void handle(actor::Context& cx, node::RankSpawned spawned);
  void handle(actor::Context& cx, node::RankSpawnFailed failed);
  void handle(actor::Context& cx, node::RankExited exited);
  void handle(actor::Context& cx, node::UsageReport report);
  void handle(actor::Context& cx, RankConnected connected);
  void handle(actor::Context& cx, messages::RankListening listening);
  void handle(actor::Context& cx, messages::RankReady ready);
  void handle(actor::Context& cx, messages::RankFailed failed);
  void handle(actor::Context& cx, messages::RankPreempted preempted);
  void handle(actor::Context& cx, RankHung hung);
  void handle(actor::Context& cx, messages::JobProgress progress);
  void handle(actor::Context& cx, messages::ActorDrained drained);
  void handle(actor::Context& cx, messages::ExchangeEvent event);
  void handle(actor::Context& cx, messages::FleetMeasured measured);
  void handle(actor::Context& cx, messages::JobEnded ended);
  void handle(actor::Context& cx, ProcessNews news);
  void handle(actor::Context& cx, actor::Ask<Submit> ask);
  void handle(actor::Context& cx, actor::Ask<TakeUp> ask);
  void handle(actor::Context& cx, actor::Ask<Scale> ask);
  void handle(actor::Context& cx, actor::Ask<RollBackScale> ask);
  void handle(actor::Context& cx, actor::Ask<Cancel> ask);
  void handle(actor::Context& cx, actor::Ask<Forget> ask);
  void handle(actor::Context& cx, actor::Ask<Cordon> ask);
  void handle(actor::Context& cx, actor::Ask<AskProgram> ask);
  void handle(actor::Context& cx, actor::Ask<GetCluster> ask);
  void handle(actor::Context& cx, actor::Ask<GetCounts> ask);
  void handle(actor::Context& cx, actor::Ask<GetEvents> ask);
  void handle(actor::Context& cx, actor::Ask<Await> ask);

  const ControllerCore& core() const { return core_; }  // for checks

 private:
  // Gives the core an event and carries out the effects. An effect that fails at once becomes an
  // event of its own, which is taken after all effects of this one.
  Result<void> take(actor::Context& cx, const ControllerEvent& event);
  void carry_out_all(actor::Context& cx, std::vector<ControllerEffect> effects);
  void carry_out(actor::Context& cx, SpawnRankOn spawn);
  void carry_out(actor::Context& cx, const ExpectRank& expect);
  void carry_out(actor::Context& cx, KillRankOn kill);
  void carry_out(actor::Context& cx, const CutLink& cut);
  void carry_out(actor::Context& cx, const AskNode& ask);
  void carry_out(actor::Context& cx, RefuseNode refuse);
  void carry_out(actor::Context& cx, SendStart start);
  void carry_out(actor::Context& cx, SendProgramStart start);
  void carry_out(actor::Context& cx, DrainRank drain);
  // Tells a process what it is; one that does not take the message has failed.
  template <class Peer, class Start>
  void tell_start(const node::RankId& id, const actor::Ref<Peer>& rank, const Start& start);
  void carry_out(actor::Context& cx, FailAsks fail);
  void carry_out(actor::Context& cx, WriteResult write);
  void carry_out(actor::Context& cx, OpenExchange open);
  void carry_out(actor::Context& cx, TakeUpRun take);
  void carry_out(actor::Context& cx, TellExchange tell);
  void carry_out(actor::Context& cx, CloseExchange close);
  void carry_out(actor::Context& cx, WakeAt wake);
  void carry_out(actor::Context& cx, Announce announce);
  // Journals what waits for it, and tries again later where that fails.
  void journal_changes(actor::Context& cx);
  // Replies to a wish: at once with an Error, else when the journal has all changes so far. `name`:
  // as a message calls the wish.
  template <class Reply>
  void answer_wish(actor::Context& cx, std::string name, const actor::ReplyTo<Reply>& reply,
                   const Result<Reply>& done);
  // Replies to the wishes whose changes are journalled, and to those that have waited too long.
  void answer_wishes(Time now);
  // Starts the processes that have waited for the journal, but for those that are over.
  void start_held(actor::Context& cx);
  actor::Ref<node::AgentInbox> agent_of(const std::string& node) const;
  // Answers a question to a program, unless it has been answered.
  void answer_ask(actor::Context& cx, std::uint64_t number, Result<messages::AskedJson> answer);
  // Sends the messages that wait for exchanges, and sets a timer while a mailbox is full.
  void tell_exchanges(actor::Context& cx);
  bool holds(ClusterCondition condition) const;
  // Replies to each Await whose condition holds.
  void answer_awaits();

  const ControllerActions actions_;
  ControllerCore core_;
  std::map<std::string, actor::Ref<ExchangeControl>> exchanges_;  // by job, while they are open
  link::Outbox to_exchanges_;               // messages that exchanges have not taken yet
  bool retry_due_ = false;                  // a timer is set: an exchange's mailbox was full
  std::vector<DurableEvent> unremembered_;  // in order; empty unless the journal cannot be written
  std::optional<Error> journal_fails_;      // why it could not; then a timer is set
  RecentMax write_seconds_;                 // of the journal
  struct Unanswered {
    std::string name;
    Time until;
    std::function<void(const Result<void>& journalled)> reply;
  };
  // Wishes whose changes the journal lacks, for kJournalWait (controller.cc) and a second at most.
  std::vector<Unanswered> unanswered_;
  // Starts of processes that wait for the journal: those of the step whose changes it did not take.
  std::vector<SpawnRankOn> held_;
  // Events caused by effects, taken in order after the effects of the current event.
  std::deque<ControllerEvent> brought_about_;
  struct ProgramAsk {
    node::RankId to;
    actor::ReplyTo<messages::AskedJson> reply;
    actor::TimerId timeout;
  };
  std::map<std::uint64_t, ProgramAsk> program_asks_;  // by number, at most kProgramAsksMax
  std::uint64_t program_ask_last_ = 0;
  // At most kAwaitsMax questions whose condition does not hold yet.
  std::vector<actor::Ask<Await>> awaits_;
  // The newest events, at most kEventsKept, ascending by number.
  std::deque<runs::ClusterEvent> events_;
  std::int64_t event_last_ = 0;  // the newest event's number, from events_before on
  runs::LostEvents lost_events_;
};

static_assert(actor::Actor<Controller>);

}  // namespace tandem::controller
