// The verbs that start and end a cluster in the background.
//
// The background processes are not children that `up` could wait for later. They say words,
// one byte each, on an inherited socket (runtime/node/daemon.h): the first when the controller
// listens, the second when a node is ready. `down` waits for the ends of pids, of the controller
// and of the nodes on this host.
//
// `down` sends SIGTERM to the controller. The controller cancels its jobs, which save a checkpoint
// first, then closes its links, and each agent ends with its link and takes its ranks with it. The
// node that keeps the controller gets SIGTERM behind it, or it would start a controller again that
// died on its way out.
#include "actors/main/cluster.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/cli/api_object.h"
#include "actors/job/resume.h"
#include "actors/main/background.h"
#include "actors/main/controller_process.h"
#include "actors/main/node_command.h"
#include "actors/main/node_keeper.h"
#include "actors/runs/run_files.h"
#include "runtime/actor/system.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/node/daemon.h"
#include "runtime/node/log_rotation.h"
#include "runtime/node/owner.h"
#include "runtime/node/signals.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

// How long a cancelled job's request waits for its answer.
constexpr Duration kCancelTimeout = std::chrono::seconds(10);
// The end of all jobs: a cancelled job may save for kSaveOnCancelMax before it ends.
constexpr Duration kJobsEndTimeout = messages::kSaveOnCancelMax + std::chrono::seconds(10);
constexpr Duration kDownTimeout = kJobsEndTimeout + std::chrono::seconds(10);
// How often `up` looks at the nodes where no line of the watch stream makes it look.
constexpr Duration kLookAgain = std::chrono::milliseconds(500);
// After so long `down` tells the user why it waits.
constexpr Duration kDownAtOnce = std::chrono::seconds(2);

// The error that a process printed into its log before it ended; empty where the log has none.
std::string last_line(const fs::path& log) {
  const auto text = read_file(log);
  if (!text || text->empty()) return "";
  const auto begin = text->find("error[");
  return begin == std::string::npos ? "" : text->substr(begin);
}

// Cancels every job that runs and waits for the end of all of them, so that `down` leaves no
// process behind. If a wait fails, the controller ends all the same, and its ranks with it.
void cancel_all(const ControllerProcess& cluster) {
  const auto view =
      actor::ask_and_wait(cluster.controller(), controller::GetCluster{}, kCancelTimeout);
  if (!view) return;
  const auto cancel = [&](const controller::JobRecord& job) {
    // No answer is waited for where there is room: it may wait for a full disk.
    const auto told = cluster.controller().tell(actor::Ask<controller::Cancel>{{job.id}, {}});
    if (told == actor::Delivery::kAccepted) return;
    (void)actor::ask_and_wait(cluster.controller(), controller::Cancel{job.id}, kCancelTimeout);
  };
  for (const controller::JobRecord& job : view->jobs)
    if (!scheduler::is_final(job.status.state)) cancel(job);
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

std::vector<std::string> words_of_node(const UpCommand& command) {
  return node_words({.memory_bytes = command.memory_bytes,
                     .keep_controller = true,
                     .ports = command.listen.ports});
}

// The controller runs already: starts a node if none is Ready.
int complete_cluster(const UpCommand& command, const ControllerFile& running,
                     const cli::Console& console) {
  const auto address = cli::resolve_address(std::nullopt);
  if (!address) return console.complain(address.error());
  const cli::ApiClient api(*address);
  if (node_comes_up(api, Duration{0})) {
    console.err << "a cluster is up already: " << running.http << "\n";
    return 0;
  }
  const fs::path log = cli::tandem_home() / "node.log";
  if (running_keeper(cli::tandem_home())) {
    console.err << "the controller is up, and its node is about to join it" << std::endl;
  } else {
    console.err << "the controller is up and has no node: starting one" << std::endl;
    if (const auto tried = try_state_folder(log.parent_path()); !tried)
      return console.complain(tried.error());
    if (const auto node = start_role(words_of_node(command), log); !node)
      return console.complain(node.error());
  }
  if (!node_comes_up(api, kUpTimeout))
    return console.complain({ErrorCode::kTimedOut, "the node did not join its controller",
                             log.string(), "its log says more"});
  console.out << "up: http://" << running.http << "\n";
  return 0;
}

// The pids of the nodes that run on this host. The pid of a node of another host means nothing
// here: waiting for it would be waiting for a process that has nothing to do with the cluster.
std::vector<std::int64_t> nodes_here(const cli::ApiClient& api) {
  std::vector<std::int64_t> pids;
  const auto nodes = api.get("/nodes");
  if (!nodes) return pids;
  for (const auto& node : *nodes)
    if (const auto pid = node.find("pid"); pid != node.end() && pid->is_number_integer() &&
                                           node::runs_here(pid->get<pid_t>(), kNodeRole))
      pids.push_back(pid->get<std::int64_t>());
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
  const auto sent = cluster.controller().tell(
      actor::Ask<controller::Await>{{controller::ClusterCondition::kNodeReady}, joined});
  if (sent != actor::Delivery::kAccepted)
    log::error("event=node_not_awaited message=\"{}\"",
               actor::undelivered("the controller", sent).message);
}

// Ends the node that keeps the controller of this state folder, if there is one. A controller that
// it was just starting ends with it.
Result<void> end_keeper(Time deadline) {
  const auto pid = running_keeper(cli::tandem_home());
  if (!pid) return {};
  const node::ProcessEnd end(*pid);
  end.signal(SIGTERM);
  if (end.wait_until(deadline)) return {};
  return Error{ErrorCode::kTimedOut, "the node did not end in time",
               (cli::tandem_home() / "node.log").string(), "its log says more"};
}

// Another process has the lock of the state folder, and has not written its file yet.
Error starts_already(pid_t pid) {
  return {ErrorCode::kFailed, "a controller is starting or ending, process " + std::to_string(pid),
          cli::tandem_home().string(), "wait for it, then try again"};
}

}  // namespace

