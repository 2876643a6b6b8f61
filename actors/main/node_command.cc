// A node's life is that of its agent and ranks: serve() makes them with their threads and sockets,
// and nothing of one life is left for the next. Links of one life may go to several controllers,
// one after the other.
#include "actors/main/node_command.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "actors/cli/api_client.h"
#include "actors/cli/arguments.h"
#include "actors/cli/shared_options.h"
#include "actors/main/background.h"
#include "actors/main/controller_keeper.h"
#include "actors/main/node_keeper.h"
#include "actors/main/node_watch.h"
#include "actors/main/own_build.h"
#include "actors/main/this_node.h"
#include "actors/main/told.h"
#include "actors/main/turn_watch.h"
#include "actors/messages/roles.h"
#include "actors/messages/wire_build.h"
#include "actors/rank/rank_session.h"
#include "runtime/actor/system.h"
#include "runtime/base/file.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/node/agent.h"
#include "runtime/node/log_rotation.h"
#include "runtime/node/owner.h"
#include "runtime/node/resources.h"
#include "runtime/node/signals.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {
namespace {

// How long a link may take. A controller that is started again has another Unix socket: its file is
// read again soon. Over a network a look-up of its name or a lost packet may take its time.
constexpr Duration kLocalLinkPatience = std::chrono::seconds(2);
constexpr Duration kRemoteLinkPatience = std::chrono::seconds(20);
// A controller whose process lives and that takes no link for so long hangs.
constexpr Duration kHungAfter = std::chrono::seconds(5);
constexpr Duration kLookAtLink = std::chrono::milliseconds(50);
constexpr Duration kLookForController = std::chrono::milliseconds(500);
// How long a node waits for the controller that it joins, whose host reads the job's data before.
constexpr Duration kControllerWithin = std::chrono::hours(1);
// The exit code for kEmptied, 128 + SIGTERM: an engine gives another host for it.
constexpr int kEmptiedCode = 143;

// The controller that a node dials: --controller with the keys of this state folder, else the
// address in the controller's file. A Unix socket needs no keys.
Result<link::Dial> dial_controller(const NodeCommand& command) {
  std::string text;
  if (command.controller) {
    text = *command.controller;
  } else {
    const auto file = read_controller_file(command.cluster().path);
    if (!file) return file.error();
    text = command.joined ? file->control : file->control_socket;
  }
  auto endpoint = link::parse_endpoint(text);
  if (!endpoint) return endpoint.error();
  if (endpoint->is_local()) return link::Dial{std::move(*endpoint), std::nullopt};
  auto keys = link::node_keys(cli::tandem_home());
  if (!keys) return keys.error();
  return link::Dial{link::in_known_family(std::move(*endpoint)), std::move(*keys)};
}

// The address at which the controller of this host listens for nodes of other hosts; empty if it
// listens on loopback only.
std::string controller_address(const NodeCommand& command) {
  const auto file = read_controller_file(command.cluster().path);
  const auto at = link::parse_endpoint(file ? file->control : "");
  return at && !at->is_local() && !link::is_loopback(at->host) ? at->host : "";
}

// The address at which the ranks of a node may listen for other hosts; empty where no processes of
// other hosts come.
Result<std::string> listening_address(const NodeCommand& command, const link::Dial& controller) {
  if (command.bind && link::is_any(*command.bind) && !command.advertise)
    return Error{ErrorCode::kInvalid, "`--bind " + *command.bind + "` needs --advertise", "",
                 "the address by which other hosts reach this one"};
  if (command.bind) return *command.bind;
  if (controller.to.is_local()) {
    const std::string address = controller_address(command);
    if (!link::is_any(address)) return address;
    // The controller takes all addresses, so that none of them can be told to other hosts.
    log::warn("event=no_address_for_other_hosts help=\"name this machine's with --bind\"");
    return std::string();
  }
  return link::local_address_towards(controller.to);
}

// An incarnation that is greater than any earlier one of this machine and that no other process
// has: milliseconds, then the pid, which has 22 bits at most.
Incarnation node_incarnation() {
  constexpr int kPidBits = 22;
  return {static_cast<std::uint64_t>(unix_ms()) << kPidBits | static_cast<std::uint64_t>(getpid())};
}

Error node_refused(const std::string& node, const node::NodeRefused& refused) {
  return {ErrorCode::kFailed,
          "node " + node + " is up already: its agent is pid " + std::to_string(refused.pid), "",
          "`tandem get nodes` shows it; a second one on this machine needs --name"};
}

// The options lack the node, its address and the end for a refusal, which run_node() adds.
node::AgentConfig agent_config(const NodeCommand& command, const link::Dial& controller) {
  return {.program = own_program().string(),
          .controller = to_string(controller.to),
          .advertise = command.advertise.value_or(""),
          .ports = to_string(command.ports),
          .secret = controller.keys ? to_text(*controller.keys) : "",
          .usage_interval = node::kUsageInterval};
}

// How a life of the node ended.
struct Served {
  enum class End {
    kSignal,   // of a user
    kGoodbye,  // the controller ended, or does not want this node
    kLost,     // the controller cannot be reached, and takes this node for lost
    kNoLink,   // no link came about
    kFailed,   // the node cannot go on
    kEmptied,  // by SIGTERM, while the run that it has joined goes on
  };
  End end = End::kSignal;
  std::optional<Error> why = {};  // of kGoodbye where it was refused, and of kFailed
};

// What the end of a link means for the ranks.
enum class AfterLink {
  kKeep,  // the controller has died or hangs: the next one takes them up
  kEnd,   // the network was cut for too long: the controller places their actors elsewhere
  kStop,  // it wants this node no more
};
AfterLink after(link::Down::Reason reason, bool same_host) {
  switch (reason) {
    case link::Down::Reason::kDisconnected:
    case link::Down::Reason::kSuperseded:
      return AfterLink::kKeep;
    case link::Down::Reason::kSilent:
      return same_host ? AfterLink::kKeep : AfterLink::kEnd;
    case link::Down::Reason::kClosed:
    case link::Down::Reason::kFenced:
    case link::Down::Reason::kRefused:
      break;
  }
  return AfterLink::kStop;
}

// A controller that ends in order removes its file; one that dies, or is starting, has one.
bool controller_left_its_file(const NodeCommand& command) {
  std::error_code ignored;
  return std::filesystem::exists(command.cluster().path / "controller.json", ignored);
}

// What the node's main thread looks after as long as it runs.
struct Duties {
  node::Signals signals;
  node::Pulse pulse;  // for the process that watches this one
  node::OwnLog log = {};
};

// Looks after a controller to which there is no link. Used by the node's main thread.
class Absence {
 public:
  Absence(const NodeCommand& command, ControllerKeeper* keeper, node::Signals& signals)
      : command_(command), keeper_(keeper), signals_(signals) {}

