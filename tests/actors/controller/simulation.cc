#include "tests/actors/controller/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "actors/controller/watchdog.h"
#include "actors/exchange/follow.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/kept_wishes.h"
#include "tests/actors/controller/witnessed.h"

namespace tandem::controller {

using actor::Delivery;

namespace {

constexpr Duration kAnswerWithin = std::chrono::seconds(60);
constexpr const char* kRunFolder = "runs/";

const char* state_after(messages::JobOutcome outcome) {
  switch (outcome) {
    case messages::JobOutcome::kSucceeded:
      return "Succeeded";
    case messages::JobOutcome::kFailed:
      return "Failed";
    case messages::JobOutcome::kCancelled:
      return "Cancelled";
  }
  CHECK(false && "an outcome of no kind");
  return "";
}

node::RankId rank_of(const ActorId& peer, const link::Hello& hello) {
  return {hello.opaque, peer.incarnation, hello.rank};
}

node::RankId rank_of(const ActorId& peer) {
  const auto at = peer.name.find('@');
  const int rank = at == std::string::npos ? 0 : std::stoi(peer.name.substr(at + 1));
  return {peer.name.substr(0, at), peer.incarnation, rank};
}

}  // namespace

SimulatedCluster::SimulatedCluster(std::uint64_t seed, const ClusterConditions& conditions,
                                   const DurableState& restored)
    : executor_(seed),
      network_(executor_, conditions.network),
      conditions_(conditions),
      directory_(conditions.frame_bytes_max),
      remembered_(restored) {
  start_controller(derive_seed(seed, "controller"), remembered_);
  network_.serve(link_callbacks());
  served_ = true;
}

void SimulatedCluster::start_controller(std::uint64_t seed, const DurableState& restored) {
  life_ = std::make_shared<ServerLife>(executor_, [this] {
    ++effects_;
    if (on_effect) on_effect(effects_);
  });
  system_ = std::make_unique<actor::System>(life_->executor,
                                            [](const ActorId&, const Error&) { CHECK(false); });
  controller_ = system_->spawn<Controller>(
      "controller",
      [this, seed, actions = mortal(actions(), life_), restored] {
        auto made = std::make_unique<Controller>(seed, actions, restored);
        core_ = &made->core();
        return made;
      },
      {.mailbox_max = conditions_.mailbox_max});
  news_ = std::make_unique<LinkNews>(controller_);
  directory_.expose(rank::kControllerRanksPort, actor::narrow<messages::RankEvents>(controller_),
                    doors::rank_door());
  directory_.expose(
      node::kAgentEventsPort, actor::narrow<node::AgentEvents>(controller_),
      doors::agent_door([this](const node::RankId& rank) { return roster_.node_of(rank); }));
  const auto watchdog = system_->spawn<Watchdog>("watchdog", [this] {
    const auto peers = [this] {
      (void)news_->all_told();
      return network_.peers();
    };
    return std::make_unique<Watchdog>(peers, controller_);
  });
  CHECK(watchdog.tell(WatchNow{}) == Delivery::kAccepted);
}

void SimulatedCluster::leave_exchanges() {
  for (const auto& [job, run] : runs_) {
    if (!run) continue;
    messages::for_each_peer(
        [this, &id = job]<class Peer> { directory_.withdraw(messages::exchange_port<Peer>(id)); });
    run->record.on_events = nullptr;
    run->exchange = nullptr;
  }
}

void SimulatedCluster::end_controller() {
  served_ = false;
  network_.lose_server();
  directory_.fail_asks(Error{ErrorCode::kUnreachable, "the controller has died"});
  leave_exchanges();
  controller_ = {};
  news_.reset();
  system_.reset();
  if (life_) life_->executor.end();
  life_.reset();
  open_runs_.clear();
  agents_.clear();
  roster_ = {};
}

// The turn in which the process dies goes on to its end, and changes nothing outside.
void SimulatedCluster::crash_controller(Duration pause) {
  if (!life_ || life_->dead()) return;
  life_->die();
  executor_.at(executor_.now(), [this, pause] {
    end_controller();
    executor_.at(executor_.now() + pause, [this] { controller_comes_back(); });
  });
}

void SimulatedCluster::controller_comes_back() {
  start_controller(executor_.draw_seed(), remembered_);
  // Jobs are taken up before a peer is let in.
  const actor::ReplyTo<Nothing> reply([this, life = std::weak_ptr(life_)](Result<Nothing> taken) {
    executor_.at(executor_.now(), [this, life, taken] {
      if (life.lock() != life_ || !life_ || life_->dead()) return;
      CHECK(taken.has_value());
      network_.serve(link_callbacks());
      served_ = true;
    });
  });
  CHECK(controller_.tell(actor::Ask<TakeUp>{jobs_to_take_up(runs_, /*outlived=*/true), reply}) ==
        Delivery::kAccepted);
}

void SimulatedCluster::restart_controller(Duration pause) {
  crash_controller(pause);
  run_for(pause);
  CHECK(run_until([this] { return served_; }, kAnswerWithin));
}

void SimulatedCluster::stall_controller(Duration time) {
  if (life_) life_->stall(executor_, time);
}

void SimulatedCluster::jump_controller_clock(Duration forward) {
  if (life_) life_->executor.jump(forward);
}

void SimulatedCluster::stall_for_disk(const SharedLife& life) {
  if (executor_.now() < disk_.slow_until) life->stall(executor_, disk_.slow_by);
}

SimulatedCluster::~SimulatedCluster() {
  on_event = nullptr;
  on_effect = nullptr;
  if (life_) life_->die();
  while (!nodes_.empty()) end_node(nodes_.begin()->first);
  leave_exchanges();
  system_.reset();
  if (life_) life_->executor.end();
}

void SimulatedCluster::add_node(const std::string& name, double cpus) {
  const RankDependencies dependencies{name, executor_, network_,
                                      [this](const std::string& job) { return run_of(job); }};
  auto machine = std::make_unique<SimulatedMachine>(
      executor_, conditions_.processes,
      [dependencies](const std::vector<std::string>& argv, ExitSelf exit) {
        return start_rank(dependencies, argv, std::move(exit));
      },
      [this](const node::RankId& rank) { check_one_incarnation(rank); });
  nodes_[name] = std::make_shared<SimulatedNode>(
      SimulatedNode::World{executor_, network_, [this] { return Incarnation{++node_lives_}; }},
      name, cpus, std::move(machine));
}

void SimulatedCluster::kill_node(const std::string& name) {
  executor_.at(executor_.now(), [this, name] { end_node(name); });
}

void SimulatedCluster::end_node(const std::string& name) {
  const auto ended = nodes_.extract(name);
  if (ended.empty()) return;
  for (const auto& [job, run] : runs_)
    if (run && run->weights.node == name) run->weights.lose();
}

SimulatedNode* SimulatedCluster::node(const std::string& name) {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.get();
}

std::vector<std::string> SimulatedCluster::nodes_up() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) names.push_back(name);
  return names;
}