int run_controller(const ControllerCommand& command, std::optional<ExpectedJob> expected,
                   const cli::Console& console, bool verbose) {
  const auto words = std::make_shared<const node::DaemonWords>(node::DaemonWords::inherited());
  const ClusterFolder cluster = ClusterFolder::chosen(command.of_run);
  node::Signals signals(cluster.choose_end_signals());
  init_logging("controller", log_level(verbose, cluster));
  node::OwnLog log_file = node::OwnLog::inherited();
  std::vector<std::string> start_again = controller_words(command.listen, command.of_run);
  if (verbose) start_again.emplace_back("-v");
  // The jobs of a `tandem run` are not to be cancelled with a last checkpoint when it is killed.
  std::optional<node::OwnerWatch> owner;
  if (cluster.of_run) owner.emplace(node::Owner(cluster.owner_lock()), [] { std::_Exit(1); });
  auto process =
      ControllerProcess::start({.port = command.listen.port,
                                .bind = command.listen.bind,
                                .ports = command.listen.ports,
                                .home = cli::tandem_home(),
                                .cluster = cluster,
                                .words = std::move(start_again),
                                .allow_hosts = command.listen.allow_hosts,
                                .node_grace = std::chrono::seconds(command.listen.node_grace_s),
                                .health_port = command.listen.health_port,
                                .plaintext_gang = command.listen.plaintext_gang,
                                .metrics_without_token = command.listen.metrics_without_token,
                                .pricing = command.listen.pricing,
                                .expected = std::move(expected)});
  if (!process) return console.complain(process.error());
  // Whoever wanted it to end before it was up does not mean its jobs.
  if (signals.wait_for(Duration::zero()) != 0) return 0;
  log::info("event=listening control_socket={} control={} http={}",
            to_string((*process)->control().front()), to_string((*process)->control().back()),
            to_string((*process)->http()));
  say_words(words, **process);
  NodeKeeper node(
      cluster, [&](pid_t pid) { return (*process)->has_agent(pid); },
      [&](pid_t pid) { (*process)->agent_ended(pid); });
  while (signals.wait_for(NodeKeeper::kLookEvery) == 0) {
    (*process)->end_if_hung();  // first: the others look at files
    node.look();
    log_file.look();
  }
  cancel_all(**process);
  (*process)->stop();
  return 0;
}

namespace {

int cluster_up(const UpCommand& command, const cli::Console& console) {
  const fs::path home = cli::tandem_home();
  std::error_code error;
  fs::create_directories(home, error);
  if (const auto running = running_controller(cli::tandem_home()))
    return complete_cluster(command, *running, console);
  // The node of a controller that is dead would start one too.
  if (const auto ended = end_keeper(steady_now() + kEndTimeout); !ended)
    return console.complain(ended.error());
  if (const auto pid = controller_process(cli::tandem_home()))
    return console.complain(starts_already(*pid));
  // The payload sockets and the control socket are told to other hosts by this address.
  if (link::is_any(command.listen.bind))
    return console.complain(
        {ErrorCode::kInvalid,
         "`--bind " + command.listen.bind + "` does not say how other hosts reach this one", "",
         "name this machine's address, as in --bind 10.0.0.1"});
  const fs::path log = home / "controller.log";
  if (const auto tried = try_state_folder(home); !tried) return console.complain(tried.error());
  node::remove_log(log);
  const auto controller = start_role(controller_words(command.listen, {}), log);
  if (!controller) return console.complain(controller.error());
  if (wait_until_up(*controller, [] { return true; }) != node::Heard::kWord) {
    end_daemon(*controller, kEndTimeout);
    const std::string why = last_line(log);
    if (!why.empty()) {
      console.err << why;
      return exit_code(ErrorCode::kFailed);
    }
    return console.complain({ErrorCode::kTimedOut, "the controller did not come up", log.string(),
                             "its log says more"});
  }
  const auto node = start_role(words_of_node(command), home / "node.log");
  if (!node) return console.complain(node.error());
  const auto address = cli::resolve_address(std::nullopt);
  if (!address) return console.complain(address.error());
  if (wait_for_word(*controller, *node, kUpTimeout) != node::Heard::kWord) {
    end_daemon(*node, kEndTimeout);  // the next `up` starts another beside the controller
    return console.complain({ErrorCode::kTimedOut, "the node did not join its controller",
                             (home / "node.log").string(), "its log says more"});
  }
  console.out << "up: http://" << to_string(address->endpoint) << "\n";
  console.err << "next: tandem submit configs/arithmetic.yaml; tandem get actors -w\n";
  return 0;
}

void end_orphans(const cli::Console& console) {
  const int found = kill_orphans(cli::tandem_home());
  if (found == 0) return;
  weights::reclaim_stale_weights("");
  console.err << "ended " << found << (found == 1 ? " process" : " processes")
              << " whose agent had died\n";
}

}  // namespace

