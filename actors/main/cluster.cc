// The four verbs around a cluster in the background.
//
// A controller is found by TANDEM_HOME/controller.json, and is alive only while controller.lock is
// held: a killed controller leaves its file, with a pid and a port that other processes may have by
// now. The background processes are not children that `up` could wait for later. They say words,
// one byte each, on an inherited socket (runtime/node/daemon.h): the first when the controller
// listens, the second when a node is ready. `down` waits for the ends of pids, of the controller
// and of the nodes on this host.
//
// `down` sends SIGTERM to the controller alone. The controller cancels its jobs, which save a
// checkpoint first, then closes its links, and each agent ends with its link and takes its ranks
// with it.
#include "actors/main/cluster.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/cli/api_object.h"
#include "actors/job/resume.h"
#include "actors/main/controller_process.h"
#include "actors/main/rank_process.h"
#include "actors/main/this_node.h"
#include "actors/messages/wire_build.h"
#include "actors/runs/run_files.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/node/agent.h"
#include "runtime/node/daemon.h"
#include "runtime/node/signals.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

// How long `up` waits for each word, and a cancelled job's request for its answer.
constexpr Duration kUpTimeout = std::chrono::seconds(10);
constexpr Duration kCancelTimeout = std::chrono::seconds(10);
// The end of all jobs: a cancelled job may save for kSaveOnCancelMax before it ends.
constexpr Duration kJobsEndTimeout = messages::kSaveOnCancelMax + std::chrono::seconds(10);
constexpr Duration kDownTimeout = kJobsEndTimeout + std::chrono::seconds(10);
// How often `up` looks at the nodes where no line of the watch stream makes it look.
constexpr Duration kLookAgain = std::chrono::milliseconds(500);
// After so long `down` tells the user why it waits.
constexpr Duration kDownAtOnce = std::chrono::seconds(2);
constexpr const char* kNodeRole = "node";  // the first argument of a node's process

LogLevel level(bool verbose) { return verbose ? LogLevel::kDebug : LogLevel::kInfo; }

Result<nlohmann::json> read_address_file() {
  const fs::path path = cli::tandem_home() / "controller.json";
  const auto text = read_file(path);
  nlohmann::json content = text ? parse_json(*text) : nlohmann::json();
  if (!content.is_object() || !content.contains("pid"))
    return Error{ErrorCode::kUnreachable, "no controller runs", path.string(),
                 "start one with `tandem up`"};
  return content;
}

// The address file of the controller that runs in this state folder; nullopt if none does. The lock
// decides: the file alone may be a killed controller's.
std::optional<nlohmann::json> running_controller() {
  auto address = read_address_file();
  if (!address) return std::nullopt;
  if (!FileLock::held(cli::tandem_home() / "controller.lock")) return std::nullopt;
  return std::move(*address);
}

// The controller that a node dials: --controller with the keys of this state folder, else the
// address in the controller's file. A Unix socket needs no keys.
Result<link::Dial> dial_controller(const NodeCommand& command) {
  std::string text;
  if (command.controller) {
    text = *command.controller;
  } else {
    const auto address = read_address_file();
    if (!address) return address.error();
    text = address->value("control_socket", "");
  }
  auto endpoint = link::parse_endpoint(text);
  if (!endpoint) return endpoint.error();
  if (endpoint->is_local()) return link::Dial{std::move(*endpoint), std::nullopt};
  auto keys = link::node_keys(cli::tandem_home());
  if (!keys) return keys.error();
  return link::Dial{std::move(*endpoint), std::move(*keys)};
}

// The address at which the controller of this host listens for nodes of other hosts; empty if it
// listens on loopback only.
std::string controller_address() {
  const auto file = read_address_file();
  const auto at = link::parse_endpoint(file ? file->value("control", "") : "");
  return at && !at->is_local() && at->host != link::kLoopback ? at->host : "";
}

