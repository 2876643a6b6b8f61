// Everything that the controller's process owns is in Parts. The controller actor decides and knows
// no socket; it reaches the world through functions (ControllerActions) that are made here over
// links, files and actors.
//
//   start   claim the state folder (lock, epoch, keys, token), take up the jobs of the controller
//           before, listen, write controller.json
//   a job   new_run -> open_exchange -> ranks dial -> ... -> close_exchange
//   stop    HTTP, so that no request comes in; links; actors
//
// Threads: callbacks of links run on the thread `link`, HTTP handlers on the server's, actors on
// the executor's two. State that several of them touch is Guarded; maps that only the controller's
// functions touch are not, since one actor runs on one thread at a time (XR-1).
//
// A run is claimed by a file lock in its directory (run.lock): the lock ends with its process,
// however that dies, and clusters of `tandem run` and `tandem up` share a folder of runs.
#include "actors/main/controller_process.h"

#include <unistd.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "actors/api/http_api.h"
#include "actors/api/http_auth.h"
#include "actors/cli/api_client.h"
#include "actors/controller/link_news.h"
#include "actors/controller/result_json.h"
#include "actors/controller/watchdog.h"
#include "actors/doors/doors.h"
#include "actors/job/load_job.h"
#include "actors/job/reading_notice.h"
#include "actors/main/exchange_host.h"
#include "actors/main/http_places.h"
#include "actors/main/job_inputs.h"
#include "actors/main/job_shape.h"
#include "actors/main/kept_prompts.h"
#include "actors/main/linked_peers.h"
#include "actors/main/memory_keeper.h"
#include "actors/main/memory_plan.h"
#include "actors/main/own_build.h"
#include "actors/main/rank_process.h"
#include "actors/main/socket_keeper.h"
#include "actors/main/state_folder.h"
#include "actors/main/submission.h"
#include "actors/main/turn_watch.h"
#include "actors/messages/wire_build.h"
#include "actors/rank/rank_session.h"
#include "actors/runs/kept_events.h"
#include "actors/runs/new_run.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/file.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"
#include "runtime/http/http_server.h"
#include "runtime/link/forwarder.h"
#include "runtime/link/link.h"
#include "runtime/node/agent.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {

namespace fs = std::filesystem;
using controller::Controller;

namespace {

// The prompts that are kept for jobs that wait.
constexpr std::uint64_t kKeptPromptsBytesMax = std::uint64_t{1} << 30;

constexpr Duration kTakeUpTimeout = std::chrono::hours(1);

// The error of a run that is in use: its user knows the `tandem run`, and not its controller.
Error by_command(Error in_use, const fs::path& home, const fs::path& run_dir) {
  const auto holder = FileLock::owner(run_dir / "run.lock");
  if (const auto command = holder ? run_command_of(home, *holder) : std::nullopt)
    in_use.message =
        "the run in " + run_dir.string() + " is in use by process " + std::to_string(*command);
  return in_use;
}

// The folder of the Unix socket at which a controller listened; empty where it is none.
fs::path folder_of(const std::string& endpoint) {
  const auto at = link::parse_endpoint(endpoint);
  return at && at->is_local() ? fs::path(at->path).parent_path() : fs::path();
}

}  // namespace

struct ControllerProcess::Parts {
  explicit Parts(ControllerOptions o) : options(std::move(o)) {
    expected_job.with([this](auto& job) { job = std::exchange(options.expected, std::nullopt); });
  }