// The controller has ended, and its nodes on this host end with it. One that hangs is killed.
bool end_nodes(const std::vector<node::ProcessEnd>& ends, const cli::Console& console) {
  const auto have_ended = [&ends] {
    const Time deadline = steady_now() + kEndTimeout;
    return end_keeper(deadline).has_value() &&
           std::ranges::all_of(ends, [&](const auto& end) { return end.wait_until(deadline); });
  };
  if (have_ended()) return true;
  if (const auto keeper = running_keeper(cli::tandem_home()))
    node::ProcessEnd(*keeper).signal(SIGKILL);
  for (const node::ProcessEnd& end : ends) end.signal(SIGKILL);
  console.err << "a node hung, and was killed\n";
  return have_ended();
}

int cluster_down(const cli::Console& console) {
  const auto address = running_controller(cli::tandem_home());
  if (!address) {
    const bool kept = running_keeper(cli::tandem_home()).has_value();
    if (const auto ended = end_keeper(steady_now() + kEndTimeout); !ended)
      return console.complain(ended.error());
    if (const auto pid = controller_process(cli::tandem_home()))
      return console.complain(starts_already(*pid));
    end_orphans(console);
    std::error_code ignored;
    fs::remove(cli::tandem_home() / "controller.json", ignored);  // a killed controller left it
    console.err << (kept ? "down; its controller was not up, and the next `tandem up` takes up its "
                           "jobs\n"
                         : "no cluster is up\n");
    return 0;
  }
  // These are collected before the signal: afterwards no API answers the questions which nodes and
  // jobs there were.
  std::vector<std::int64_t> pids{address->pid};
  std::vector<fs::path> runs;
  if (const auto where = cli::resolve_address(std::nullopt)) {
    cli::ApiClient api(*where);
    api.give_up_when([] { return true; });  // the next controller is not the one that is to end
    for (const std::int64_t node : nodes_here(api)) pids.push_back(node);
    runs = live_runs(api);
  }
  std::vector<node::ProcessEnd> ends;
  // The pids are opened before the signal too, so that a pid which is used again is not waited for.
  for (const std::int64_t pid : pids) ends.emplace_back(static_cast<pid_t>(pid));
  ends.front().signal(SIGTERM);
  bool down = ends.front().wait_until(steady_now() + kDownAtOnce);
  if (!down) {
    console.err << "waiting for its jobs, which save a checkpoint before they end" << std::endl;
    down = ends.front().wait_until(steady_now() + kDownTimeout);
  }
  if (!down || !end_nodes(ends, console))
    return console.complain({ErrorCode::kTimedOut, "the cluster did not end in time",
                             "pid " + std::to_string(pids.front()),
                             "kill it, then look at controller.log"});
  const auto next = controller_process(cli::tandem_home());
  if (next && *next != pids.front())  // the node had started it just before
    return console.complain(
        {ErrorCode::kFailed,
         "the controller that ended was followed by process " + std::to_string(*next),
         cli::tandem_home().string(), "run `tandem down` again"});
  end_orphans(console);
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

void ControllerCommand::options(cli::Options& options) {
  add_listen_options(options, listen);
  add_of_run(options, of_run);
}

Result<int> ControllerCommand::run(const cli::VerbContext& context) {
  return run_controller(*this, {}, context.console, context.verbose);
}

cli::VerbHelp UpCommand::help() {
  return {
      .name = "up",
      .group = cli::VerbGroup::kCluster,
      .description = "Start a cluster on this machine, in the background",
      .examples = {"tandem up", "tandem up --port 0", "tandem up --bind 10.0.0.1",
                   "tandem up --hosts gpu-1,gpu-2", "tandem up --bind 10.0.0.1 --ports 7420-7499"}};
}

void UpCommand::options(cli::Options& options) {
  add_listen_options(options, listen);
  add_memory(options, memory_bytes);
  add_up_hosts(options, hosts);
}

Result<int> UpCommand::run(const cli::VerbContext& context) {
  if (!hosts.given()) return cluster_up(*this, context.console);
  const auto up = [&](const cli::ListenOptions& listens) {
    UpCommand command = *this;
    command.listen = listens;
    return cluster_up(command, context.console);
  };
  const auto down = [&] { return cluster_down(context.console); };
  return up_with_hosts(hosts, listen, {.up = up, .down = down}, context.console);
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
