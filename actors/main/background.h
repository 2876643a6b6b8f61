// The processes of a cluster in the background, as its commands find and start them.
//
// A controller is found by TANDEM_HOME/controller.json, and is alive only while controller.lock is
// held: a killed controller leaves its file, with a pid and a port that other processes may have by
// now. In the same way a node that keeps its controller (node_command.h) holds node.lock.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/shared_options.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/result.h"
#include "runtime/node/daemon.h"

namespace tandem::app {

inline constexpr const char* kNodeRole = "node";  // the first argument of a node's process
// How long a controller may take until it says its first word: it reads the data of the jobs that
// it takes up.
inline constexpr Duration kUpTimeout = std::chrono::minutes(2);
// How long a process that is asked to end may take, or one that got SIGKILL.
inline constexpr Duration kEndTimeout = std::chrono::seconds(10);

// The content of controller.json.
struct ControllerFile {
  pid_t pid = 0;
  std::string control_socket, control, http;  // its addresses
  std::vector<std::string> arguments;         // controller_words() that started it
};
// kUnreachable where there is none, or a controller that is starting has not written it yet. The
// controller that it names may have ended.
Result<ControllerFile> read_controller_file();
// The same of a controller that runs: it holds the lock of the state folder.
std::optional<ControllerFile> running_controller();
// The process that has the lock of the state folder: a controller that runs, starts or ends.
std::optional<pid_t> controller_process();

// The lock of the node that keeps the controller of this state folder, and that node's process.
std::filesystem::path keeper_lock();
std::optional<pid_t> running_keeper();

// A folder for each node that was started with this state folder (runtime/node/kept_ranks.h).
std::filesystem::path node_folders();

// The words after `tandem` that start a controller with these options.
std::vector<std::string> controller_words(const cli::ListenOptions& listen);
// Starts this binary with these words, in the background.
Result<node::Daemon> start_role(std::vector<std::string> words, const std::filesystem::path& log);

LogLevel log_level(bool verbose);

}  // namespace tandem::app
