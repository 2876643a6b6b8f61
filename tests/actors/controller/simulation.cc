#include "tests/actors/controller/simulation.h"

#include <csignal>
#include <utility>

#include "actors/exchange/follow.h"
#include "runtime/base/log.h"
#include "runtime/node/agent.h"

namespace tandem::controller {

using actor::Delivery;

namespace {

constexpr Duration kAnswerWithin = std::chrono::seconds(10);
constexpr std::int64_t kNodeMemoryBytes = std::int64_t{64} << 30;
constexpr const char* kRunFolder = "runs/";

std::string simulated_agent(const std::string& node) { return messages::node_peer(node, 0); }

node::RankId rank_of(const ActorId& peer, const link::Hello& hello) {
  return {hello.opaque, peer.incarnation, hello.rank};
}

}  // namespace

// A node's agent process and the host of its ranks.
struct SimulatedCluster::Node {
  ActorId peer;
  link::Directory directory;
  std::unique_ptr<SimulatedProcessHost> host;
  std::unique_ptr<actor::System> system;
  actor::Ref<node::Agent::Inbox> agent;  // set with the first link
};

SimulatedCluster::SimulatedCluster(std::uint64_t seed, const ClusterConditions& conditions,
                                   const DurableState& restored)
    : executor_(seed),
      network_(executor_, conditions.network),
      conditions_(conditions),
      system_(std::make_unique<actor::System>(executor_,
                                              [](const ActorId&, const Error&) { CHECK(false); })),
      remembered_(restored) {
  start_controller(derive_seed(seed, "controller"));
  network_.serve(link_callbacks());
}

void SimulatedCluster::start_controller(std::uint64_t seed) {
  controller_ = system_->spawn<Controller>("controller", [this, seed, restored = remembered_] {
    return std::make_unique<Controller>(seed, actions(), restored);
  });
  directory_.expose(rank::kControllerRanksPort, actor::narrow<messages::RankEvents>(controller_),
                    doors::rank_door());
  directory_.expose(
      node::kAgentEventsPort, actor::narrow<node::AgentEvents>(controller_),
      doors::agent_door([this](const node::RankId& rank) { return roster_.node_of(rank); }));
}

void SimulatedCluster::restart_controller(Duration pause) {
  network_.lose_server();
  directory_.fail_asks(Error{ErrorCode::kUnreachable, "the controller has died"});
  for (const auto& [job, run] : runs_) {
    if (!run) continue;
    messages::for_each_peer(
        [&]<class Peer> { directory_.withdraw(messages::exchange_port<Peer>(job)); });
    run->record.on_events = nullptr;
    run->exchange = nullptr;
  }
  system_ = std::make_unique<actor::System>(executor_,
                                            [](const ActorId&, const Error&) { CHECK(false); });
  agents_.clear();
  roster_ = {};
  run_for(pause);
  start_controller(executor_.draw_seed());
  outlived_ = true;
  const auto taken = take_up(runs_);
  outlived_ = false;
  CHECK(taken.has_value());
  network_.serve(link_callbacks());
}

SimulatedCluster::~SimulatedCluster() {
  on_event = nullptr;
  while (!nodes_.empty()) end_node(nodes_.begin()->first);
  system_.reset();
  for (const auto& [job, run] : runs_) {
    if (!run) continue;
    run->record.on_events = nullptr;
    run->exchange = nullptr;
  }
}

void SimulatedCluster::add_node(const std::string& name, double cpus) {
  const auto node = std::make_shared<Node>();
  nodes_[name] = node;
  node->peer = {simulated_agent(name), Incarnation{++node_lives_}};
  node->system = std::make_unique<actor::System>(
      executor_, [](const ActorId&, const Error&) { CHECK(false); });
  const RankDependencies dependencies{name, executor_, network_,
                                      [this](const std::string& job) { return run_of(job); }};
  node->host = std::make_unique<SimulatedProcessHost>(
      executor_, conditions_.processes,
      [dependencies](const std::vector<std::string>& argv, ExitSelf exit) {
        return start_rank(dependencies, argv, std::move(exit));
      });
  const node::NodeUp introduction{.node = name,
                                  .incarnation = node->peer.incarnation,
                                  .cpus = cpus,
                                  .memory_bytes = kNodeMemoryBytes};
  link::LinkCallbacks callbacks;
  callbacks.on_up = [this, introduction, weak = std::weak_ptr(node)](const ActorId&,
                                                                     const link::Hello&) {
    const auto up = weak.lock();
    const auto to_controller = [this, peer = up->peer](std::string frame) {
      return network_.to_server(peer, std::move(frame));
    };
    if (up->agent) {
      CHECK(up->agent.tell(node::LinkCameUp{}) == Delivery::kAccepted);
      return;
    }
    const auto controller =
        up->directory.remote<node::AgentEvents>({node::kAgentEventsPort, {}}, to_controller);
    up->agent = up->system->spawn<node::Agent>("agent", [=, host = up->host.get()] {
      return std::make_unique<node::Agent>(
          node::AgentConfig{.node = introduction, .program = "tandem"}, *host, controller);
    });
    up->directory.expose(node::kAgentPort, actor::narrow<node::AgentInbox>(up->agent));
    CHECK(up->agent.tell(node::LinkCameUp{}) == Delivery::kAccepted);
  };
  callbacks.on_parcel = [weak = std::weak_ptr(node)](const ActorId&, std::string& frame) {
    const auto up = weak.lock();
    return up ? up->directory.deliver(frame, nullptr) : link::Offer::kTaken;
  };
  network_.dial({.name = node->peer.name, .incarnation = node->peer.incarnation, .opaque = name},
                std::move(callbacks));
}

void SimulatedCluster::kill_node(const std::string& name) {
  executor_.at(executor_.now(), [this, name] { end_node(name); });
}

void SimulatedCluster::end_node(const std::string& name) {
  const auto ended = nodes_.extract(name);
  if (ended.empty()) return;
  network_.cut(ended.mapped()->peer);
  ended.mapped()->host.reset();
  for (const auto& [job, run] : runs_)
    if (run && run->weights.node == name) run->weights.lose();
}

std::vector<node::RankId> SimulatedCluster::ranks_running() const {
  std::vector<node::RankId> ranks;
  for (const auto& [name, node] : nodes_)
    for (const auto& process : node->host->running())
      ranks.push_back(rank_of_arguments(process.argv));
  return ranks;
}

void SimulatedCluster::kill(const node::RankId& rank) {
  for (const auto& [name, node] : nodes_)
    for (const auto& process : node->host->running())
      if (rank_of_arguments(process.argv) == rank) node->host->signal(process.id, SIGKILL);
}

void SimulatedCluster::report_hung(const node::RankId& rank) {
  CHECK(controller_.tell(RankHung{rank, 60}) == Delivery::kAccepted);
}

link::LinkCallbacks SimulatedCluster::link_callbacks() {
  link::LinkCallbacks callbacks;
  callbacks.admit = [this](const link::Hello& hello) { return roster_.admit(hello); };
  callbacks.on_up = [this](const ActorId& peer, const link::Hello& hello) {
    if (messages::is_node_peer(peer.name))
      agents_[hello.opaque] = directory_.remote<node::AgentInbox>(
          {node::kAgentPort, {}},
          [this, peer](std::string frame) { return network_.to_client(peer, std::move(frame)); });
    else
      CHECK(controller_.tell(RankConnected{rank_of(peer, hello)}) == Delivery::kAccepted);
  };
  callbacks.on_down = [this](const ActorId& peer, const link::Down&) {
    if (messages::is_node_peer(peer.name)) {
      (void)controller_.tell(NodeDown{messages::node_of_peer(peer.name), peer.incarnation});
      return;
    }
    const auto at = peer.name.find('@');
    const int rank = at == std::string::npos ? 0 : std::stoi(peer.name.substr(at + 1));
    (void)controller_.tell(RankHung{{peer.name.substr(0, at), peer.incarnation, rank}, 0});
  };
  callbacks.on_parcel = [this](const ActorId& peer, std::string& frame) {
    const link::Offer offer = directory_.deliver(frame, nullptr, peer);
    CHECK(offer != link::Offer::kRefused);  // all of these peers are honest
    return offer;
  };
  return callbacks;
}

ControllerActions SimulatedCluster::actions() {
  ControllerActions actions;
  actions.agent = [this](const std::string& node, Incarnation) { return agents_[node]; };
  actions.rank = [this](const node::RankId& id) {
    const ActorId peer{messages::rank_name(id.actor, id.rank), id.incarnation};
    return directory_.remote<messages::RankInbox>(
        {rank::kRankInboxPort, {}},
        [this, peer](std::string frame) { return network_.to_client(peer, std::move(frame)); });
  };
  actions.program = [this](const node::RankId& id) {
    const ActorId peer{messages::rank_name(id.actor, id.rank), id.incarnation};
    return directory_.remote<messages::ProgramInbox>(
        {rank::kRankInboxPort, {}},
        [this, peer](std::string frame) { return network_.to_client(peer, std::move(frame)); });
  };
  actions.write_result = [this](const JobRecord& job, const std::string& text) -> Result<void> {
    trace_.push_back(now_text() + " result of " + job.id + ": " + text);
    return {};
  };
  actions.expect = [this](const std::string& node, const node::RankId& rank) {
    roster_.started(node, rank);
  };
  actions.cut_link = [](const node::RankId&) {};  // the processes of a node end with its agent here
  actions.rank_arguments = rank_arguments;
  actions.bulk_endpoints = [](const std::string&) {
    return std::vector<std::string>{"simulated:2"};
  };
  actions.make_run_directory = [this](const JobShape& shape) -> Result<RunDirectory> {
    std::string id = shape.resume_dir ? shape.resume_dir->substr(std::string(kRunFolder).size())
                                      : shape.name + "-" + std::to_string(runs_.size() + 1);
    runs_[id] = submitted_;
    return RunDirectory{id, kRunFolder + id};
  };
  actions.own_run_directory = [](const std::string&, const JobShape&) { return Result<void>(); };
  actions.remember = [this](std::span<const DurableEvent> events) -> Result<void> {
    for (const DurableEvent& event : events) remembered_.apply(event);
    return {};
  };
  actions.open_exchange = [this](const JobRecord& job) { return open_exchange(job); };
  actions.close_exchange = [this](const std::string& job) { close_exchange(job); };
  actions.journal = [this](const runs::ClusterEvent& event) -> Result<void> {
    trace_.push_back(now_text() + " " + event.kind + " " + event.subject + ": " + event.message);
    for (const char* const state : {"Succeeded", "Failed", "Cancelled"})
      if (event.kind == "job" && event.message.starts_with(std::string(state) + ":")) {
        CHECK(finals_.emplace(event.subject, state).second);
      }
    return {};
  };
  return actions;
}

Result<actor::Ref<ExchangeControl>> SimulatedCluster::open_exchange(const JobRecord& job) {
  if (fail_to_open_exchanges) return Error{ErrorCode::kFailed, "no room for the payloads"};
  const auto run = runs_.at(job.id);
  run->record.now_ms = [this] { return executor_.now().ns / 1'000'000; };
  run->record.on_events = [this, id = job.id, run = run.get()](
                              std::span<const JournalledRow> events) { record(id, *run, events); };
  const auto dial = [this]<class Peer>(const ActorId& peer) {
    return directory_.remote<typename Peer::Inbox>(
        {Peer::kPort, {}},
        [this, peer](std::string frame) { return network_.to_client(peer, std::move(frame)); });
  };
  const exchange::ExchangeLinks links{
      .dials = exchange::dials(dial),
      .controller = actor::narrow<messages::ExchangeNotices>(controller_),
      .refuse = [](const ActorId&, const std::string& why) {
        log::error("{}", why);
        CHECK(false);  // all of these peers are honest
      }};
  std::optional<exchange::Predecessor> before;
  if (job.follows) {
    before = exchange::Predecessor{run->record.replayed, {}};
    for (const exchange::JournalEntry& entry : run->record.entries)
      before->history.take(entry.event);
  }
  const bool resumes = before ? before->state.facts().resumed : job.shape.resume_dir.has_value();
  exchange::ExchangeConfig config = exchange_config(run->job, job.id, resumes);
  config.epoch = Epoch{++epoch_};
  const auto exchange = system_->spawn<exchange::Exchange>(
      messages::exchange_name(job.id), [=, now = executor_.now()] {
        auto made = before ? std::make_unique<exchange::Exchange>(config, links, run->record,
                                                                  run->payload_store, *before, now)
                           : std::make_unique<exchange::Exchange>(config, links, run->record,
                                                                  run->payload_store);
        run->exchange = made.get();
        return made;
      });
  if (before) CHECK(exchange.tell(exchange::GoOn{}) == Delivery::kAccepted);
  messages::for_each_peer([&]<class Peer> {
    directory_.expose(messages::exchange_port<Peer>(job.id),
                      actor::narrow<typename Peer::Events>(exchange),
                      doors::exchange_door<Peer>(job.id));
  });
  return actor::narrow<ExchangeControl>(exchange);
}

void SimulatedCluster::close_exchange(const std::string& job) {
  if (!runs_.at(job)) return;
  messages::for_each_peer(
      [&]<class Peer> { directory_.withdraw(messages::exchange_port<Peer>(job)); });
  system_->stop(messages::exchange_name(job));
  runs_.at(job)->exchange = nullptr;
}

void SimulatedCluster::record(const std::string& job, SimulatedRun& run,
                              std::span<const JournalledRow> events) {
  run.exchange->core().ledger().check_by_recount();  // LG-1 … LG-5, SB-1
  // DU-1, DU-2: a reader of the journal has the live state at every flush, so that nothing but an
  // event has changed it.
  CHECK(run.record.replayed.hash() == run.exchange->core().state().hash());
  for (const JournalledRow& event : events) {
    trace_.push_back(now_text() + " " + job + " " + text_of(event));
    if (on_event) on_event(job, event);
  }
}

std::string SimulatedCluster::now_text() const { return std::to_string(executor_.now().ns); }

template <class Q>
Result<typename Q::Reply> SimulatedCluster::ask(Q question) {
  using Reply = Result<typename Q::Reply>;
  const auto answer = std::make_shared<std::optional<Reply>>();
  const actor::ReplyTo<typename Q::Reply> reply(
      [answer](Reply given) { answer->emplace(std::move(given)); });
  CHECK(controller_.tell(actor::Ask<Q>{std::move(question), reply}) == Delivery::kAccepted);
  CHECK(executor_.run_until([&] { return answer->has_value(); }, kAnswerWithin));
  return std::move(**answer);
}

Result<std::string> SimulatedCluster::submit(const SimulatedJob& job) {
  submitted_ = std::make_shared<SimulatedRun>(job);
  return ask(Submit{shape_of(job)});
}

Result<std::string> SimulatedCluster::submit_actors(const JobShape& shape) {
  submitted_ = nullptr;
  auto job = ask(Submit{shape});
  if (job) actors_alone_[*job] = shape;
  return job;
}

Result<messages::AskedJson> SimulatedCluster::ask_program(const std::string& actor,
                                                          const std::string& body) {
  return ask(AskProgram{actor, body, kAnswerWithin / 2});
}

Result<std::string> SimulatedCluster::resume(std::shared_ptr<SimulatedRun> run) {
  JobShape shape = shape_of(run->job);
  run->epochs = std::make_shared<SimulatedEpochs>();  // incarnations and epochs begin anew
  shape.resume_dir = kRunFolder + run->job.name + "-1";
  run->payload_store.clear();
  submitted_ = std::move(run);
  return ask(Submit{shape});
}

Result<Nothing> SimulatedCluster::take_up(
    const std::map<std::string, std::shared_ptr<SimulatedRun>>& runs) {
  TakeUp taken;
  for (const JobTaken& job : remembered_.jobs()) {
    const std::shared_ptr<SimulatedRun> run = runs.at(job.job);
    if (!run) {
      JobShape shape = actors_alone_.at(job.job);
      shape.resume_dir = job.run_dir;
      taken.jobs.push_back({job, std::move(shape)});
      continue;
    }
    const bool follows = outlived_ && !run->job.broadcasts && !remembered_.outcome(job.job) &&
                         exchange::can_follow(run->record.replayed.facts());
    if (!follows) {
      run->weights.lose();                                // with the processes of that time
      run->epochs = std::make_shared<SimulatedEpochs>();  // those of broadcasts begin anew
      run->payload_store.clear();
    }
    runs_[job.job] = run;
    JobShape shape = shape_of(run->job);
    if (!run->record.entries.empty()) shape.resume_dir = job.run_dir;
    taken.jobs.push_back({job, std::move(shape), follows});
  }
  return ask(std::move(taken));
}

Result<Nothing> SimulatedCluster::scale(const std::string& job, const messages::Role& role,
                                        std::int32_t replicas) {
  return ask(Scale{{job, role, replicas}});
}

Result<Nothing> SimulatedCluster::cancel(const std::string& job) { return ask(Cancel{job}); }

Result<Nothing> SimulatedCluster::drain(const std::string& node) {
  return ask(Cordon{CordonNode{node, "new driver", true}});
}

Result<Nothing> SimulatedCluster::uncordon(const std::string& node) {
  return ask(Cordon{UncordonNode{node}});
}

Result<Nothing> SimulatedCluster::await(ClusterCondition condition) {
  return ask(Await{condition});
}

ClusterView SimulatedCluster::view() { return *ask(GetCluster{}); }

bool SimulatedCluster::run_until(const std::function<bool()>& done, Duration limit) {
  return executor_.run_until(done, limit);
}

void SimulatedCluster::run_for(Duration time) {
  bool over = false;
  executor_.at(executor_.now() + time, [&over] { over = true; });
  executor_.run_until([&over] { return over; }, time);
}

std::string SimulatedCluster::final_state(const std::string& job) const {
  const auto it = finals_.find(job);
  return it == finals_.end() ? "" : it->second;
}

std::shared_ptr<SimulatedRun> SimulatedCluster::run_of(const std::string& job) const {
  return runs_.at(job);
}

}  // namespace tandem::controller