std::vector<node::RankId> SimulatedCluster::ranks_running() const {
  std::vector<node::RankId> ranks;
  for (const auto& [name, node] : nodes_)
    for (const auto& process : node->machine().running()) ranks.push_back(process.rank);
  return ranks;
}

SimulatedProcess* SimulatedCluster::process_of(const node::RankId& rank) {
  for (const auto& [name, node] : nodes_)
    for (const auto& process : node->machine().running())
      if (process.rank == rank) return process.body;
  return nullptr;
}

void SimulatedCluster::kill(const node::RankId& rank) {
  for (const auto& [name, node] : nodes_)
    for (const auto& process : node->machine().running())
      if (process.rank == rank) node->machine().signal(process.id, SIGKILL);
}

void SimulatedCluster::hide(const std::string& host, Duration time) {
  hidden_.hide(host, executor_.now() + time);
}

void SimulatedCluster::note_introduction(const std::string& host) {
  const SimulatedNode* const there = node(host);
  if (!there) return;
  std::set<node::RankId> living;
  for (const auto& process : there->machine().running()) living.insert(process.rank);
  hidden_.introduced(host, executor_.now(), std::move(living));
}

void SimulatedCluster::check_one_incarnation(const node::RankId& began) {
  for (const auto& [name, node] : nodes_)
    for (const node::RankId& earlier : node->machine().earlier_than(began)) {
      if (hidden_.may_be_left_over(name, earlier, executor_.now())) continue;
      violations_.push_back(now_text() + " CC-1: " + began.actor + " begins as incarnation " +
                            std::to_string(began.incarnation.value) + " while incarnation " +
                            std::to_string(earlier.incarnation.value) + " lives on " + name);
    }
}

void SimulatedCluster::report_hung(const node::RankId& rank) {
  CHECK(controller_.tell(RankHung{rank, 60}) == Delivery::kAccepted);
}

