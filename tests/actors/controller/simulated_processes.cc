#include "tests/actors/controller/simulated_processes.h"

#include <csignal>
#include <utility>

#include "runtime/node/agent_messages.h"
#include "tests/actors/controller/simulated_rank.h"

namespace tandem::controller {

using node::ExitStatus;
using node::ProcessId;

namespace {

constexpr pid_t kFirstPid = 1000;

pid_t pid_of(ProcessId id) { return kFirstPid + static_cast<pid_t>(id.value); }
ProcessId id_of(pid_t pid) { return ProcessId{static_cast<std::uint64_t>(pid - kFirstPid)}; }
// A machine gives each pid once.
node::ProcessBirth birth(pid_t pid) { return {"simulated", static_cast<std::uint64_t>(pid)}; }

// The words of a rank behind the program: arguments of our binary, or of a user's program the
// content of its variable.
std::vector<std::string> argv_of(const node::SpawnSpec& spec) {
  for (const auto& [name, value] : spec.environment) {
    if (name != node::kActorVariable) continue;
    std::vector<std::string> argv{spec.argv.front(), ""};
    for (const char c : value)
      c == node::kActorWordSeparator ? void(argv.emplace_back()) : argv.back().push_back(c);
    return argv;
  }
  return spec.argv;
}

}  // namespace

std::vector<node::KeptRank> SimulatedMachine::Kept::found() {
  std::vector<node::KeptRank> ranks;
  for (const auto& [id, pid] : pids_) ranks.push_back({id, pid, birth(pid)});
  return ranks;
}

SimulatedMachine::SimulatedMachine(actor::SimulatedExecutor& executor, const ProcessTimes& times,
                                   SimulatedProgram program, Began began)
    : executor_(executor),
      times_(times),
      program_(std::move(program)),
      began_(std::move(began)),
      rng_(executor.draw_seed()),
      table_(std::make_shared<Table>()) {}

Duration SimulatedMachine::draw(Duration max) {
  return Duration(rng_.below(static_cast<std::uint64_t>(max.count()) + 1));
}

Result<node::SpawnedProcess> SimulatedMachine::start(const node::SpawnSpec& spec,
                                                     const std::weak_ptr<int>& watcher,
                                                     node::ExitHandler on_exit) {
  const bool fails = times_.spawns_fail > 0 && rng_.unit() < times_.spawns_fail;
  if (fails || spawns_to_fail_ > 0) {
    if (!fails) --spawns_to_fail_;
    return Error{ErrorCode::kFailed, "cannot start " + spec.name + ": no room for a process"};
  }
  const ProcessId id{++id_last_};
  const std::vector<std::string> argv = argv_of(spec);
  const node::RankId rank = rank_of_arguments(argv);
  table_->emplace(id, Process{rank, watcher, std::move(on_exit), nullptr});
  executor_.at(executor_.now() + draw(times_.start_max),
               [this, weak = std::weak_ptr(table_), id, argv, rank] {
                 const auto table = weak.lock();
                 if (!table || !table->contains(id)) return;
                 table->at(id).body = program_(argv, [this, weak, id](int code) {
                   if (weak.lock()) end_at(executor_.now(), id, {.code = code});
                 });
                 began_(rank);
               });
  return node::SpawnedProcess{id, pid_of(id)};
}

void SimulatedMachine::end_at(Time when, ProcessId process, const ExitStatus& status) {
  executor_.at(when, [this, weak = std::weak_ptr(table_), process, status] {
    const auto table = weak.lock();
    if (!table) return;
    auto ended = table->extract(process);
    if (ended.empty()) return;
    ended.mapped().body.reset();
    executor_.at(executor_.now() + draw(times_.notice_max),
                 [watcher = ended.mapped().watcher, process, status,
                  on_exit = std::move(ended.mapped().on_exit)] {
                   if (watcher.lock()) on_exit(process, status);
                 });
  });
}

void SimulatedMachine::signal(ProcessId process, int signal_number) {
  end_at(executor_.now(), process, {.signal = signal_number});
}

void SimulatedMachine::stop(ProcessId process, Duration grace) {
  const Duration obeys = draw(times_.obey_max);
  if (obeys <= grace)
    end_at(executor_.now() + obeys, process, {.code = 0});
  else
    end_at(executor_.now() + grace, process, {.signal = SIGKILL});
}

std::vector<SimulatedMachine::Running> SimulatedMachine::running() const {
  std::vector<Running> running;
  for (const auto& [id, process] : *table_)
    running.push_back({id, process.rank, process.body.get()});
  return running;
}

std::vector<node::RankId> SimulatedMachine::earlier_than(const node::RankId& rank) const {
  std::vector<node::RankId> earlier;
  for (const auto& [id, process] : *table_)
    if (process.rank.incarnation < rank.incarnation && process.rank.actor == rank.actor)
      earlier.push_back(process.rank);
  return earlier;
}

Result<node::SpawnedProcess> SimulatedProcessHost::spawn(node::SpawnSpec spec,
                                                         node::ExitHandler on_exit) {
  return machine_.start(spec, self_, std::move(on_exit));
}

Result<node::SpawnedProcess> SimulatedProcessHost::adopt(pid_t pid, const node::ProcessBirth& born,
                                                         node::ExitHandler on_exit) {
  const auto found = machine_.table_->find(id_of(pid));
  if (found == machine_.table_->end() || born != birth(pid))
    return Error{ErrorCode::kNotFound, "it has ended"};
  found->second.watcher = self_;
  found->second.on_exit = std::move(on_exit);
  return node::SpawnedProcess{found->first, pid};
}

void SimulatedProcessHost::signal(ProcessId process, int signal_number) {
  machine_.signal(process, signal_number);
}

void SimulatedProcessHost::stop(ProcessId process, Duration grace) {
  machine_.stop(process, grace);
}

void SimulatedProcessHost::stop_all(Duration grace) {
  for (const auto& process : machine_.running()) machine_.stop(process.id, grace);
}

}  // namespace tandem::controller
