// The agent translates between two conversations: messages of the controller and calls of a
// ProcessHost. Exits come on the host's own thread and are posted as turns, so that all members are
// used by the actor's thread alone. A report that the link refuses is logged and not sent again:
// the next introduction tells the same.
#include "runtime/node/agent.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/link/endpoint.h"
#include "runtime/node/open_files.h"

namespace tandem::node {

std::vector<std::string> rank_words(const AgentConfig& config) {
  return {config.controller,
          config.bind,
          config.advertise,
          config.ports,
          std::to_string(config.kept ? 0 : getpid()),
          std::to_string(config.alone_max / std::chrono::seconds(1))};
}

std::vector<std::string> id_words(const RankId& id) {
  return {id.actor, std::to_string(id.incarnation.value), std::to_string(id.rank)};
}

namespace {

// The program's argv is the user's own, so that the words are in a variable.
void run_program(SpawnSpec& spec, SpawnRank& spawn, const AgentConfig& config) {
  spec.users_program = spawn.arguments.empty();
  if (!spec.users_program) {
    spec.argv = std::move(spawn.arguments);
    spec.argv.insert(spec.argv.begin(), config.program);
  }
  spec.argv.insert(spec.argv.end(), spawn.program.begin(), spawn.program.end());
  spec.working_directory = std::move(spawn.working_directory);
  spec.environment.assign(spawn.environment.begin(), spawn.environment.end());
  std::string text;
  for (const auto& words : {id_words(spawn.id), rank_words(config)})
    for (const std::string& word : words)
      text += (text.empty() ? "" : std::string(1, kActorWordSeparator)) + word;
  spec.environment.emplace_back(kActorVariable, std::move(text));
  if (spec.users_program) spec.environment.emplace_back(kOpenFilesVariable, "");
}

void run_own_binary(SpawnSpec& spec, SpawnRank& spawn, const AgentConfig& config) {
  spec.argv.push_back(config.program);
  for (std::string& argument : spawn.arguments) spec.argv.push_back(std::move(argument));
  for (std::string& word : rank_words(config)) spec.argv.push_back(std::move(word));
}

// A rank would dial a socket that is gone until it is ended for having said nothing.
Result<void> can_dial(const std::string& controller) {
  const auto at = link::parse_endpoint(controller);
  std::error_code ignored;
  if (!at || !at->is_local() || std::filesystem::exists(at->path, ignored)) return {};
  return Error{.message = "the controller's socket is gone: " + at->path +
                          " was removed by another program"};
}

}  // namespace

Agent::Agent(AgentConfig config, ProcessHost& host, actor::Ref<AgentEvents> controller)
    : config_(std::move(config)), host_(host), controller_(std::move(controller)) {}

ExitHandler Agent::on_exit(actor::Context& cx, const RankId& id) {
  return [this, post = cx.turn_poster(), id](ProcessId, ExitStatus status) {
    post([this, id, status](actor::Context&) { exited(id, status); });
  };
}

bool Agent::adopt(actor::Context& cx, const KeptRank& rank) {
  const auto adopted = host_.adopt(rank.pid, rank.born, on_exit(cx, rank.id));
  if (!adopted && adopted.error().code != ErrorCode::kNotFound) {
    if (log::worth_a_line(++adoptions_failed_))
      log::error("event=rank_not_watched actor={} pid={} message=\"{}\"", rank.id.actor, rank.pid,
                 adopted.error().message);
    return false;
  }
  log::info("event=rank_found actor={} incarnation={} rank={} pid={} lives={}", rank.id.actor,
            rank.id.incarnation.value, rank.id.rank, rank.pid, adopted.has_value());
  if (!adopted) {
    note_end(rank.id, {});  // the introduction tells of it
    return true;
  }
  ranks_.insert_or_assign(rank.id, Running{adopted->id, adopted->pid, UsageMeter(adopted->pid)});
  if (config_.usage_interval > Duration::zero() && !usage_reported_) report_usage(cx);
  return true;
}

void Agent::find_ranks(actor::Context& cx) {
  if (config_.kept && !adopted_) {
    adopted_ = true;
    for (const KeptRank& rank : config_.kept->found())
      if (!ranks_.contains(rank.id) && !adopt(cx, rank)) adopted_ = false;
    if (!adopted_) {
      cx.after(kNameRetryDelay, [this](actor::Context& then) { find_ranks(then); });
      return;
    }
  }
  introduce();
}

void Agent::introduce() {
  if (config_.kept && !adopted_) return;  // it would leave out ranks that live
  ++introductions_;
  NodeUp up = config_.node;
  for (const auto& [id, rank] : ranks_) up.ranks.push_back({id, rank.pid});
  up.ended.assign(ended_.begin(), ended_.end());
  up.newest_order = newest_order_;
  up.leaving = leaving_;
  if (controller_.tell(std::move(up)) != actor::Delivery::kAccepted)
    log::warn("event=node_up_not_sent node={}", config_.node.node);
}

void Agent::handle(actor::Context& cx, SpawnRank spawn) {
  if (!newest_order_ || comes_later(spawn.id, *newest_order_)) newest_order_ = spawn.id;
  if (const auto lives = ranks_.find(spawn.id); lives != ranks_.end())
    return report_spawn(spawn.id, RankSpawned{spawn.id, lives->second.pid});
  if (const auto ended = std::ranges::find(ended_, spawn.id, &RankExited::id);
      ended != ended_.end())
    return report_spawn(spawn.id, RankExited(*ended));
  SpawnSpec spec{.name = spawn.id.actor, .log_path = spawn.log_path};
  spawn.program.empty() ? run_own_binary(spec, spawn, config_) : run_program(spec, spawn, config_);
  spec.secret = config_.secret;
  std::string visible;
  // Without GPUs of its own a rank inherits the agent's variable, if any.
  for (const std::string& uuid : spawn.gpus) visible += (visible.empty() ? "" : ",") + uuid;
  if (!visible.empty()) spec.environment.emplace_back("CUDA_VISIBLE_DEVICES", visible);
  // Blocks until the program has been loaded. A process that ends at once is still reported after
  // RankSpawned (AG-1): its exit is a turn, which cannot run before this handler has ended.
  const auto may_start = can_dial(config_.controller);
  auto started =
      may_start ? host_.spawn(std::move(spec), on_exit(cx, spawn.id)) : may_start.error();
  AgentEvents event;
  if (!started) {
    event = RankSpawnFailed{spawn.id, started.error().message, lacks_disk(started.error())};
  } else {
    if (config_.kept) config_.kept->add(spawn.id, started->pid);
    ranks_.insert_or_assign(spawn.id, Running{started->id, started->pid, UsageMeter(started->pid)});
    if (config_.usage_interval > Duration::zero() && !usage_reported_) report_usage(cx);
    event = RankSpawned{spawn.id, started->pid};
  }
  report_spawn(spawn.id, std::move(event));
}

void Agent::report_spawn(const RankId& id, AgentEvents event) {
  if (controller_.tell(std::move(event)) != actor::Delivery::kAccepted)
    log::warn("event=spawn_report_lost actor={}", id.actor);
}

void Agent::handle(actor::Context&, StopRankProcess stop) {
  const auto it = ranks_.find(stop.id);
  if (it != ranks_.end()) host_.stop(it->second.process, std::chrono::milliseconds(stop.grace_ms));
}

void Agent::handle(actor::Context& cx, NodeRefused refused) {
  // The other agent may have ended without its link's end being known yet: ask again for a while.
  if (introductions_ >= kNameAttemptsMax) {
    CHECK(config_.on_refused && "an agent that may be refused must say what follows");
    return config_.on_refused(refused);
  }
  log::info("event=node_name_in_use node={} by_pid={}", config_.node.node, refused.pid);
  cx.after(kNameRetryDelay, [this](actor::Context&) { introduce(); });
}

void Agent::handle(actor::Context&, IntroduceNode) { introduce(); }

void Agent::handle(actor::Context& cx, LinkCameUp up) {
  config_.alone_max = up.alone_max;
  introductions_ = 0;
  find_ranks(cx);
}

void Agent::handle(actor::Context&, HostEnds) {
  leaving_ = true;
  introduce();
  end_if_empty();
}

void Agent::end_if_empty() {
  const bool all_known = !config_.kept || adopted_;
  if (leaving_ && all_known && ranks_.empty() && config_.on_empty) config_.on_empty();
}

void Agent::note_end(const RankId& id, const ExitStatus& status) {
  ranks_.erase(id);
  if (config_.kept) config_.kept->remove(id);
  RankExited event{.id = id,
                   .description = describe(status),
                   .out_of_memory = status.memory_kill,
                   .memory_peak_bytes = static_cast<std::int64_t>(status.memory_peak_bytes)};
  if (status.memory_last_bytes)
    event.memory_last_bytes = static_cast<std::int64_t>(*status.memory_last_bytes);
  if (status.code) event.code = *status.code;
  if (status.signal) event.signal = *status.signal;
  log::info("event=rank_exited actor={} incarnation={} rank={} how=\"{}\" memory_peak_mib={}",
            id.actor, id.incarnation.value, id.rank, event.description,
            event.memory_peak_bytes >> 20);
  ended_.push_back(std::move(event));
  if (ended_.size() > kEndsTold) ended_.pop_front();
}

void Agent::exited(const RankId& id, const ExitStatus& status) {
  note_end(id, status);
  if (controller_.tell(RankExited(ended_.back())) != actor::Delivery::kAccepted)
    log::warn("event=exit_report_lost actor={}", id.actor);
  end_if_empty();
}

// A report that does not arrive is no loss: the next one has the newer figures. The timer ends with
// the last rank, and the next spawn sets it again.
void Agent::report_usage(actor::Context& cx) {
  UsageReport report;
  for (auto& [id, rank] : ranks_)
    if (const auto usage = rank.usage.sample(cx.now()))
      report.ranks.push_back({id, usage->cpu_percent, usage->memory_bytes,
                              usage->stopped / std::chrono::milliseconds(1)});
  if (!report.ranks.empty()) (void)controller_.tell(std::move(report));
  usage_reported_ = !ranks_.empty();
  if (!usage_reported_) return;
  cx.after(config_.usage_interval, [this](actor::Context& then) { report_usage(then); });
}

}  // namespace tandem::node