  ControllerOptions options;
  Epoch epoch{1};
  std::unique_ptr<StateFolder> state;  // set by claim_home()
  const std::int64_t started_ms = unix_ms();
  link::Directory directory;
  link::IoThread io{"link"};
  WatchedExecutor threads{2, static_cast<std::uint64_t>(getpid())};
  actor::System system{threads.executor, [](const ActorId& who, const Error& why) {
                         log::critical("event=actor_failed actor={} message=\"{}\"", who.name,
                                       why.message);
                         std::abort();  // a failure of these actors is a bug of ours
                       }};
  actor::Ref<Controller::Inbox> controller;
  SocketKeeper::Sockets sockets;          // set by listen()
  std::optional<link::CurveServer> keys;  // set if other hosts may join the cluster
  std::unique_ptr<link::LinkServer> link;
  // Forwards messages between actors of users' programs. It is touched only on the thread of the
  // link.
  link::Forwarder forwarder{
      [this](const ActorId& to, std::string frame) { return link->send(to, std::move(frame)); }};
  struct Web {
    std::string token, nonce;  // see HttpAuthRules
    std::unique_ptr<api::HttpAuth> auth;
    // The server's address. Guarded, since the server's threads may answer before the address is
    // known.
    Guarded<std::string> address;
    HttpPlaces places;  // its threads use all of the above
  };
  Web web;
  // Shared by callbacks of the link and functions of the controller. One node name may have several
  // agents, of which the controller takes the first (AG-2).
  using AgentId = std::pair<std::string, Incarnation>;
  struct LinkedAgent {
    actor::Ref<node::AgentInbox> inbox;
    std::int64_t pid = 0;  // 0: it runs on another host
  };
  struct Arrivals {
    Guarded<std::map<AgentId, LinkedAgent>> agents;
    std::optional<controller::LinkNews> news;  // set by listen()
  };
  Arrivals arrivals;
  Guarded<doors::Roster> roster;
  KeptPrompts prompts{kKeptPromptsBytesMax};
  Guarded<std::optional<ExpectedJob>> expected_job;  // until it is submitted
  // The runs of the jobs that have not ended, by job. They are touched only by functions of the
  // controller (ControllerActions), hence by one thread at a time.
  struct OpenRuns {
    std::map<std::string, std::vector<link::Endpoint>> bulk;
    using Spec = std::shared_ptr<const job::JobSpec>;
    std::map<std::string, std::pair<std::string, Spec>> specs;  // with the run directory
    std::map<std::string, FileLock> locks;
    runs::KeptEvents events;    // only of a `tandem run`, whose state folder goes with it
    Predecessors predecessors;  // until their exchanges are opened
  };
  OpenRuns runs;
  bool stopped = false;

  link::ParcelSender route_to(const ActorId& peer) { return link::to_peer(*link, peer); }
  void refuse(const ActorId& peer, const std::string& why) {
    log::warn("event=peer_refused peer={} reason=\"{}\"", to_string(peer), why);
    link->fence(peer);
  }
  ExchangeDeps deps() {
    return {.system = system,
            .directory = directory,
            .route_to = [this](const ActorId& peer) { return route_to(peer); },
            .controller = actor::narrow<messages::ExchangeNotices>(controller),
            .refuse = [this](const ActorId& peer, const std::string& why) { refuse(peer, why); },
            .epoch = epoch,
            .node_grace = options.node_grace,
            .bulk = places(1)};
  }
  // Where other hosts may join, the plan counts memory for versions that arrive (memory_plan.h).
  Hosts hosts() const { return link::is_loopback(options.bind) ? Hosts::kOne : Hosts::kSeveral; }
  // `former`: the port of a controller that died; 0: any.
  std::uint16_t port(int offset, std::uint16_t former = 0) const {
    return static_cast<std::uint16_t>(options.port == 0 ? former : options.port + offset);
  }
  // Processes of this host come by a Unix socket; other hosts by TCP, where there are keys.
  std::vector<link::Binding> places(int offset, std::uint16_t former = 0) {
    std::vector<link::Binding> places{{sockets.with([](auto& f) { return f->next(); }), {}}};
    link::Endpoint at{.host = options.bind, .port = port(offset, former)};
    if (offset > 0 && !options.ports.has(at.port)) at.port = 0;
    if (keys) places.push_back({std::move(at), keys, options.ports});
    return places;
  }
  void tell_people(const std::string& news) {
    if (controller.tell(controller::ProcessNews{news}) != actor::Delivery::kAccepted)
      log::error("event=news_lost message=\"{}\"", news);  // and no event says it
  }
  void keep_events(const std::string& job, const fs::path& run_dir) {
    if (options.cluster.of_run) runs.events.keep_in(job, run_dir);
  }
  // The steps of start(), in this order. Each may fail, and stop() cleans up after any of them.
  Result<void> claim_home();
  Result<void> take_up_jobs();
  Result<void> listen();
  Result<void> announce_address();
  Result<void> own_run(const std::string& job, const fs::path& run_dir);
  Result<controller::RunDirectory> new_run(const controller::JobShape& shape);
  Result<controller::RunDirectory> take_up(const controller::JobShape& shape);
  Result<actor::Ref<controller::ExchangeControl>> open_exchange(const controller::JobRecord& job);
  Result<controller::JobShape> shape_of(const api::SubmittedJob& submitted);
  controller::ControllerActions actions();
  api::ClusterIdentity identity();
  link::LinkCallbacks link_callbacks();
};