link::ParcelSender SimulatedCluster::to_client(const ActorId& peer) {
  return [this, life = life_, peer](std::string frame) {
    return life->acts() ? network_.to_client(peer, std::move(frame)) : link::Sent::kGone;
  };
}

link::LinkCallbacks SimulatedCluster::link_callbacks() {
  link::LinkCallbacks callbacks;
  callbacks.admit = [this](const link::Hello& hello) { return roster_.admit(hello); };
  callbacks.on_up = [this](const ActorId& peer, const link::Hello& hello) {
    if (messages::is_node_peer(peer.name))
      agents_[{messages::node_of_peer(peer.name), peer.incarnation}] =
          directory_.remote<node::AgentInbox>({node::kAgentPort, {}}, to_client(peer));
    else
      news_->tell(RankConnected{rank_of(peer, hello)});
  };
  callbacks.on_down = [this](const ActorId& peer, const link::Down& down) {
    if (messages::is_node_peer(peer.name)) {
      const std::string node = messages::node_of_peer(peer.name);
      agents_.erase({node, peer.incarnation});
      const bool died = down.reason == link::Down::Reason::kDisconnected ||
                        down.reason == link::Down::Reason::kSuperseded;
      news_->tell(NodeDown{node, peer.incarnation, died});
      return;
    }
    news_->tell(RankHung{rank_of(peer), 0});
  };
  callbacks.on_silence = [this](const ActorId& peer, bool silent) {
    if (messages::is_node_peer(peer.name))
      news_->tell(NodeSilent{messages::node_of_peer(peer.name), peer.incarnation, silent});
    else
      news_->tell(RankSilent{rank_of(peer), silent});
  };
  callbacks.on_parcel = [this](const ActorId& peer, std::string& frame) {
    if (!news_->all_told()) return link::Offer::kLater;
    const link::Offer offer = directory_.deliver(frame, nullptr, peer);
    CHECK(offer != link::Offer::kRefused);  // all of these peers are honest
    return offer;
  };
  return callbacks;
}