  // There is no link since now, and there was one, to a controller that has told this grace.
  void begins(Duration grace) {
    was_up_ = true;
    grace_ = grace;
    since_ = steady_now();
  }
  // Starts the controller again if this node keeps it and it has died or hangs. Returns how the
  // node ends; nothing: it is to go on dialling.
  std::optional<Served> look() {
    if (was_up_ && !command_.controller && !controller_left_its_file(command_)) {
      log::info("event=controller_ended");  // and its good-bye did not come
      return Served{Served::End::kGoodbye};
    }
    const Duration absent = steady_now() - since_;
    if (keeper_ && (keeper_->has_ended() || absent > kHungAfter)) {
      const auto back = keeper_->bring_back(signals_);
      if (!back) return Served{Served::End::kFailed, back.error()};
      if (!*back) return Served{Served::End::kSignal};
      since_ = steady_now();
    } else if (was_up_ && absent > grace_) {
      return Served{Served::End::kFailed,
                    Error{ErrorCode::kUnreachable,
                          "the controller has not come back within " +
                              std::to_string(grace_ / std::chrono::seconds(1)) + " s",
                          command_.controller.value_or(command_.cluster().path.string()),
                          "start this node again once it runs"}};
    }
    return std::nullopt;
  }
  bool was_up() const { return was_up_; }
  // Its process is seen to end sooner than its link.
  bool controller_ended() const { return keeper_ && keeper_->has_ended(); }