Result<void> ControllerProcess::Parts::claim_home() {
  if (auto made = make_private_directory(options.home); !made) {
    Error error = made.error();
    error.message = "the state folder: " + error.message;
    if (error.help.empty()) error.help = "set TANDEM_HOME to a folder that you can write";
    return error;
  }
  auto shared = shared_secret(cli::token_path(options.home));
  if (!shared) return shared.error();
  web.token = std::move(*shared);
  auto claimed = StateFolder::claim(options.cluster.path);
  if (!claimed) return claimed.error();
  state = *std::move(claimed);
  epoch = state->journal().epoch();
  for (const controller::JobTaken& job : state->remembered().jobs())
    keep_events(job.job, job.run_dir);
  if (options.cluster.of_run && hosts() == Hosts::kOne) return {};
  auto own_keys = link::controller_keys(options.home);
  if (!own_keys) return own_keys.error();
  keys = std::move(*own_keys);
  return {};
}

// Done before anybody can ask for the jobs: a job of the controller before is never missing.
Result<void> ControllerProcess::Parts::take_up_jobs() {
  if (!state->forgotten().empty())
    tell_people("not all that the controller before knew is taken up: " + state->forgotten() +
                "; `tandem get runs` lists runs, `tandem submit --resume RUN` goes on with one");
  // A controller that dies as it accepts a job may leave a directory that no job has.
  std::set<std::string> owned;
  for (const controller::JobTaken& job : state->remembered().jobs()) owned.insert(job.job);
  runs::remove_empty_runs(options.home / "runs", owned);
  const auto done = actor::ask_and_wait(
      controller, jobs_to_take_up(state->remembered(), hosts(), prompts, runs.predecessors),
      kTakeUpTimeout);
  if (!done) return done.error();
  return {};
}

link::LinkCallbacks ControllerProcess::Parts::link_callbacks() {
  link::LinkCallbacks callbacks;
  callbacks.on_up = [this](const ActorId& peer, const link::Hello& hello) {
    if (messages::is_node_peer(peer.name)) {
      auto agent = directory.remote<node::AgentInbox>({node::kAgentPort, {}}, route_to(peer));
      arrivals.agents.with([&](auto& table) {
        table[{messages::node_of_peer(peer.name), peer.incarnation}] = {
            std::move(agent), hello.remote ? 0 : hello.pid};
      });
      return;
    }
    forwarder.up(peer);
    arrivals.news->tell(controller::RankConnected{rank_of(peer, hello)});
  };
  callbacks.on_down = [this](const ActorId& peer, const link::Down& down) {
    if (messages::is_node_peer(peer.name)) {
      const std::string node = messages::node_of_peer(peer.name);
      arrivals.agents.with([&](auto& table) { table.erase({node, peer.incarnation}); });
      arrivals.news->tell(controller::NodeDown{node, peer.incarnation, has_died(down.reason)});
      return;
    }
    // A rank that has lost its link is of no use: its process is ended, unless it has ended
    // already.
    log::info("event=rank_link_down peer={} reason={}", to_string(peer), link::name(down.reason));
    arrivals.news->tell(controller::RankHung{rank_of(peer), 0});
  };
  callbacks.on_silence = [this](const ActorId& peer, bool silent) {
    if (messages::is_node_peer(peer.name))
      return arrivals.news->tell(
          controller::NodeSilent{messages::node_of_peer(peer.name), peer.incarnation, silent});
    log::info("event=rank_silent peer={} silent={}", to_string(peer), silent);
    arrivals.news->tell(controller::RankSilent{rank_of(peer), silent});
  };
  callbacks.on_parcel = [this](const ActorId& peer, std::string& frame) {
    if (!arrivals.news->all_told()) return link::Offer::kLater;
    if (const auto forwarded = forwarder.offer(peer, frame)) return *forwarded;
    return directory.deliver(frame, route_to(peer), peer);
  };
  // The roster is asked on the link's thread for each peer that dials: a rank that was not started
  // is refused.
  callbacks.admit = [this](const link::Hello& hello) {
    return roster.with([&](const auto& expected) { return expected.admit(hello); });
  };
  return callbacks;
}

api::ClusterIdentity ControllerProcess::Parts::identity() {
  return {.version = TANDEM_VERSION,
          .epoch = epoch.value,
          .pid = getpid(),
          .http = web.address.with([](const std::string& address) { return address; }),
          .started_ms = started_ms};
}

