#include "actors/reward/reward_sandbox.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/home_path.h"
#include "runtime/node/find_program.h"
#include "runtime/sandbox/probe.h"
#include "runtime/sandbox/tree.h"

namespace tandem::reward {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kProgramProcesses = 512;  // libraries start a thread for each CPU, or more
constexpr std::uint64_t kProgramScratchBytes = 1024u << 20;

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<std::string> readable_of(const VerifierConfig& config) {
  std::vector<std::string> readable = config.readable;
  if (config.type == VerifierType::kCode) return readable;  // the verifier adds its tools
  const bool python = config.type == VerifierType::kPython;
  std::vector<std::string> argv = python ? argv_of(config.python) : config.program.argv;
  if (argv.empty()) return readable;
  if (const auto program = node::find_program(argv.front(), getenv("PATH"))) argv[0] = *program;
  if (python) argv.resize(1);  // the others are code and settings
  append(readable, sandbox::readable_for_all(argv, home_folder()));
  if (python) {  // "/a/file.py:name", "/a/folder/module:name" or "module:name"
    const std::string& function = config.python.function;
    const fs::path module = function.substr(0, function.rfind(':'));
    if (module.is_absolute()) append(readable, sandbox::readable_for(module, home_folder()));
  }
  return readable;
}

sandbox::Profile profile_of(const VerifierConfig& config, const std::vector<std::string>& hidden) {
  const node::ChildLimits& limits = config.program.limits;
  constexpr std::uint64_t kAnyNumberOfFiles = 1u << 20;
  return {.memory_bytes = limits.memory_bytes,
          .processes = kProgramProcesses,
          .cpu_seconds = std::nullopt,  // it is watched for each line, while the program lives on
          .file_bytes = limits.file_bytes.value_or(kProgramScratchBytes),
          .scratch_bytes =
              std::min(kProgramScratchBytes, limits.file_bytes.value_or(kProgramScratchBytes)),
          .open_files = limits.open_files.value_or(kAnyNumberOfFiles),
          .readable = readable_of(config),
          .hidden = hidden};
}

}  // namespace

Result<void> enter_sandboxes(RewardParts& reward, const std::vector<std::string>& hidden) {
  std::optional<sandbox::Layers> layers;
  for (VerifierConfig& config : reward.verifiers) {
    if (config.sandbox == sandbox::SandboxMode::kOff) continue;
    if (!layers) layers = sandbox::probe_layers();
    const auto plan = sandbox::plan_of(config.sandbox, *layers);
    if (!plan) {
      Error why = plan.error();
      why.where = "reward.sandbox";
      return why;
    }
    config.program.sandbox = sandbox::Box{*plan, profile_of(config, hidden)};
  }
  return {};
}

std::string sandboxes_of(const RewardParts& reward) {
  std::vector<std::string> told;
  std::string all;
  for (const VerifierConfig& config : reward.verifiers) {
    if (!config.program.sandbox) continue;
    const std::string one = text(config.program.sandbox->plan);
    if (std::ranges::count(told, one) > 0) continue;
    told.push_back(one);
    all += (all.empty() ? "" : "; ") + one;
  }
  return all;
}

}  // namespace tandem::reward
