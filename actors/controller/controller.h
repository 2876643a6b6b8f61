// The controller: carries out what ControllerCore decides, and answers what people ask.
//
// One actor of the controller's process. The rest of the world reaches it as messages (agents, rank
// processes, exchanges, the HTTP API); it reaches the world through ControllerHands, which main
// fills with links and files and a simulation with simulated ones.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "actors/controller/controller_core.h"
#include "actors/exchange/outgoing.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"

namespace tandem::actors {

using ExchangeControl = std::variant<ActorDown, DrainActor, EndJob, runtime::Ask<GetExchangeReport>,
                                     runtime::Ask<GetGroups>>;

struct ClusterEvent {  // an Announce with its number and wall time; what `tandem events` lists
  std::int64_t seq = 0;
  std::int64_t time_ms = 0;
  std::string kind, subject, message;
};

struct Submit {  // answered with the job's id
  using Reply = std::string;
  JobShape shape;
};
struct Nothing {};
struct Scale {
  using Reply = Nothing;
  ScaleRole scale;
};
struct Cancel {
  using Reply = Nothing;
  std::string job;
};

struct Forget {  // refused with kInvalid before the job has ended
  using Reply = Nothing;
  std::string job;
};

struct ClusterView {
  std::vector<JobRecord> jobs;  // oldest first
  std::vector<NodeRecord> nodes;
  std::map<std::string, runtime::Ref<ExchangeControl>> exchanges;
  Time now;
};
struct GetCluster {
  using Reply = ClusterView;
};
enum class ClusterCondition : std::uint8_t { kNodeReady, kNoJobRuns };
struct Await {  // answered once it holds; an asker that no longer waits is answered all the same
  using Reply = Nothing;
  ClusterCondition until;
};
inline constexpr std::size_t kAwaitsMax = 64;
struct GetEvents {  // those with seq > after, at most kEventsKept of them
  using Reply = std::vector<ClusterEvent>;
  std::int64_t after = 0;
};
inline constexpr std::size_t kEventsKept = 10'000;

struct RunDirectory {
  std::string id;
  std::string path;
};

struct ControllerHands {
  std::function<runtime::Ref<runtime::AgentInbox>(const std::string& node, Incarnation)> agent;
  std::function<runtime::Ref<RankInbox>(const runtime::RankId&)> rank;
  // Called before the node is told: this rank may dial from now on, others of its name no more.
  std::function<void(const std::string& node, const runtime::RankId&)> expect;
  std::function<std::vector<std::string>(const runtime::RankId&)> rank_arguments;
  std::function<std::vector<std::string>(const std::string& job)> bulk_endpoints;
  // A free id and its directory with job.yaml in it; for shape.resume_dir that run's own.
  std::function<Result<RunDirectory>(const JobShape&)> make_run_directory;
  std::function<Result<runtime::Ref<ExchangeControl>>(const JobRecord&)> open_exchange;
  std::function<void(const std::string& job)> close_exchange;
  std::function<Result<void>(const ClusterEvent&)> journal;
  std::int64_t events_before = 0;  // the highest number that an earlier controller gave an event
};

class Controller {
 public:
  using Inbox =
      std::variant<runtime::NodeUp, NodeDown, runtime::RankSpawned, runtime::RankSpawnFailed,
                   runtime::RankExited, runtime::UsageReport, RankConnected, RankListening,
                   RankReady, RankFailed, RankHung, JobProgress, ActorDrained, ExchangeEvent,
                   JobEnded, runtime::Ask<Submit>, runtime::Ask<Scale>, runtime::Ask<Cancel>,
                   runtime::Ask<Forget>, runtime::Ask<GetCluster>, runtime::Ask<GetEvents>,
                   runtime::Ask<Await>>;

  Controller(std::uint64_t seed, ControllerHands hands);

  void handle(runtime::Context& cx, runtime::NodeUp up);
  void handle(runtime::Context& cx, NodeDown down);
  void handle(runtime::Context& cx, runtime::RankSpawned spawned);
  void handle(runtime::Context& cx, runtime::RankSpawnFailed failed);
  void handle(runtime::Context& cx, runtime::RankExited exited);
  void handle(runtime::Context& cx, runtime::UsageReport report);
  void handle(runtime::Context& cx, RankConnected connected);
  void handle(runtime::Context& cx, RankListening listening);
  void handle(runtime::Context& cx, RankReady ready);
  void handle(runtime::Context& cx, RankFailed failed);
  void handle(runtime::Context& cx, RankHung hung);
  void handle(runtime::Context& cx, JobProgress progress);
  void handle(runtime::Context& cx, ActorDrained drained);
  void handle(runtime::Context& cx, ExchangeEvent event);
  void handle(runtime::Context& cx, JobEnded ended);
  void handle(runtime::Context& cx, runtime::Ask<Submit> ask);
  void handle(runtime::Context& cx, runtime::Ask<Scale> ask);
  void handle(runtime::Context& cx, runtime::Ask<Cancel> ask);
  void handle(runtime::Context& cx, runtime::Ask<Forget> ask);
  void handle(runtime::Context& cx, runtime::Ask<GetCluster> ask);
  void handle(runtime::Context& cx, runtime::Ask<GetEvents> ask);
  void handle(runtime::Context& cx, runtime::Ask<Await> ask);

 private:
  // Takes an event; what carrying out its effects brings about is taken after them.
  Result<void> take(runtime::Context& cx, const ControllerEvent& event);
  void carry_out_all(runtime::Context& cx, std::vector<ControllerEffect> effects);
  void carry_out(runtime::Context& cx, SpawnRankOn spawn);
  void carry_out(runtime::Context& cx, KillRankOn kill);
  void carry_out(runtime::Context& cx, RefuseNode refuse);
  void carry_out(runtime::Context& cx, SendStart start);
  void carry_out(runtime::Context& cx, OpenExchange open);
  void carry_out(runtime::Context& cx, TellExchange tell);
  void carry_out(runtime::Context& cx, CloseExchange close);
  void carry_out(runtime::Context& cx, WakeAt wake);
  void carry_out(runtime::Context& cx, Announce announce);
  runtime::Ref<runtime::AgentInbox> agent_of(const std::string& node) const;
  void tell_exchanges(runtime::Context& cx);
  bool holds(ClusterCondition condition) const;
  void answer_awaits();

  const ControllerHands hands_;
  ControllerCore core_;
  std::map<std::string, runtime::Ref<ExchangeControl>> exchanges_;
  OutgoingMessages to_exchanges_;
  bool retry_due_ = false;  // a timer is set: an exchange's mailbox was full
  std::deque<ControllerEvent> brought_about_;
  std::vector<runtime::Ask<Await>> awaits_;
  std::deque<ClusterEvent> events_;
  std::int64_t event_last_ = 0;
};

static_assert(runtime::Actor<Controller>);

}  // namespace tandem::actors
