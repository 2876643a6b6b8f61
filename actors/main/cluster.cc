#include "actors/main/cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "actors/main/cli/api_client.h"
#include "actors/main/controller_process.h"
#include "actors/main/rank_process.h"
#include "actors/main/signals.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/net/link.h"
#include "runtime/net/remote.h"
#include "runtime/node/agent.h"
#include "runtime/node/resources.h"

namespace tandem::cli {

namespace fs = std::filesystem;

namespace {

constexpr Duration kUpTimeout = std::chrono::seconds(10);
constexpr Duration kDownTimeout = std::chrono::seconds(20);
constexpr Duration kCancelTimeout = std::chrono::seconds(10);
constexpr Duration kPollEvery = std::chrono::milliseconds(5);

int complain(const Console& console, const Error& error) {
  console.err << render(error) << "\n";
  return exit_code(error.code);
}

LogLevel level(bool verbose) { return verbose ? LogLevel::kDebug : LogLevel::kInfo; }

// Waits without a file to wait on: another process's start or end.
bool wait_until(Duration timeout, const std::function<bool()>& done) {
  const Time end = steady_now() + timeout;
  while (!done()) {
    if (steady_now() > end) return false;
    poll(nullptr, 0, static_cast<int>(kPollEvery / std::chrono::milliseconds(1)));
  }
  return true;
}

// A zombie has ended, though nobody may ever have asked how.
bool runs(std::int64_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return false;
  const auto name_end = stat->rfind(") ");
  return name_end != std::string::npos && (*stat)[name_end + 2] != 'Z';
}

Result<nlohmann::json> read_address_file() {
  const fs::path path = tandem_home() / "controller.json";
  const auto text = read_file(path);
  nlohmann::json content = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  if (!content.is_object() || !content.contains("pid"))
    return Error{ErrorCode::kUnreachable, "no controller runs", path.string(),
                 "start one with `tandem up`"};
  return content;
}

// The controller that has this home now. It holds the lock as long as it lives; the file alone may
// be what a killed one left, and its pid somebody else's by now.
std::optional<nlohmann::json> running_controller() {
  auto address = read_address_file();
  if (!address) return std::nullopt;
  if (FileLock::take(tandem_home() / "controller.lock", "", "")) return std::nullopt;
  return std::move(*address);
}

// Where a node dials: --controller, else what the controller's file says.
Result<runtime::Endpoint> control_endpoint(const NodeCommand& command) {
  if (command.controller) return runtime::parse_endpoint(*command.controller);
  const auto address = read_address_file();
  if (!address) return address.error();
  return runtime::parse_endpoint(address->value("control", ""));
}

// A daemon of our own: this binary with `arguments`, in a session of its own, logging to `log`.
Result<pid_t> spawn_daemon(std::vector<std::string> arguments, const fs::path& log) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  arguments.insert(arguments.begin(), "tandem");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return Error{ErrorCode::kFailed, "cannot start " + arguments[1] + ": " + errno_text(error),
                 log.string(), "is TANDEM_HOME writable?"};
  return pid;
}

std::string last_line(const fs::path& log) {
  const auto text = read_file(log);
  if (!text || text->empty()) return "";
  const auto begin = text->find("error[");
  return begin == std::string::npos ? "" : text->substr(begin);
}

// Cancels what runs and waits until it is gone, so that `down` leaves nothing.
void cancel_all(const ControllerProcess& cluster) {
  const auto all_final = [&](bool cancel) {
    const auto view =
        runtime::ask_and_wait(cluster.controller(), actors::GetCluster{}, kCancelTimeout);
    if (!view) return true;
    bool final = true;
    for (const actors::JobRecord& job : view->jobs) {
      if (scheduler::is_final(job.status.state)) continue;
      final = false;
      if (cancel)
        (void)runtime::ask_and_wait(cluster.controller(), actors::Cancel{job.id}, kCancelTimeout);
    }
    return final;
  };
  if (!all_final(true)) wait_until(kCancelTimeout, [&] { return all_final(false); });
}

}  // namespace

int run_controller(const ControllerCommand& command, const Console& console, bool verbose) {
  Signals signals({SIGINT, SIGTERM});
  init_logging("controller", level(verbose));
  auto process =
      ControllerProcess::start({.port = command.port, .home = tandem_home(), .of_home = true});
  if (!process) return complain(console, process.error());
  spdlog::info("event=listening control={} http={}", to_string((*process)->control()),
               to_string((*process)->http()));
  signals.wait();
  cancel_all(**process);
  (*process)->stop();
  return 0;
}