controller::ControllerActions ControllerProcess::Parts::actions() {
  controller::ControllerActions actions;
  actions.agent = [this](const std::string& node, Incarnation incarnation) {
    return arrivals.agents.with([&](const auto& table) {
      const auto it = table.find({node, incarnation});
      return it == table.end() ? actor::Ref<node::AgentInbox>() : it->second.inbox;
    });
  };
  actions.rank = [this](const node::RankId& id) {
    const ActorId peer{messages::rank_name(id.actor, id.rank), id.incarnation};
    return directory.remote<messages::RankInbox>({rank::kRankInboxPort, {}}, route_to(peer));
  };
  actions.program = [this](const node::RankId& id) {
    const ActorId peer{messages::rank_name(id.actor, id.rank), id.incarnation};
    return directory.remote<messages::ProgramInbox>({rank::kRankInboxPort, {}}, route_to(peer));
  };
  actions.cut_link = [this](const node::RankId& id) {
    refuse({messages::rank_name(id.actor, id.rank), id.incarnation}, "nobody can end its process");
  };
  actions.expect = [this](const std::string& node, const node::RankId& id) {
    roster.with([&](auto& expected) { expected.started(node, id); });
  };
  actions.rank_arguments = rank_arguments;
  actions.bulk_endpoints = [this](const std::string& job) {
    std::vector<std::string> endpoints;
    if (const auto served = runs.bulk.find(job); served != runs.bulk.end())
      for (const link::Endpoint& at : served->second) endpoints.push_back(to_string(at));
    return endpoints;
  };
  actions.make_run_directory = [this](const controller::JobShape& shape) {
    auto run = shape.resume_dir ? take_up(shape) : new_run(shape);
    if (run) keep_events(run->id, run->path);
    return run;
  };
  actions.write_result = [](const controller::JobRecord& job, const std::string& result) {
    return write_file_atomic(fs::path(job.run_dir) / controller::outcome_file(job), result + "\n");
  };
  actions.take_up_run = [](const controller::JobRecord& job) {
    return runs::take_up_run(job.run_dir, job.shape.yaml);
  };
  actions.open_exchange = [this](const controller::JobRecord& job) { return open_exchange(job); };
  actions.close_exchange = [this](const std::string& job) {
    runs.bulk.erase(job);
    roster.with([&](auto& expected) { expected.forget(job); });
    // The lock is held to the end of this function: the run is free once its last file is removed.
    const auto owned = runs.locks.extract(job);
    const auto held = runs.specs.extract(job);
    if (held.empty()) return;
    const auto& [run_dir, spec] = held.mapped();
    ExchangeHost::close(job, run_dir, *spec, deps());
  };
  // A run that has begun is locked now, as by take_up(). One that has not is locked when its
  // exchange opens.
  actions.own_run_directory = [this](const std::string& job, const controller::JobShape& shape) {
    return shape.resume_dir ? own_run(job, *shape.resume_dir) : Result<void>();
  };
  actions.remember = [this](std::span<const controller::DurableEvent> events) {
    return state->remember(events);
  };
  actions.journal = [this](const runs::ClusterEvent& event) {
    runs.events.append(event);
    return state->journal().append(event);
  };
  actions.rules = {.node_grace = options.node_grace,
                   .grows = options.cluster.grows(),
                   .plaintext_gang = options.plaintext_gang};
  actions.events_before = state->journal().events_before();
  return actions;
}

// Takes the lock of a run directory for as long as its job lasts.
Result<void> ControllerProcess::Parts::own_run(const std::string& job, const fs::path& run_dir) {
  auto taken = FileLock::take(
      run_dir / "run.lock", "the run in " + run_dir.string(),
      "wait until it is over, or end it first: tandem cancel " + job + ", or Ctrl-C where it runs");
  if (!taken) return by_command(taken.error(), options.home, run_dir);
  runs.locks.emplace(job, std::move(*taken));
  return {};
}

// The directory of a new run. It is locked when its exchange opens; a job of actors alone has none,
// and its run is locked here.
Result<controller::RunDirectory> ControllerProcess::Parts::new_run(
    const controller::JobShape& shape) {
  const auto made = runs::make_run_directory(options.home / "runs", shape.name, shape.yaml);
  if (!made) return made.error();
  prompts.accept(shape);
  controller::RunDirectory run{made->filename(), *made};
  if (trains(shape)) return run;
  if (const auto owned = own_run(run.id, run.path); !owned) return owned.error();
  return run;
}