// The address at which the ranks of a node may listen for other hosts; empty where no processes of
// other hosts come.
Result<std::string> listening_address(const NodeCommand& command, const link::Dial& controller) {
  if (command.bind == "0.0.0.0" && !command.advertise)
    return Error{ErrorCode::kInvalid, "`--bind 0.0.0.0` needs --advertise", "",
                 "the address by which other hosts reach this one"};
  if (command.bind) return *command.bind;
  if (controller.to.is_local()) {
    const std::string address = controller_address();
    if (address != "0.0.0.0") return address;
    // The controller takes all addresses, so that none of them can be told to other hosts.
    log::warn("event=no_address_for_other_hosts help=\"name this machine's with --bind\"");
    return std::string();
  }
  return link::local_address_towards(controller.to);
}

// Starts this binary in another role, in the background.
Result<node::Daemon> start_role(std::vector<std::string> arguments, const fs::path& log) {
  arguments.insert(arguments.begin(), "tandem");
  auto started = node::spawn_daemon(
      {.name = "the " + arguments[1], .program = own_program(), .argv = arguments, .log = log});
  if (started) return started;
  Error error = started.error();
  error.help = "is TANDEM_HOME writable?";
  return error;
}

// The error that a process printed into its log before it ended; empty where the log has none.
std::string last_line(const fs::path& log) {
  const auto text = read_file(log);
  if (!text || text->empty()) return "";
  const auto begin = text->find("error[");
  return begin == std::string::npos ? "" : text->substr(begin);
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

// Cancels every job that runs and waits for the end of all of them, so that `down` leaves no
// process behind. If a wait fails, the controller ends all the same, and its ranks with it.
void cancel_all(const ControllerProcess& cluster) {
  const auto view =
      actor::ask_and_wait(cluster.controller(), controller::GetCluster{}, kCancelTimeout);
  if (!view) return;
  for (const controller::JobRecord& job : view->jobs)
    if (!scheduler::is_final(job.status.state))
      (void)actor::ask_and_wait(cluster.controller(), controller::Cancel{job.id}, kCancelTimeout);
  const auto ended = actor::ask_and_wait(
      cluster.controller(), controller::Await{controller::ClusterCondition::kNoJobRuns},
      kJobsEndTimeout);
  if (!ended)
    log::warn("event=wait_failed waited_for=\"the end of all jobs\" message=\"{}\"",
              ended.error().message);
}

// Looks at the nodes, again whenever one changes, until one is Ready; false if none is by
// `timeout`.
bool node_comes_up(const cli::ApiClient& api, Duration timeout) {
  const Time deadline = steady_now() + timeout;
  bool ready = false;
  const auto look = [&](std::optional<std::string_view>) {
    const auto nodes = api.get("/nodes");
    ready = nodes && std::ranges::any_of(*nodes, [](const auto& node) {
              return node.value("state", "") == "Ready";
            });
    return !ready && steady_now() < deadline;
  };
  if (look({})) (void)api.stream("/nodes?watch=1", kLookAgain, look);  // `ready` says how it ended
  return ready;
}

std::vector<std::string> node_words(const UpCommand& command) {
  std::vector<std::string> words{kNodeRole};
  if (command.memory_bytes)
    words.insert(words.end(), {"--memory", std::to_string(*command.memory_bytes)});
  return words;
}

// The controller runs already: starts a node if none is Ready.
int complete_cluster(const UpCommand& command, const nlohmann::json& running,
                     const cli::Console& console) {
  const auto address = cli::resolve_address(std::nullopt);
  if (!address) return console.complain(address.error());
  const cli::ApiClient api(*address);
  const std::string http = running.value("http", "");
  if (node_comes_up(api, Duration{0})) {
    console.err << "a cluster is up already: " << http << "\n";
    return 0;
  }
  console.err << "the controller is up and has no node: starting one" << std::endl;
  const fs::path log = cli::tandem_home() / "node.log";
  if (const auto node = start_role(node_words(command), log); !node)
    return console.complain(node.error());
  if (!node_comes_up(api, kUpTimeout))
    return console.complain({ErrorCode::kTimedOut, "the node did not join its controller",
                             log.string(), "its log says more"});
  console.out << "up: http://" << http << "\n";
  return 0;
}

// The pids of the nodes that run on this host. The pid of a node of another host means nothing
// here: waiting for it would be waiting for a process that has nothing to do with the cluster.
std::vector<std::int64_t> nodes_here(const cli::ApiClient& api) {
  std::vector<std::int64_t> pids;
  const auto nodes = api.get("/nodes");
  if (!nodes) return pids;
  for (const auto& node : *nodes)
    if (const auto pid = node.value("pid", std::int64_t{0});
        node::runs_here(static_cast<pid_t>(pid), kNodeRole))
      pids.push_back(pid);
  return pids;
}

// The run directories of the jobs that have not ended.
std::vector<fs::path> live_runs(const cli::ApiClient& api) {
  std::vector<fs::path> runs;
  const auto jobs = api.get("/jobs");
  if (!jobs) return runs;
  for (const auto& job : *jobs)
    if (!cli::has_ended(job)) runs.emplace_back(job.value("run_dir", ""));
  return runs;
}

// Whether a run ended by itself after all, before its cancellation reached it. A run that was to be
// resumed and was not has the result of an earlier time.
bool has_succeeded(const fs::path& run) {
  if (fs::exists(run / runs::kResumeFile)) return false;
  const auto text = read_file(run / "result.json");
  const auto result = text ? parse_json(*text) : nlohmann::json();
  return result.is_object() && result.value("state", "") == "Succeeded";
}

// Says the two words of a controller: the first at once, since it listens; the second when a node
// is ready. The answer may come after this function returned, which is why `words` is shared.
void say_words(const std::shared_ptr<const node::DaemonWords>& words,
               const ControllerProcess& cluster) {
  words->say();
  const actor::ReplyTo<controller::Nothing> joined(
      [words](const Result<controller::Nothing>& node_is_ready) {
        if (node_is_ready) words->say();
      });
  CHECK(cluster.controller().tell(actor::Ask<controller::Await>{
            {controller::ClusterCondition::kNodeReady}, joined}) == actor::Delivery::kAccepted);
}

// The options lack the node, its address and the end for a refusal, which run_node() adds.
node::AgentConfig agent_config(const NodeCommand& command, const link::Dial& controller) {
  return {.program = own_program().string(),
          .controller = to_string(controller.to),
          .advertise = command.advertise.value_or(""),
          .secret = controller.keys ? to_text(*controller.keys) : "",
          .usage_interval = node::kUsageInterval};
}

int run_controller(const ControllerCommand& command, const cli::Console& console, bool verbose) {
  const auto words = std::make_shared<const node::DaemonWords>(node::DaemonWords::inherited());
  node::Signals signals({SIGINT, SIGTERM});
  init_logging("controller", level(verbose));
  auto process =
      ControllerProcess::start({.port = command.listen.port,
                                .bind = command.listen.bind,
                                .home = cli::tandem_home(),
                                .of_home = true,
                                .allow_hosts = command.listen.allow_hosts,
                                .metrics_without_token = command.listen.metrics_without_token});
  if (!process) return console.complain(process.error());
  log::info("event=listening control_socket={} control={} http={}",
            to_string((*process)->control().front()), to_string((*process)->control().back()),
            to_string((*process)->http()));
  say_words(words, **process);
  signals.wait();
  cancel_all(**process);
  (*process)->stop();
  return 0;
}

int run_node(const NodeCommand& command, const cli::Console& console, bool verbose) {
  // A node says no word: `up` hears only the end of its socket.
  const auto words = node::DaemonWords::inherited();
  node::Signals signals({SIGINT, SIGTERM});
  const Incarnation incarnation = node_incarnation();
  auto machine =
      offered_node(incarnation, {.cpus = command.cpus, .memory_bytes = command.memory_bytes});
  if (!machine) return console.complain(machine.error());
  const std::string name = command.name.value_or(machine->node);
  machine->node = name;
  init_logging("node/" + name, level(verbose));
  const auto controller = dial_controller(command);
  if (!controller) return console.complain(controller.error());
  const auto bind = listening_address(command, *controller);
  if (!bind) return console.complain(bind.error());

  // Removes shared memory that learners of earlier jobs left on this host.
  weights::reclaim_stale_weights("");
  node::PosixProcessHost processes;
  link::Directory directory;
  link::IoThread io("link");
  actor::ThreadedExecutor executor(1, incarnation.value);
  actor::System system(executor, [&](const ActorId&, const Error&) { signals.raise(); });
  // The link's callbacks send through the link, so that it is made after them; nothing is sent
  // before start(), by when the pointer is set.
  link::LinkClient* link_pointer = nullptr;
  const link::ParcelSender to_controller = [&](std::string frame) {
    return link_pointer->send(std::move(frame));
  };
  Guarded<std::optional<Error>> refusal;
  node::AgentConfig config = agent_config(command, *controller);
  config.node = *machine;
  config.bind = *bind;
  config.on_refused = [&](const node::NodeRefused& refused) {
    refusal.with([&](auto& error) { error = node_refused(name, refused); });
    signals.raise();
  };
  link::LinkCallbacks callbacks;
  callbacks.on_parcel = [&](const ActorId&, std::string& frame) {
    return directory.deliver(frame, to_controller);
  };
  // The agent introduces its node when it is made: not before the link can carry that.
  callbacks.on_up = [&](const ActorId&, const link::Hello&) {
    directory.expose(node::kAgentPort, system.spawn<node::Agent>("agent", [&] {
      return std::make_unique<node::Agent>(
          config, processes,
          directory.remote<node::AgentEvents>({node::kAgentEventsPort, {}}, to_controller));
    }));
  };
  callbacks.on_down = [&](const ActorId&, const link::Down& down) {
    log::warn("event=controller_lost reason={}", link::name(down.reason));
    signals.raise();  // the ranks end with this process
  };
  link::LinkClient link(io, *controller,
                        {.name = messages::node_peer(name, getpid()),
                         .incarnation = incarnation,
                         .build = messages::wire_build()},
                        {}, callbacks);
  link_pointer = &link;
  link.start();
  signals.wait();
  link.close(std::chrono::milliseconds(200));
  executor.stop();
  weights::reclaim_stale_weights("");
  const auto refused = refusal.with([](const auto& error) { return error; });
  return refused ? console.complain(*refused) : 0;
}

int cluster_up(const UpCommand& command, const cli::Console& console) {
  const fs::path home = cli::tandem_home();
  std::error_code error;
  fs::create_directories(home, error);
  if (const auto running = running_controller())
    return complete_cluster(command, *running, console);
  // The payload sockets and the control socket are told to other hosts by this address.
  if (command.listen.bind == "0.0.0.0")
    return console.complain({ErrorCode::kInvalid,
                             "`--bind 0.0.0.0` does not say how other hosts reach this one", "",
                             "name this machine's address, as in --bind 10.0.0.1"});
  // A stale address must not be taken for that of the controller that is about to start.
  fs::remove(home / "controller.json", error);
  fs::remove(home / "controller.log", error);
  const fs::path log = home / "controller.log";
  std::vector<std::string> role{"controller", "--port", std::to_string(command.listen.port)};
  for (const std::string& host : command.listen.allow_hosts)
    role.insert(role.end(), {"--allow-host", host});
  if (command.listen.metrics_without_token) role.push_back("--metrics-without-token");
  role.insert(role.end(), {"--bind", command.listen.bind});
  const auto controller = start_role(std::move(role), log);
  if (!controller) return console.complain(controller.error());
  if (wait_for_word(*controller, *controller, kUpTimeout) != node::Heard::kWord) {
    end_daemon(*controller, kUpTimeout);
    const std::string why = last_line(log);
    if (!why.empty()) {
      console.err << why;
      return exit_code(ErrorCode::kFailed);
    }
    return console.complain({ErrorCode::kTimedOut, "the controller did not come up", log.string(),
                             "its log says more"});
  }
  const auto node = start_role(node_words(command), home / "node.log");
  if (!node) return console.complain(node.error());
  const auto address = cli::resolve_address(std::nullopt);
  if (!address) return console.complain(address.error());
  if (wait_for_word(*controller, *node, kUpTimeout) != node::Heard::kWord) {
    end_daemon(*node, kUpTimeout);  // the next `up` starts another beside the controller
    return console.complain({ErrorCode::kTimedOut, "the node did not join its controller",
                             (home / "node.log").string(), "its log says more"});
  }
  console.out << "up: http://" << to_string(address->endpoint) << "\n";
  console.err << "next: tandem submit configs/arithmetic.yaml; tandem get actors -w\n";
  return 0;
}

// Characters of a host's name or an IPv4 address; whether it exists is not asked. Returns what is
// wrong with the text, or an empty text.
std::string not_a_host(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-'; };
  const bool is_host = !text.empty() && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
                       std::ranges::all_of(text, plain);
  return is_host ? "" : "`" + text + "` is neither an IPv4 address nor a host's name";
}

}  // namespace