ControllerActions SimulatedCluster::actions() {
  ControllerActions actions;
  actions.rules = {.node_grace = conditions_.network.grace};
  actions.agent = [this](const std::string& node, Incarnation incarnation) {
    const auto found = agents_.find({node, incarnation});
    return found == agents_.end() ? actor::Ref<node::AgentInbox>() : found->second;
  };
  actions.rank = [this](const node::RankId& id) {
    const ActorId peer{messages::rank_name(id.actor, id.rank), id.incarnation};
    return directory_.remote<messages::RankInbox>({rank::kRankInboxPort, {}}, to_client(peer));
  };
  actions.program = [this](const node::RankId& id) {
    const ActorId peer{messages::rank_name(id.actor, id.rank), id.incarnation};
    return directory_.remote<messages::ProgramInbox>({rank::kRankInboxPort, {}}, to_client(peer));
  };
  actions.write_result = [this](const JobRecord& job, const std::string& text) -> Result<void> {
    trace_.push_back(now_text() + " result of " + job.id + ": " + text);
    results_.insert(job.id);
    return {};
  };
  actions.expect = [this](const std::string& node, const node::RankId& rank) {
    roster_.started(node, rank);
  };
  actions.cut_link = [this](const node::RankId& id) {
    network_.fence({messages::rank_name(id.actor, id.rank), id.incarnation});
  };
  actions.rank_arguments = rank_arguments;
  actions.bulk_endpoints = [](const std::string&) {
    return std::vector<std::string>{"simulated:2"};
  };
  actions.make_run_directory = [this](const JobShape& shape) -> Result<RunDirectory> {
    std::string id = shape.resume_dir ? shape.resume_dir->substr(std::string(kRunFolder).size())
                                      : shape.name + "-" + std::to_string(runs_known_ + 1);
    runs_known_ += runs_.contains(id) ? 0 : 1;
    runs_[id] = submitted_;
    return RunDirectory{.id = id,
                        .path = kRunFolder + id,
                        .journal_rows = submitted_ ? std::ssize(submitted_->record.entries) : 0};
  };
  actions.own_run_directory = [](const std::string&, const JobShape&) { return Result<void>(); };
  actions.remember = [this](std::span<const DurableEvent> events) -> Result<void> {
    stall_for_disk(life_);
    if (executor_.now() < disk_.remember_fails_until)
      return Error{ErrorCode::kFailed, "the disk is full"};
    for (const DurableEvent& event : events) {
      const auto* const left = std::get_if<JobLeft>(&event);
      const JobOver* const over = left ? remembered_.outcome(left->job) : nullptr;
      if (over) finals_.emplace(left->job, state_after(over->outcome));
      remembered_.apply(event);
    }
    // CC-5, CC-7: a reader has its state.
    CHECK(!checks_now() || remembered_.hash() == core_->durable().hash());
    return {};
  };
  actions.open_exchange = [this](const JobRecord& job) { return open_exchange(job); };
  actions.close_exchange = [this](const std::string& job) { close_exchange(job); };
  actions.journal = [this](const runs::ClusterEvent& event) -> Result<void> {
    trace_.push_back(now_text() + " " + event.kind + " " + event.subject + ": " + event.message);
    // The controller has taken the agent's NodeUp.
    if (event.kind == "node" && (event.message == "up" || event.message.starts_with("up, ")))
      note_introduction(event.subject);
    for (const char* const state : {"Succeeded", "Failed", "Cancelled"})
      if (event.kind == "job" && event.message.starts_with(std::string(state) + ":")) {
        // A controller that dies then may leave it to the next one to say it again.
        CHECK(finals_.emplace(event.subject, state).first->second == state);
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
  const auto dial = [this, run]<class Peer>(const ActorId& peer) {
    using Inbox = typename Peer::Inbox;
    auto remote = directory_.remote<Inbox>({Peer::kPort, {}}, to_client(peer));
    const ActorId address = remote.address();
    return actor::Ref<Inbox>(
        address, std::make_shared<Witnessed<Inbox>>(peer, std::move(remote), run, life_));
  };
  open_runs_[job.id] = {std::make_unique<MortalRecord>(run->record, life_,
                                                       [this, life = std::weak_ptr(life_)] {
                                                         if (const auto then = life.lock())
                                                           stall_for_disk(then);
                                                       }),
                        std::make_unique<MortalPayloads>(run->payload_store, life_)};
  auto& record = *open_runs_[job.id].first;
  auto& payloads = *open_runs_[job.id].second;
  const exchange::ExchangeLinks links{
      .dials = exchange::dials(dial),
      .controller = actor::narrow<messages::ExchangeNotices>(controller_),
      .refuse = [this](const ActorId& who, const std::string& why) {
        // All of these peers are honest; one may come back too late.
        if (why.find("has not come back") == std::string::npos)
          ADD_FAILURE() << who.name << " is refused: " << why;
        network_.fence(who);
      }};
  std::optional<exchange::Predecessor> before;
  if (job.follows && std::ssize(run->record.entries) > core_->durable().job(job.id)->earlier.rows) {
    before = run->record.predecessor();
    run->payload_store.reopen(before->state.facts().flow);
  }
  const bool resume = job.shape.resume_dir.has_value();
  const bool resumes =
      before ? exchange::resumes(before->state.facts(), before->has_earlier_attempt) : resume;
  exchange::ExchangeConfig config = exchange_config(run->job, job.id, resumes);
  config.epoch = Epoch{++epoch_};
  config.away_max = conditions_.network.grace + 2 * link::kGraceMargin;
  const auto exchange = system_->spawn<exchange::Exchange>(
      messages::exchange_name(job.id),
      [=, &record, &payloads, now = life_->executor.now()] {
        auto made = before ? std::make_unique<exchange::Exchange>(config, links, record, payloads,
                                                                  *before, now)
                           : std::make_unique<exchange::Exchange>(config, links, record, payloads);
        run->exchange = made.get();
        return made;
      },
      {.mailbox_max = conditions_.mailbox_max});
  CHECK(exchange.tell(exchange::Begin{}) == Delivery::kAccepted);
  messages::for_each_peer([&]<class Peer> {
    directory_.expose(messages::exchange_port<Peer>(job.id),
                      actor::narrow<typename Peer::Events>(exchange),
                      doors::exchange_door<Peer>(job.id));
  });
  return actor::narrow<ExchangeControl>(exchange);
}

void SimulatedCluster::close_exchange(const std::string& job) {
  roster_.forget(job);
  if (!runs_.at(job)) return;
  messages::for_each_peer(
      [&]<class Peer> { directory_.withdraw(messages::exchange_port<Peer>(job)); });
  system_->stop(messages::exchange_name(job));
  runs_.at(job)->exchange = nullptr;
}

void SimulatedCluster::record(const std::string& job, SimulatedRun& run,
                              std::span<const JournalledRow> events) {
  if (checks_now()) run.exchange->core().ledger().check_by_recount();  // LG-1 … LG-5, SB-1
  // DU-1, DU-2: a reader of the journal has the live state at every flush, so that nothing but an
  // event has changed it.
  if (checks_now() && !run.exchange->stands_still())
    CHECK(run.record.replayed.hash() == run.exchange->core().state().hash());
  for (const JournalledRow& event : events) {
    trace_.push_back(now_text() + " " + job + " " + text_of(event));
    if (on_event) on_event(job, event);
  }
}

template <class Q>
Result<typename Q::Reply> SimulatedCluster::ask(Q question) {
  using Reply = Result<typename Q::Reply>;
  const SharedLife life = life_;
  const auto answer = std::make_shared<std::optional<Reply>>();
  const actor::ReplyTo<typename Q::Reply> reply([this, answer, question](Reply given) {
    EXPECT_TRUE(!given || is_kept(remembered_, question, *given)) << "CC-6";
    answer->emplace(std::move(given));
  });
  if (controller_.tell(actor::Ask<Q>{std::move(question), reply}) != Delivery::kAccepted)
    return Error{ErrorCode::kUnreachable, "there is no controller"};
  const auto answered_or_dead = [&] { return *answer || life != life_ || life->dead(); };
  CHECK(executor_.run_until(answered_or_dead, kAnswerWithin));
  if (!*answer) return Error{ErrorCode::kUnreachable, "the controller has died"};
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
  return ask(AskProgram{actor, body, kAnswerWithin / 12});
}

void SimulatedCluster::ask_program_later(const std::string& actor, const std::string& body,
                                         Duration timeout, Answered done) {
  const actor::ReplyTo<messages::AskedJson> reply(
      [done](const Result<messages::AskedJson>& answer) { done(answer); });
  (void)controller_.tell(actor::Ask<AskProgram>{{actor, body, timeout}, reply});
}

void SimulatedCluster::scale_later(const ScaleRole& wish,
                                   std::function<void(const Result<Nothing>&)> done) {
  const actor::ReplyTo<Nothing> reply(
      [done = std::move(done)](Result<Nothing> answer) { done(answer); });
  (void)controller_.tell(actor::Ask<Scale>{Scale{wish}, reply});
}

void SimulatedCluster::measure(const messages::FleetMeasured& figures) {
  (void)controller_.tell(figures);
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
  return ask(jobs_to_take_up(runs, /*outlived=*/false));
}

TakeUp SimulatedCluster::jobs_to_take_up(
    const std::map<std::string, std::shared_ptr<SimulatedRun>>& runs, bool outlived) {
  TakeUp taken;
  for (const JobTaken& job : remembered_.jobs()) {
    const std::shared_ptr<SimulatedRun>& run = runs.at(job.job);
    if (!run) {
      JobShape shape = actors_alone_.at(job.job);
      shape.resume_dir = job.run_dir;
      taken.jobs.push_back({job, std::move(shape)});
      continue;
    }
    const bool ended = run->record.replayed.facts().stage == exchange::RunStage::kEnded;
    const bool whole = run->damaged_rows <= job.earlier.rows || ended;
    const bool follows = outlived && whole && !remembered_.outcome(job.job);
    if (!follows) {
      run->weights.lose();                                // with the processes of that time
      run->epochs = std::make_shared<SimulatedEpochs>();  // those of broadcasts begin anew
      run->payload_store.clear();
    }
    runs_known_ += runs_.contains(job.job) ? 0 : 1;
    runs_[job.job] = run;
    JobShape shape = shape_of(run->job);
    if (!run->record.entries.empty()) shape.resume_dir = job.run_dir;
    JobTaken known = job;
    if (!follows) known.earlier.rows = std::ssize(run->record.entries);
    taken.jobs.push_back({std::move(known), std::move(shape), follows});
  }
  return taken;
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

void SimulatedCluster::forget_ended() {
  for (const auto& [job, state] : std::exchange(finals_, {})) {
    runs_.erase(job);
    actors_alone_.erase(job);
    results_.erase(job);
  }
  trace_ = {};
  hidden_.forget();
  network_.forget_names();
}

std::string SimulatedCluster::final_state(const std::string& job) const {
  const auto it = finals_.find(job);
  return it == finals_.end() ? "" : it->second;
}

bool SimulatedCluster::has_result(const std::string& job) const {
  const auto run = runs_.at(job);
  return results_.contains(job) || (run && run->record.result_json);
}

}  // namespace tandem::controller