// The run directory of a job that is resumed. If the lock is refused, nothing has been touched yet.
Result<controller::RunDirectory> ControllerProcess::Parts::take_up(
    const controller::JobShape& shape) {
  const fs::path path = *shape.resume_dir;
  const std::string id = path.filename();
  if (const auto owned = own_run(id, path); !owned) return owned.error();
  const auto rows = trains(shape) ? runs::RunJournal::last_row_of(path) : Result<std::int64_t>(0);
  if (!rows) runs.locks.erase(id);
  if (!rows) return rows.error();
  prompts.accept(shape);
  return controller::RunDirectory{id, path, runs::last_event_of(options.home, path), *rows};
}

// Opens the exchange of a job. A new run is locked here, before it has a journal and so before
// another process could resume it; a resumed one has been locked by take_up().
Result<actor::Ref<controller::ExchangeControl>> ControllerProcess::Parts::open_exchange(
    const controller::JobRecord& job) {
  CHECK(job.shape.spec);
  const TurnWatch::Reading reading;
  if (!job.shape.resume_dir)
    if (const auto owned = own_run(job.id, job.run_dir); !owned) return owned.error();
  auto prompts_of_job = prompts.take(job.shape);
  if (!prompts_of_job) {
    auto read = read_prompts(*job.shape.spec, job::tell_by([&job](const std::string& notice) {
      log::info("event=reading_data job={} progress=\"{}\"", job.id, notice);
    }));
    if (!read) return read.error();
    prompts_of_job = *std::move(read);
  }
  std::optional<exchange::Predecessor> before;
  if (auto known = runs.predecessors.extract(job.id); !known.empty() && job.follows)
    before = std::move(known.mapped());
  auto opened = ExchangeHost::open(job, *job.shape.spec, *std::move(prompts_of_job), deps(),
                                   std::move(before));
  if (!opened) return opened.error();
  runs.bulk[job.id] = opened->bulk;
  runs.specs.emplace(job.id, std::pair(job.run_dir, job.shape.spec));
  return opened->exchange;
}

// The shape of a job that was submitted by HTTP.
Result<controller::JobShape> ControllerProcess::Parts::shape_of(
    const api::SubmittedJob& submitted) {
  auto known =
      expected_job.with([&](std::optional<ExpectedJob>& job) -> std::optional<ExpectedJob> {
        if (!job || job->yaml != submitted.yaml || job->resume != submitted.resume) return {};
        return std::exchange(job, std::nullopt);
      });
  if (known) {
    if (known->prompts) prompts.keep(*std::move(known->prompts), known->shape);
    return std::move(known->shape);
  }
  const auto turn = prompts.turn_to_read();
  return submitted_shape(submitted, options.home / "runs", hosts(), prompts,
                         turn ? KeepPrompts::kYes : KeepPrompts::kNo, options.pricing);
}

Result<void> ControllerProcess::Parts::listen() {
  const StateFolder::Former former = state->former();
  auto folder = link::SocketFolder::make(options.home, folder_of(former.control_socket));
  if (!folder) return folder.error();
  sockets.with([&](auto& mine) { mine.emplace(std::move(*folder)); });
  // The ports are exposed before the link listens: a peer's first message must find its port.
  controller = system.spawn<Controller>("controller", [this, remembered = state->remembered()] {
    return std::make_unique<Controller>(epoch.value, actions(), remembered);
  });
  arrivals.news.emplace(controller);
  directory.expose(rank::kControllerRanksPort, actor::narrow<messages::RankEvents>(controller),
                   doors::rank_door());
  directory.expose(node::kAgentEventsPort, actor::narrow<node::AgentEvents>(controller),
                   doors::agent_door([this](const node::RankId& id) {
                     return roster.with([&](const auto& known) { return known.node_of(id); });
                   }));
  web.nonce = former.nonce.empty() ? random_secret() : former.nonce;
  const auto listen_at = [this](std::uint16_t former_port) {
    return link::LinkServer::listen(io, places(0, former_port),
                                    {.name = "controller",
                                     .incarnation = Incarnation{epoch.value},
                                     .build = messages::wire_build(),
                                     .program = own_build()},
                                    {.remote_grace = options.node_grace}, link_callbacks());
  };
  auto server = listen_at(former.control);
  if (!server && former.control != 0) server = listen_at(0);
  if (!server) return server.error();
  link = std::move(*server);
  if (const auto done = take_up_jobs(); !done) return done.error();
  const auto watchdog = system.spawn<controller::Watchdog>("watchdog", [this] {
    const auto peers = [this] {
      (void)arrivals.news->all_told();
      return link->peers();
    };
    return std::make_unique<controller::Watchdog>(peers, controller);
  });
  api::HttpApi api{
      .controller = controller,
      .shape_of = [this](const api::SubmittedJob& submitted) { return shape_of(submitted); },
      .home = options.home,
      .read_job = job_readers(),
      .identity = [this] { return identity(); },
      .make_page_key = [this] { return web.auth->make_page_key(steady_now()); },
      .system = system,
      .watchdog = watchdog,
      .disk = api::disk_look(options.home)};
  api.alerts = api::watch_alerts(system, controller, api.disk);
  web.auth = std::make_unique<api::HttpAuth>(
      api::HttpAuthRules{.token = web.token,
                         .nonce = web.nonce,
                         .hosts = options.allow_hosts,
                         .metrics_without_token = options.metrics_without_token});
  auto served = serve_http(api::make_http_handler(api), *web.auth,
                           {.port = port(2, former.http),
                            .any_else = options.port == 0,
                            .bind = options.bind,
                            .health_port = options.health_port});
  if (!served) return served.error();
  web.places = *std::move(served);
  web.address.with([this](std::string& at) { at = to_string(web.places.users->endpoint()); });
  // From here on nodes come: a start that fails says no good-bye to them, which would end them.
  link->start();
  CHECK(watchdog.tell(controller::WatchNow{}) == actor::Delivery::kAccepted);
  const auto keeper = system.spawn<SocketKeeper>(
      "sockets", [this] { return std::make_unique<SocketKeeper>(sockets, controller); });
  CHECK(keeper.tell(KeepNow{}) == actor::Delivery::kAccepted);
  keep_memory(system);
  return {};
}

