#include "actors/rollout/external/server_process.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "runtime/base/guarded.h"

namespace tandem::rollout {
namespace {

constexpr auto kNotInherited = std::to_array<std::string_view>(
    {"TANDEM_", "SLURM_", "PMI_", "PMIX_", "MPI_", "OMPI_", "MPIR_", "I_MPI_"});

}  // namespace

std::map<std::string, std::string> server_environment(
    const char* const* ours, const std::map<std::string, std::string>& added) {
  std::map<std::string, std::string> variables;
  for (; *ours != nullptr; ++ours) {
    const std::string_view variable = *ours;
    const std::size_t equals = variable.find('=');
    const std::string_view name = variable.substr(0, equals);
    const bool left_out = std::ranges::any_of(
        kNotInherited, [name](std::string_view prefix) { return name.starts_with(prefix); });
    if (equals != variable.npos && !left_out)
      variables[std::string(name)] = variable.substr(equals + 1);
  }
  for (const auto& [name, value] : added) variables[name] = value;
  return variables;
}

struct ServerProcess::State {
  Guarded<std::optional<std::string>> end;
};

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const node::ChildProgram& program,
                                                            const node::LineChildSpawner& spawn) {
  auto state = std::make_shared<State>();
  std::unique_ptr<ServerProcess> process(new ServerProcess(state));
  node::LineChildEvents events;
  // stderr is the rollout's log.
  events.line = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  events.ended = [state](const node::ChildEnd& end) {
    state->end.with([&](auto& why) { why = end.why; });
  };
  auto child = spawn(program, std::move(events));
  if (!child) return child.error();
  process->child_ = *std::move(child);
  return process;
}

std::optional<std::string> ServerProcess::ended() const {
  auto why = state_->end.with([](const auto& end) { return end; });
  if (!why) return {};
  const char* before = "; its last lines: ";
  for (const std::string& line : child_->stderr_tail()) *why += std::exchange(before, " | ") + line;
  return why;
}

}  // namespace tandem::rollout