 private:
  const NodeCommand& command_;
  ControllerKeeper* const keeper_;  // null: another keeps it, or nobody
  node::Signals& signals_;
  bool was_up_ = false;  // there has been a link
  Duration grace_{};
  Time since_ = steady_now();  // no link since then, while there is none
};

// The link of a node's life, as its callbacks leave it for the main thread.
struct LinkState {
  bool up = false, was_up = false;
  std::uint64_t losses = 0;
  Duration grace = node::kNodeGraceDefault;  // of the newest controller
  std::optional<Served> served;
};

// The controller that is up, or has died, listens elsewhere than this node dials.
bool has_moved(const NodeCommand& command, const link::Dial& dialled) {
  if (command.controller) return false;
  const auto file = read_controller_file(command.cluster().path);
  return file && (command.joined ? file->control : file->control_socket) != to_string(dialled.to);
}

// Looks at the link, and while there is none at the controller, until the node's life ends.
Served watch(Guarded<LinkState>& state, const NodeCommand& command, const link::Dial& controller,
             Told told, Duties& duties, Absence& absence, TurnWatch& turns) {
  const Time give_up =
      steady_now() + (controller.to.is_local() ? kLocalLinkPatience : kRemoteLinkPatience);
  std::uint64_t losses = 0;
  for (;;) {
    duties.pulse.beat();
    turns.end_if_hung("node");
    const int signal = duties.signals.wait_for(kLookAtLink);
    duties.log.look();
    const LinkState now = state.with([](const LinkState& s) { return s; });
    // A node that has ended its ranks has no haste.
    if (std::exchange(losses, now.losses) != now.losses)
      absence.begins(now.served ? std::max(now.grace, node::kNodeGraceDefault) : now.grace);
    if (now.served) return *now.served;
    if (const auto end = told.end(signal, now.up); end != Told::End::kNo)
      return {end == Told::End::kGiven ? Served::End::kEmptied : Served::End::kSignal};
    if (now.up && !absence.controller_ended()) continue;
    if (!now.was_up) {
      if (steady_now() >= give_up) return {Served::End::kNoLink};
      continue;
    }
    if (auto end = absence.look()) return *std::move(end);
    if (has_moved(command, controller)) return {Served::End::kLost};
  }
}

// The link is down. Returns how the node's life ends with it, if it does.
std::optional<Served> note_loss(Guarded<LinkState>& state, link::Down::Reason reason,
                                bool same_host) {
  const AfterLink then = after(reason, same_host);
  if (then == AfterLink::kStop)
    log::info("event=controller_left reason={}", link::name(reason));
  else
    log::warn(
        "event=controller_lost reason={} consequence=\"{}\"", link::name(reason),
        then == AfterLink::kKeep ? "the ranks work on, and it is looked for" : "the ranks end");
  state.with([](LinkState& s) {
    s.up = false;
    ++s.losses;
  });
  if (then == AfterLink::kEnd) return Served{Served::End::kLost};
  if (then == AfterLink::kStop) return Served{Served::End::kGoodbye};
  return std::nullopt;
}

using EndLife = std::function<void(Served)>;

// Adds what follows where the agent is refused, or has no rank any more.
void add_ends(node::AgentConfig& config, const EndLife& end) {
  config.on_refused = [end, node = config.node.node](const node::NodeRefused& refused) {
    end({Served::End::kGoodbye, node_refused(node, refused)});
  };
  config.on_empty = [end] {
    log::info("event=node_empty consequence=\"it ends, as it was told\"");
    end({Served::End::kEmptied});
  };
}

// Serves controllers until the node's life ends.
Served serve(node::AgentConfig config, const NodeCommand& command, const link::Dial& controller,
             Duties& duties, Absence& absence) {
  Guarded<LinkState> state;
  const EndLife end = [&](Served how) {
    state.with([&](LinkState& s) {
      if (!s.served) s.served = std::move(how);
    });
  };
  node::PosixProcessHost processes;
  link::Directory directory;
  link::IoThread io("link");
  WatchedExecutor threads(1, config.node.incarnation.value);
  actor::System system(threads.executor,
                       [&](const ActorId&, const Error&) { end({Served::End::kGoodbye}); });
  // The link's callbacks send through the link, so that it is made after them; nothing is sent
  // before start(), by when the pointer is set.
  link::LinkClient* link_pointer = nullptr;
  const link::ParcelSender to_controller = [&](std::string frame) {
    return link_pointer->send(std::move(frame));
  };
  add_ends(config, end);
  actor::Ref<node::Agent::Inbox> agent;  // set with the first link
  link::LinkCallbacks callbacks;
  callbacks.on_parcel = [&](const ActorId&, std::string& frame) {
    return directory.deliver(frame, to_controller);
  };
  // The agent introduces its node with each link.
  callbacks.on_up = [&](const ActorId&, const link::Hello& hello) {
    if (!state.with([](const LinkState& s) { return s.was_up; })) {
      agent = system.spawn<node::Agent>("agent", [&] {
        return std::make_unique<node::Agent>(
            config, processes,
            directory.remote<node::AgentEvents>({node::kAgentEventsPort, {}}, to_controller));
      });
      directory.expose(node::kAgentPort, actor::narrow<node::AgentInbox>(agent));
    }
    // The main thread uses the agent from here on.
    state.with([&](LinkState& s) {
      s.up = s.was_up = true;
      s.grace = rank::alone_max(hello);
    });
    if (agent.tell(node::LinkCameUp{rank::alone_max(hello)}) != actor::Delivery::kAccepted)
      end({Served::End::kLost});  // its mailbox is full: nothing else makes it introduce the node
  };
  callbacks.on_silence = [](const ActorId&, bool silent) {
    log::warn("event={}", silent ? "controller_silent consequence=\"the ranks work on\""
                                 : "controller_heard_again");
  };
  callbacks.on_down = [&](const ActorId&, const link::Down& down) {
    if (down.reason == link::Down::Reason::kRefused) end({Served::End::kGoodbye, down.error});
    if (const auto ended = note_loss(state, down.reason, controller.to.is_local())) end(*ended);
  };
  link::LinkClient link(io, controller,
                        {.name = messages::node_peer(config.node.node, getpid()),
                         .incarnation = config.node.incarnation,
                         .build = messages::wire_build(),
                         .program = own_build()},
                        {}, callbacks);
  link_pointer = &link;
  link.start();
  Told told(command.joins_run(),
            [&] { return agent.tell(node::HostEnds{}) == actor::Delivery::kAccepted; });
  Served served =
      watch(state, command, controller, std::move(told), duties, absence, threads.watch);
  duties.pulse.rest();
  link.close(std::chrono::milliseconds(200));
  threads.executor.stop();
  return served;
}

// One life of the node: a new incarnation, which dials, serves and ends its ranks. Errors: what the
// command asks for cannot be had, or there is no controller to dial.
Result<Served> live(const NodeCommand& command, Duties& duties, Absence& absence) {
  auto machine = offered_node(node_incarnation(),
                              {.cpus = command.cpus, .memory_bytes = command.memory_bytes});
  if (!machine) return machine.error();
  if (command.name) machine->node = *command.name;
  const auto controller = dial_controller(command);
  if (!controller) return controller.error();
  const auto bind = listening_address(command, *controller);
  if (!bind) return bind.error();
  // Removes shared memory that learners of earlier jobs left on this host.
  weights::reclaim_stale_weights("");
  node::AgentConfig config = agent_config(command, *controller);
  auto kept = node::KeptRankFiles::open(node_folders(command.cluster().path) / machine->node);
  if (kept) {
    config.kept = &*kept;
    // The memory that ranks of an agent before hold is not free, and theirs to have.
    for (const node::KeptRank& rank : kept->found())
      if (node::birth_of(rank.pid) == rank.born)
        machine->memory_bytes +=
            static_cast<std::int64_t>(node::resident_bytes(rank.pid).value_or(0));
    if (command.memory_bytes)
      machine->memory_bytes = std::min(machine->memory_bytes, *command.memory_bytes);
  } else {  // its ranks end with its process
    log::warn("event=ranks_not_kept message=\"{}\" where=\"{}\"", kept.error().message,
              kept.error().where);
  }
  config.node = *std::move(machine);
  config.bind = *bind;
  Served served = serve(std::move(config), command, *controller, duties, absence);
  weights::reclaim_stale_weights("");
  return served;
}

// The ranks of a `tandem run` end with that command too, should this node have died before.
void tell_ranks_of_owner(const ClusterFolder& cluster, bool together) {
  together ? ::setenv(kTogetherVariable, "1", 1) : ::unsetenv(kTogetherVariable);
  if (cluster.of_run)
    ::setenv(node::kOwnerVariable, cluster.owner_lock().c_str(), 1);
  else
    ::unsetenv(node::kOwnerVariable);  // that of a `tandem run` whose job has started this node
}

// Removes the state folder of a `tandem run` that was killed, once nobody uses it.
void remove_after_owner(const ClusterFolder& cluster) {
  if (!cluster.of_run || !node::Owner(cluster.owner_lock()).has_ended()) return;
  if (const auto pid = controller_process(cluster.path))
    node::ProcessEnd(*pid).wait_until(steady_now() + kEndTimeout);
  std::error_code ignored;  // the next `tandem run` removes what is left
  std::filesystem::remove_all(cluster.path, ignored);
}

// Of a node that a signal has ended before its run was over, if it has one.
int code_of(const NodeCommand& command, int signal) {
  return command.joins_run() && signal == SIGTERM ? kEmptiedCode : 0;
}

Error none_came(const std::string& where) {
  return {ErrorCode::kTimedOut, "no controller has come up there", where,
          "does the `tandem run --cluster` run, and is this its address or folder?"};
}

// The lives of the node, one after the other. Returns the exit code.
int live_on(const NodeCommand& command, const cli::Console& console, bool verbose, Duties& duties) {
  const ClusterFolder cluster = command.cluster();
  std::optional<ControllerKeeper> keeper;
  if (command.keep_controller) {
    auto taken = ControllerKeeper::take(cluster);
    if (!taken) return console.complain(taken.error());
    keeper.emplace(*std::move(taken));
  }
  std::optional<NodeFile> file;  // not before the lock is taken
  if (keeper) {
    std::vector<std::string> again = node_words(command);
    if (verbose) again.emplace_back("-v");
    auto written = NodeFile::write(cluster.path, again);
    if (!written) return console.complain(written.error());
    file.emplace(*std::move(written));
  }
  Absence absence(command, keeper ? &*keeper : nullptr, duties.signals);
  for (const Time late = steady_now() + kControllerWithin;;) {
    const auto served = live(command, duties, absence);
    if ((!served || served->end == Served::End::kNoLink) && !absence.was_up()) {
      const bool may_come = served || served.error().code == ErrorCode::kUnreachable;
      const bool awaited = command.join && may_come && steady_now() < late;
      if (!served && !awaited) return console.complain(served.error());
      if (served && command.join && !awaited)
        return console.complain(none_came(*command.controller));
    }
    std::optional<Served> end;
    if (served && served->end != Served::End::kLost && served->end != Served::End::kNoLink)
      end = *served;
    if (!end) end = absence.look();
    if (end && end->end == Served::End::kEmptied) return code_of(command, SIGTERM);
    if (end) return end->why ? console.complain(*end->why) : 0;
    if (served) continue;
    if (const int signal = duties.signals.wait_for(kLookForController); signal != 0)
      return code_of(command, signal);
  }
}

// Waits until the controller of the folder `joined` has written where it listens. Returns the
// signal that came first, else 0.
Result<int> await_controller(const std::filesystem::path& joined, node::Signals& signals) {
  for (const Time late = steady_now() + kControllerWithin; steady_now() < late;) {
    const auto file = read_controller_file(joined);
    const auto at = link::parse_endpoint(file ? file->control : "");
    if (at && !at->is_local()) return 0;
    if (const int signal = signals.wait_for(kLookForController); signal != 0) return signal;
  }
  return none_came(joined.string());
}

int run_node(const NodeCommand& command, const cli::Console& console, bool verbose,
             node::Pulse pulse) {
  // A node says no word: `up` hears only the end of its socket.
  const auto words = node::DaemonWords::inherited();
  const ClusterFolder cluster = command.cluster();
  tell_ranks_of_owner(cluster, command.joins_run() || cluster.is_joinable());
  Duties duties{.signals = node::Signals(cluster.choose_end_signals()), .pulse = std::move(pulse)};
  init_logging("node/" + command.name.value_or(node::hostname()), log_level(verbose, cluster));
  duties.log = node::OwnLog::inherited();
  std::optional<node::OwnerWatch> owner;
  if (cluster.of_run)
    owner.emplace(node::Owner(cluster.owner_lock()), [&duties] { duties.signals.raise(); });
  if (command.joined) {
    const auto signal = await_controller(*command.joined, duties.signals);
    if (!signal) return console.complain(signal.error());
    if (*signal != 0) return code_of(command, *signal);
  }
  const int code = live_on(command, console, verbose, duties);
  remove_after_owner(cluster);
  return code;
}

}  // namespace

