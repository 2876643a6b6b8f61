#include "actors/main/node_keeper.h"

#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

fs::path node_file(const fs::path& cluster) { return cluster / "node.json"; }

// Empty where no node was at work, or the last one has ended in order.
std::vector<std::string> words_of_node(const fs::path& cluster) {
  std::error_code ignored;
  if (!fs::exists(node_file(cluster), ignored)) return {};
  const auto text = read_file(node_file(cluster));
  const nlohmann::json content = text ? parse_json(*text) : nlohmann::json();
  std::vector<std::string> words;
  if (const auto found = content.find("arguments"); found != content.end() && found->is_array())
    for (const auto& word : *found)
      if (word.is_string()) words.push_back(word.get<std::string>());
  return words;
}

}  // namespace

Result<NodeFile> NodeFile::write(const fs::path& cluster, const std::vector<std::string>& words) {
  const fs::path path = node_file(cluster);
  if (const auto written = write_file_atomic(path, dump_json(nlohmann::json{{"arguments", words}}));
      !written)
    return written.error();
  return NodeFile(path);
}

NodeFile::~NodeFile() {
  std::error_code ignored;  // a node is started that nobody needs, and ends with its controller
  if (!path_.empty()) fs::remove(path_, ignored);
}

void NodeKeeper::died() {
  const Time now = steady_now();
  if (daemon_) reap(*daemon_);
  daemon_.reset();
  const auto next = budget_.died({.started = up_since_.value_or(now), .died = now}, rng_);
  up_since_.reset();
  if (const auto* restart = std::get_if<scheduler::Restart>(&next)) {
    restart_at_ = restart->until;
    log::warn("event=node_restarts n={} of={} in_s={:.1f}", restart->n, restart->max,
              seconds(restart->until - now));
    return;
  }
  given_up_ = true;
  log::error("event=node_not_restarted why=\"it died {} times in a short time\" help=\"{}\"",
             std::get<scheduler::Exhausted>(next).restarts + 1,
             "node.log says why; `tandem up` starts one");
}

// Its ranks work on, and the next node has them.
void NodeKeeper::watch(pid_t node) {
  if (!up_since_) up_since_ = steady_now();
  if (!watched_ || watched_->pid != node)
    if (auto end = node::process_of_lock(keeper_lock(cluster_.path)))
      watched_.emplace(Watched{node, *std::move(end)});
  unlinked_looks_ = is_linked_(node) ? 0 : unlinked_looks_ + 1;
  if (unlinked_looks_ < kHungAfter / kLookEvery) return;
  log::warn("event=node_hung pid={} consequence=\"it is killed\"", node);
  const node::ProcessEnd end(node);
  // Its number may be another process's by now.
  if (running_keeper(cluster_.path) == node) end.signal(SIGKILL);
  unlinked_looks_ = 0;
}

void NodeKeeper::look() {
  if (watched_ && watched_->end.wait_until(steady_now())) {
    ended_(watched_->pid);
    watched_.reset();
  }
  if (const auto node = running_keeper(cluster_.path)) {  // perhaps one that a user has started
    watch(*node);
    restart_at_.reset();
    given_up_ = false;
    return;
  }
  if (given_up_) return;
  const bool starts = daemon_ && !node::ProcessEnd(daemon_->pid).wait_until(steady_now());
  if (starts) return;
  const std::vector<std::string> words = words_of_node(cluster_.path);
  if (words.empty()) {
    up_since_.reset();
    restart_at_.reset();
    return;
  }
  if (!restart_at_) return died();
  if (steady_now() < *restart_at_) return;
  restart_at_.reset();
  up_since_ = steady_now();
  auto started = start_role(words, cluster_.log_of("node"));
  if (started)
    daemon_ = *std::move(started);
  else
    log::error("event=node_not_started message=\"{}\"", started.error().message);
}

}  // namespace tandem::app