int run_node(const NodeCommand& command, const Console& console, bool verbose) {
  Signals signals({SIGINT, SIGTERM});
  const auto machine = runtime::read_machine_resources();
  if (!machine) return complain(console, machine.error());
  const std::string name = command.name.value_or(machine->hostname);
  init_logging("node/" + name, level(verbose));
  const auto controller = control_endpoint(command);
  if (!controller) return complain(console, controller.error());

  const Incarnation life{static_cast<std::uint64_t>(unix_ms())};
  runtime::PosixProcessHost processes;
  runtime::Directory directory;
  runtime::IoThread io("link");
  runtime::ThreadedExecutor executor(1, life.value);
  runtime::System system(executor, [&](const runtime::Address&, const Error&) { signals.raise(); });
  runtime::LinkClient* link_pointer = nullptr;
  const runtime::ParcelSender to_controller = [&](std::string frame) {
    return link_pointer->send(std::move(frame));
  };
  const runtime::AgentConfig config{.node = {.node = name,
                                             .incarnation = life,
                                             .cpus = command.cpus.value_or(machine->cpus),
                                             .memory_bytes = command.memory_bytes.value_or(
                                                 static_cast<std::int64_t>(machine->memory_bytes)),
                                             .pid = getpid()},
                                    .program = "/proc/" + std::to_string(getpid()) + "/exe"};
  runtime::LinkCallbacks callbacks;
  callbacks.on_parcel = [&](const runtime::PeerId&, std::string& frame) {
    return directory.deliver(frame, to_controller);
  };
  callbacks.on_up = [&](const runtime::PeerId&, const runtime::Hello&) {
    directory.expose(kAgentPort, system.spawn<runtime::Agent>("agent", [&] {
      return std::make_unique<runtime::Agent>(
          config, processes,
          directory.remote<runtime::AgentEvents>({kAgentEventsPort, {}}, to_controller));
    }));
  };
  callbacks.on_down = [&](const runtime::PeerId&, const runtime::Down& down) {
    spdlog::warn("event=controller_lost reason={}", runtime::name(down.reason));
    signals.raise();  // its ranks end with it
  };
  runtime::LinkClient link(io, *controller,
                           {.name = "node/" + name, .incarnation = life, .build = build_id()}, {},
                           callbacks);
  link_pointer = &link;
  link.start();
  signals.wait();
  link.close(std::chrono::milliseconds(200));
  executor.stop();
  return 0;
}

int cluster_up(const UpCommand& command, const Console& console) {
  const fs::path home = tandem_home();
  std::error_code error;
  fs::create_directories(home, error);
  if (const auto running = running_controller()) {
    console.err << "a cluster is up already: " << running->value("http", "") << "\n";
    return 0;
  }
  fs::remove(home / "controller.json", error);
  fs::remove(home / "controller.log", error);
  const fs::path log = home / "controller.log";
  const auto controller = spawn_daemon({"controller", "--port", std::to_string(command.port)}, log);
  if (!controller) return complain(console, controller.error());
  const bool up = wait_until(kUpTimeout, [&] {
    return fs::exists(home / "controller.json") || waitpid(*controller, nullptr, WNOHANG) != 0;
  });
  if (!up || !fs::exists(home / "controller.json")) {
    const std::string why = last_line(log);
    if (!why.empty()) {
      console.err << why;
      return exit_code(ErrorCode::kFailed);
    }
    return complain(console, {ErrorCode::kTimedOut, "the controller did not come up", log.string(),
                              "its log says more"});
  }
  const auto node = spawn_daemon({"node"}, home / "node.log");
  if (!node) return complain(console, node.error());
  const auto address = resolve_address(std::nullopt);
  if (!address) return complain(console, address.error());
  const ApiClient api(*address);
  const bool ready = wait_until(kUpTimeout, [&] {
    const auto nodes = api.get("/nodes");
    return nodes && !nodes->empty();
  });
  if (!ready)
    return complain(console, {ErrorCode::kTimedOut, "the node did not join its controller",
                              (home / "node.log").string(), "its log says more"});
  console.out << "up: http://" << to_string(address->endpoint) << "\n";
  console.err << "next: tandem submit configs/arithmetic.yaml; tandem get actors -w\n";
  return 0;
}

int cluster_down(const Console& console) {
  const auto address = running_controller();
  if (!address) {
    std::error_code ignored;
    fs::remove(tandem_home() / "controller.json", ignored);  // of a killed one, if any
    console.err << "no cluster is up\n";
    return 0;
  }
  std::vector<std::int64_t> pids{(*address)["pid"].get<std::int64_t>()};
  if (const auto where = resolve_address(std::nullopt))
    if (const auto nodes = ApiClient(*where).get("/nodes"))
      for (const auto& node : *nodes) pids.push_back(node.value("pid", std::int64_t{0}));
  kill(static_cast<pid_t>(pids.front()), SIGTERM);
  const bool gone = wait_until(kDownTimeout, [&] {
    return std::none_of(pids.begin(), pids.end(),
                        [](std::int64_t pid) { return pid > 0 && runs(pid); });
  });
  if (!gone)
    return complain(
        console, {ErrorCode::kTimedOut, "the cluster did not end in time",
                  "pid " + std::to_string(pids.front()), "kill it, then look at controller.log"});
  console.err << "down\n";
  return 0;
}

}  // namespace tandem::cli