ClusterFolder NodeCommand::cluster() const {
  if (joined) return {.path = std::filesystem::absolute(*joined)};
  return ClusterFolder::chosen(of_run);
}

std::vector<std::string> node_words(const NodeCommand& command) {
  std::vector<std::string> words{kNodeRole};
  const auto add = [&words](const char* option, const std::optional<std::string>& value) {
    if (value) words.insert(words.end(), {option, *value});
  };
  add("--controller", command.controller);
  add("--name", command.name);
  add("--bind", command.bind);
  add("--advertise", command.advertise);
  if (!command.ports.is_any()) add("--ports", to_string(command.ports));
  if (command.cpus) add("--cpus", dump_json(*command.cpus));
  if (command.memory_bytes) add("--memory", std::to_string(*command.memory_bytes));
  if (command.keep_controller) words.emplace_back("--keep-controller");
  if (command.of_run) words.insert(words.end(), {kOfRunOption, command.of_run->string()});
  return words;
}

cli::VerbHelp NodeCommand::help() {
  return {.name = "node",
          .group = cli::VerbGroup::kCluster,
          .description = "The agent of this machine, in the foreground",
          .examples = {"tandem node", "tandem node --cpus 2 --memory 8GiB",
                       "tandem node --controller 10.0.0.1:7420",
                       "torchrun --nnodes 4 --nproc-per-node 1 --no-python tandem node --job "
                       "job.yaml"}};
}

