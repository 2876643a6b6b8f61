#include "actors/main/background.h"

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

#include "actors/cli/api_client.h"
#include "runtime/base/append_file.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kProbeBytes = 64 << 10;

// A log that takes no line cannot say why its process has ended; so its folder is tried before.
Result<void> try_folder(const fs::path& folder) {
  const fs::path probe = folder / (".probe-" + std::to_string(getpid()));
  auto file = AppendFile::open(probe);
  Result<void> written = file ? file->append(std::string(kProbeBytes, '\0')) : file.error();
  std::error_code ignored;
  fs::remove(probe, ignored);
  if (written) return written;
  Error error = written.error();
  error.where = folder.string();
  error.message = "the state folder cannot be written: " + error.message;
  if (error.help.empty()) error.help = "is TANDEM_HOME writable?";
  return error;
}

}  // namespace

Result<ControllerFile> read_controller_file() {
  const fs::path path = cli::tandem_home() / "controller.json";
  const auto text = read_file(path);
  const nlohmann::json content = text ? parse_json(*text) : nlohmann::json();
  const auto text_at = [&content](const char* key) {
    const auto it = content.find(key);
    return it != content.end() && it->is_string() ? it->get<std::string>() : "";
  };
  if (!content.is_object() || !content.contains("pid") || !content["pid"].is_number_integer() ||
      content["pid"] <= 0)
    return Error{ErrorCode::kUnreachable, "no controller runs", path.string(),
                 "start one with `tandem up`"};
  ControllerFile file{.pid = content["pid"].get<pid_t>(),
                      .control_socket = text_at("control_socket"),
                      .control = text_at("control"),
                      .http = text_at("http"),
                      .arguments = {}};
  if (const auto words = content.find("arguments"); words != content.end() && words->is_array())
    for (const auto& word : *words)
      if (word.is_string()) file.arguments.push_back(word.get<std::string>());
  return file;
}

std::optional<ControllerFile> running_controller() {
  auto file = read_controller_file();
  if (!file || controller_process() != file->pid) return std::nullopt;
  return *std::move(file);
}

std::optional<pid_t> controller_process() {
  return FileLock::owner(cli::tandem_home() / "controller.lock");
}

fs::path keeper_lock() { return cli::tandem_home() / "node.lock"; }

std::optional<pid_t> running_keeper() { return FileLock::owner(keeper_lock()); }

fs::path node_folders() { return cli::tandem_home() / "nodes"; }

std::vector<std::string> controller_words(const cli::ListenOptions& listen) {
  std::vector<std::string> words{"controller", "--port", std::to_string(listen.port)};
  for (const std::string& host : listen.allow_hosts)
    words.insert(words.end(), {"--allow-host", host});
  words.insert(words.end(), {"--node-grace-s", std::to_string(listen.node_grace_s)});
  if (listen.metrics_without_token) words.emplace_back("--metrics-without-token");
  words.insert(words.end(), {"--bind", listen.bind});
  return words;
}

Result<node::Daemon> start_role(std::vector<std::string> words, const fs::path& log) {
  if (const auto tried = try_folder(log.parent_path()); !tried) return tried.error();
  words.insert(words.begin(), "tandem");
  auto started = node::spawn_daemon(
      {.name = "the " + words[1], .program = own_program(), .argv = words, .log = log});
  if (started) return started;
  Error error = started.error();
  error.help = "is TANDEM_HOME writable?";
  return error;
}

LogLevel log_level(bool verbose) { return verbose ? LogLevel::kDebug : LogLevel::kInfo; }

}  // namespace tandem::app
