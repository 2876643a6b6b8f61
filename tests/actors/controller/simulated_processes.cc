#include "tests/actors/controller/simulated_processes.h"

#include <csignal>
#include <utility>

#include "runtime/node/agent_messages.h"

namespace tandem::controller {

using node::ExitStatus;
using node::ProcessId;

namespace {

constexpr pid_t kFirstPid = 1000;

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

SimulatedProcessHost::SimulatedProcessHost(actor::SimulatedExecutor& executor,
                                           const ProcessTimes& times, SimulatedProgram program)
    : executor_(executor),
      times_(times),
      program_(std::move(program)),
      rng_(executor.draw_seed()),
      table_(std::make_shared<Table>()) {}

SimulatedProcessHost::~SimulatedProcessHost() = default;

Duration SimulatedProcessHost::draw(Duration max) {
  return Duration(rng_.below(static_cast<std::uint64_t>(max.count()) + 1));
}

Result<node::SpawnedProcess> SimulatedProcessHost::spawn(node::SpawnSpec spec,
                                                         node::ExitHandler on_exit) {
  if (times_.spawns_fail > 0 && rng_.unit() < times_.spawns_fail)
    return Error{ErrorCode::kFailed, "cannot start " + spec.name + ": no room for a process"};
  const ProcessId id{++id_last_};
  const std::vector<std::string> argv = argv_of(spec);
  table_->emplace(id, Process{argv, std::move(on_exit), nullptr});
  executor_.at(executor_.now() + draw(times_.start_max),
               [this, weak = std::weak_ptr(table_), id, argv] {
                 const auto table = weak.lock();
                 if (!table || !table->contains(id)) return;
                 table->at(id).body = program_(argv, [this, weak, id](int code) {
                   if (weak.lock()) end_at(executor_.now(), id, {.code = code});
                 });
               });
  return node::SpawnedProcess{id, kFirstPid + static_cast<pid_t>(id.value)};
}

void SimulatedProcessHost::end_at(Time when, ProcessId process, const ExitStatus& status) {
  executor_.at(when, [this, weak = std::weak_ptr(table_), process, status] {
    const auto table = weak.lock();
    if (!table) return;
    auto ended = table->extract(process);
    if (ended.empty()) return;
    ended.mapped().body.reset();
    executor_.at(executor_.now() + draw(times_.notice_max),
                 [weak, process, status, on_exit = std::move(ended.mapped().on_exit)] {
                   if (weak.lock()) on_exit(process, status);
                 });
  });
}

void SimulatedProcessHost::signal(ProcessId process, int signal_number) {
  end_at(executor_.now(), process, {.signal = signal_number});
}

void SimulatedProcessHost::stop(ProcessId process, Duration grace) {
  const Duration obeys = draw(times_.obey_max);
  if (obeys <= grace)
    end_at(executor_.now() + obeys, process, {.code = 0});
  else
    end_at(executor_.now() + grace, process, {.signal = SIGKILL});
}

std::vector<SimulatedProcessHost::Running> SimulatedProcessHost::running() const {
  std::vector<Running> running;
  for (const auto& [id, process] : *table_) running.push_back({id, process.argv});
  return running;
}

}  // namespace tandem::controller