void NodeCommand::options(cli::Options& options) {
  options.add("--name", name, "Its name; else the host's").value("NAME");
  options
      .add("--controller", controller,
           "Where the controller listens for nodes, its --port; else from the file that it wrote")
      .value("HOST:PORT");
  options
      .add("--bind", bind,
           "The address of this machine at which its actors serve weights to other hosts and "
           "the learner's ranks meet; else the one from which it reaches --controller")
      .value("ADDRESS")
      .refuse_by(cli::not_an_address);
  options
      .add("--advertise", advertise, "How other hosts reach --bind, where they use another address")
      .value("ADDRESS")
      .refuse_by(cli::not_a_host);
  add_ports(options, ports);
  options.add("--cpus", cpus, "CPUs it offers; else those this process may use")
      .value("N")
      .between(0.01, 65536.0);
  add_memory(options, memory_bytes);
  options.flag("--keep-controller", keep_controller,
               "Start the controller of TANDEM_HOME again when it has died, as the node of "
               "`tandem up` does");
  options
      .add("--cluster", joined,
           "Join the cluster of a `tandem run --cluster` on another host: its folder, which both "
           "hosts see")
      .value("DIR");
  add_of_run(options, of_run);
  options.flag("--join", join,
               "The controller is that of a `tandem run --cluster`: wait for it, and end with it");
  add_rank_job(options, ranks);
  options.check([this]() -> Result<void> {
    if (joined && (controller || keep_controller || join))
      return Error{ErrorCode::kInvalid, "--cluster says where the controller is", "",
                   "leave --controller, --join and --keep-controller out"};
    if (join && !controller)
      return Error{ErrorCode::kInvalid, "--join is for --controller", "",
                   "name the address, or the folder with --cluster"};
    if (!keep_controller || !controller) return {};
    return Error{ErrorCode::kInvalid, "--keep-controller is for the controller of TANDEM_HOME", "",
                 "leave --controller out"};
  });
}

Result<int> NodeCommand::run(const cli::VerbContext& context) {
  const bool named = controller || joined || keep_controller || of_run;
  const auto turn =
      take_rank(ranks, {named, name, bind, cpus, memory_bytes, ports}, context.console);
  if (!turn) return turn.error();
  if (turn->code) return *turn->code;
  if (turn->join) controller = turn->join;
  join = join || turn->join;
  const auto run = [&](node::Pulse pulse) {
    return run_node(*this, context.console, context.verbose, std::move(pulse));
  };
  // The controller that it keeps watches it (node_keeper.h).
  return keep_controller ? run({}) : watch_node(run, context.console);
}

}  // namespace tandem::app