Result<void> ControllerProcess::Parts::announce_address() {
  return state->announce({{"pid", getpid()},
                          {"epoch", epoch.value},
                          {"control_socket", to_string(link->endpoints().front())},
                          {"control", to_string(link->endpoints().back())},
                          {"http", to_string(web.places.users->endpoint())},
                          {"arguments", options.words},
                          {"nonce", web.nonce}});
}

ControllerProcess::ControllerProcess(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ControllerProcess::~ControllerProcess() { stop(); }

Result<std::unique_ptr<ControllerProcess>> ControllerProcess::start(ControllerOptions options) {
  auto parts = std::make_unique<Parts>(std::move(options));
  auto process = std::unique_ptr<ControllerProcess>(new ControllerProcess(std::move(parts)));
  // Removes shared memory of learners that were killed, before new jobs need the room.
  if (const int left = weights::reclaim_stale_weights(""); left > 0)
    log::info("event=stale_weights_removed segments={}", left);
  if (auto done = process->parts_->claim_home(); !done) return done.error();
  if (auto done = process->parts_->listen(); !done) return done.error();
  if (auto done = process->parts_->announce_address(); !done) return done.error();
  return process;
}

const std::vector<link::Endpoint>& ControllerProcess::control() const {
  return parts_->link->endpoints();
}
link::Endpoint ControllerProcess::http() const { return parts_->web.places.users->endpoint(); }
std::string ControllerProcess::page_address() const {
  return "http://" + to_string(http()) + "/?key=" + parts_->web.auth->make_page_key(steady_now());
}
const actor::Ref<Controller::Inbox>& ControllerProcess::controller() const {
  return parts_->controller;
}

bool ControllerProcess::has_agent(pid_t pid) const {
  return parts_->arrivals.agents.with([&](const auto& table) {
    return std::ranges::any_of(table, [&](const auto& entry) { return entry.second.pid == pid; });
  });
}

void ControllerProcess::agent_ended(pid_t pid) {
  std::optional<Parts::AgentId> ended;
  parts_->arrivals.agents.with([&](auto& table) {
    const auto found =
        std::ranges::find_if(table, [&](const auto& entry) { return entry.second.pid == pid; });
    if (found == table.end()) return;
    ended = found->first;
    table.erase(found);
  });
  if (ended)
    parts_->arrivals.news->tell(controller::NodeDown{ended->first, ended->second, /*died=*/true});
}

void ControllerProcess::end_if_hung() { parts_->threads.watch.end_if_hung("controller"); }

void ControllerProcess::stop() {
  if (std::exchange(parts_->stopped, true)) return;
  parts_->web.places = {};
  if (parts_->link) parts_->link->close(std::chrono::milliseconds(500));
  parts_->threads.executor.stop();
  weights::reclaim_stale_weights("");  // removes weights of jobs that were ended by force
  parts_->state.reset();               // another controller may have the folder now
}

}  // namespace tandem::app
