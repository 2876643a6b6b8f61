#include "actors/main/background.h"

#include <unistd.h>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include "actors/cli/api_client.h"
#include "runtime/base/append_file.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/node/kept_ranks.h"
#include "runtime/node/process_host.h"
#include "runtime/node/process_usage.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kProbeBytes = 64 << 10;
constexpr Duration kLookAtStart = std::chrono::milliseconds(100);
constexpr Duration kLookAtUse = std::chrono::seconds(1);
constexpr Duration kUpAtWorkMax = std::chrono::hours(1);

}  // namespace

Result<void> try_state_folder(const fs::path& folder) {
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

ClusterFolder ClusterFolder::chosen(const std::optional<fs::path>& of_run) {
  return {.path = of_run.value_or(cli::tandem_home()), .of_run = of_run.has_value()};
}

fs::path ClusterFolder::log_of(const char* role) const {
  return of_run ? fs::path() : path / (std::string(role) + ".log");
}

bool ClusterFolder::is_joinable() const {
  std::error_code ignored;
  return of_run && fs::exists(joinable_mark(), ignored);
}

bool ClusterFolder::grows() const {
  const auto mark = of_run ? read_file(joinable_mark()) : Result<std::string>("");
  return mark && *mark == kGrows;
}

std::initializer_list<int> ClusterFolder::choose_end_signals() const {
  static constexpr std::initializer_list<int> kBoth{SIGINT, SIGTERM}, kOne{SIGINT};
  if (!is_joinable()) return kBoth;
  std::signal(SIGTERM, [](int) {});  // ignored by this process, and not by those that it starts
  return kOne;
}

fs::path run_clusters(const fs::path& home) { return home / "clusters"; }

std::optional<pid_t> run_command_of(const fs::path& home, pid_t controller) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_clusters(home), ignored))
    if (controller_process(entry.path()) == controller)
      return FileLock::owner(ClusterFolder{entry.path(), true}.owner_lock());
  return std::nullopt;
}

void add_of_run(cli::Options& options, std::optional<fs::path>& of_run) {
  options.hidden_path(kOfRunOption, of_run);
}

Result<ControllerFile> read_controller_file(const fs::path& cluster) {
  const fs::path path = cluster / "controller.json";
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

std::optional<ControllerFile> running_controller(const fs::path& cluster) {
  auto file = read_controller_file(cluster);
  if (!file || controller_process(cluster) != file->pid) return std::nullopt;
  return *std::move(file);
}

std::optional<pid_t> controller_process(const fs::path& cluster) {
  return FileLock::owner(cluster / "controller.lock");
}

fs::path keeper_lock(const fs::path& cluster) { return cluster / "node.lock"; }

std::optional<pid_t> running_keeper(const fs::path& cluster) {
  return FileLock::owner(keeper_lock(cluster));
}

fs::path node_folders(const fs::path& cluster) { return cluster / "nodes"; }

int kill_orphans(const fs::path& cluster) {
  node::PosixProcessHost host;  // kills what it has adopted when it ends (PH-2)
  int found = 0;
  std::error_code failure;
  for (const auto& folder : fs::directory_iterator(node_folders(cluster), failure)) {
    auto kept = node::KeptRankFiles::open(folder.path());
    if (!kept) continue;
    for (const node::KeptRank& rank : kept->found())
      found += host.adopt(rank.pid, rank.born, [](auto, const auto&) {}).has_value() ? 1 : 0;
  }
  return found;
}

std::vector<std::string> controller_words(const cli::ListenOptions& listen,
                                          const std::optional<fs::path>& of_run) {
  std::vector<std::string> words{"controller", "--port", std::to_string(listen.port)};
  for (const std::string& host : listen.allow_hosts)
    words.insert(words.end(), {"--allow-host", host});
  words.insert(words.end(), {"--node-grace-s", std::to_string(listen.node_grace_s)});
  if (listen.health_port)
    words.insert(words.end(), {"--health-port", std::to_string(*listen.health_port)});
  if (listen.metrics_without_token) words.emplace_back("--metrics-without-token");
  if (listen.pricing) words.insert(words.end(), {"--pricing", scheduler::text_of(*listen.pricing)});
  words.insert(words.end(), {"--bind", listen.bind});
  if (listen.plaintext_gang) words.emplace_back("--allow-plaintext-gang");
  if (!listen.ports.is_any()) words.insert(words.end(), {"--ports", link::to_string(listen.ports)});
  if (of_run) words.insert(words.end(), {kOfRunOption, of_run->string()});
  return words;
}

Result<node::Daemon> start_role(std::vector<std::string> words, const fs::path& log) {
  words.insert(words.begin(), "tandem");
  auto started = node::spawn_daemon(
      {.name = "the " + words[1], .program = own_program(), .argv = words, .log = log});
  if (started) return started;
  Error error = started.error();
  error.help = "is TANDEM_HOME writable?";
  return error;
}

node::Heard wait_until_up(const node::Daemon& controller, const std::function<bool()>& goes_on) {
  node::UsageMeter meter(controller.pid);
  const Time began = steady_now();
  Time worked = began, looked = began;
  (void)meter.sample(looked);
  while (steady_now() - worked < kUpTimeout && steady_now() - began < kUpAtWorkMax && goes_on()) {
    const auto heard = node::wait_for_word(controller, controller, kLookAtStart);
    if (heard != node::Heard::kNothing) return heard;
    if (steady_now() - looked < kLookAtUse) continue;
    looked = steady_now();
    const auto use = meter.sample(looked);
    if (use && use->cpu_percent > 0) worked = looked;
  }
  return node::Heard::kNothing;
}

LogLevel log_level(bool verbose, const ClusterFolder& cluster) {
  if (verbose) return LogLevel::kDebug;
  return cluster.of_run ? LogLevel::kWarnings : LogLevel::kInfo;
}

}  // namespace tandem::app