int cluster_down(const cli::Console& console) {
  const auto address = running_controller();
  if (!address) {
    std::error_code ignored;
    fs::remove(cli::tandem_home() / "controller.json", ignored);  // a killed controller left it
    console.err << "no cluster is up\n";
    return 0;
  }
  // These are collected before the signal: afterwards no API answers the questions which nodes and
  // jobs there were.
  std::vector<std::int64_t> pids{(*address)["pid"].get<std::int64_t>()};
  std::vector<fs::path> runs;
  if (const auto where = cli::resolve_address(std::nullopt)) {
    const cli::ApiClient api(*where);
    for (const std::int64_t node : nodes_here(api)) pids.push_back(node);
    runs = live_runs(api);
  }
  std::vector<node::ProcessEnd> ends;
  // The pids are opened before the signal too, so that a pid which is used again is not waited for.
  for (const std::int64_t pid : pids) ends.emplace_back(static_cast<pid_t>(pid));
  kill(static_cast<pid_t>(pids.front()), SIGTERM);
  const auto all_end_within = [&ends](Duration time) {
    const Time deadline = steady_now() + time;
    return std::ranges::all_of(ends, [&](const auto& end) { return end.wait_until(deadline); });
  };
  bool down = all_end_within(kDownAtOnce);
  if (!down) {
    console.err << "waiting for its jobs, which save a checkpoint before they end" << std::endl;
    down = all_end_within(kDownTimeout);
  }
  if (!down)
    return console.complain({ErrorCode::kTimedOut, "the cluster did not end in time",
                             "pid " + std::to_string(pids.front()),
                             "kill it, then look at controller.log"});
  console.err << "down\n";
  for (const fs::path& run : runs)
    if (const std::string hint = job::resume_hint("submit", run);
        !hint.empty() && !has_succeeded(run))
      console.err << "after `tandem up`, " << hint;
  return 0;
}

cli::VerbHelp ControllerCommand::help() {
  return {.name = "controller",
          .group = cli::VerbGroup::kCluster,
          .description = "The controller, in the foreground",
          .examples = {"tandem controller --port 7420"}};
}

void ControllerCommand::options(cli::Options& options) { add_listen_options(options, listen); }

Result<int> ControllerCommand::run(const cli::VerbContext& context) {
  return run_controller(*this, context.console, context.verbose);
}

cli::VerbHelp NodeCommand::help() {
  return {.name = "node",
          .group = cli::VerbGroup::kCluster,
          .description = "The agent of this machine, in the foreground",
          .examples = {"tandem node", "tandem node --cpus 2 --memory 8GiB",
                       "tandem node --controller 10.0.0.1:7420"}};
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
      .ipv4();
  options
      .add("--advertise", advertise, "How other hosts reach --bind, where they use another address")
      .value("ADDRESS")
      .refuse_by(not_a_host);
  options.add("--cpus", cpus, "CPUs it offers; else those this process may use")
      .value("N")
      .between(0.01, 65536.0);
  add_memory(options, memory_bytes);
}

Result<int> NodeCommand::run(const cli::VerbContext& context) {
  return run_node(*this, context.console, context.verbose);
}

cli::VerbHelp UpCommand::help() {
  return {.name = "up",
          .group = cli::VerbGroup::kCluster,
          .description = "Start a cluster on this machine, in the background",
          .examples = {"tandem up", "tandem up --port 0", "tandem up --bind 10.0.0.1"}};
}

void UpCommand::options(cli::Options& options) {
  add_listen_options(options, listen);
  add_memory(options, memory_bytes);
}

Result<int> UpCommand::run(const cli::VerbContext& context) {
  return cluster_up(*this, context.console);
}

cli::VerbHelp DownCommand::help() {
  return {.name = "down",
          .group = cli::VerbGroup::kCluster,
          .description = "Stop that cluster; returns when nothing of it runs",
          .examples = {"tandem down"}};
}

void DownCommand::options(cli::Options&) {}

Result<int> DownCommand::run(const cli::VerbContext& context) {
  return cluster_down(context.console);
}

}  // namespace tandem::app
