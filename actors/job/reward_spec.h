// The sections of a job that say how completions are scored: `reward` and `pools.reward`. Parts of
// JobSpec (job_spec.h), which explains how fields and keys correspond; docs/job-file.md describes
// each key.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/actor_spec.h"
#include "actors/job/job_values.h"
#include "actors/job/placed_name.h"
#include "actors/reward/judge_reward.h"
#include "actors/reward/payment.h"

namespace tandem::job {

// Limits on the program of reward.type command and python; null: no limit. open_files and
// file_size_megabytes are kept by the kernel, the other two are watched by the reward actor.
struct RewardLimitsSpec {
  std::optional<std::int64_t> open_files = 1024;
  std::optional<std::int64_t> file_size_megabytes = 4096;
  std::optional<double> cpu_seconds_per_line = 600;
  std::optional<std::int64_t> memory_megabytes = 16384;
};

// How the judge of reward.type judge is asked (actors/reward/judge_form.h).
struct JudgeSpec {
  std::optional<std::string> model, system, prompt;
  std::optional<std::string> pattern;  // null: reward::usual_pattern()
  std::array<double, 2> range{0, 10};
  std::int64_t max_tokens = 512;
  double temperature = 0;
  JsonObject extra_body;
};

// How a completion is scored by one verifier, and how its score becomes a reward. An attempt that
// takes longer than timeout_s seconds has failed; after `retries` more attempts the group is
// discarded.
struct RewardPartSpec : reward::Payment {
  RewardType type = RewardType::kExact;
  std::optional<std::string> pattern;               // set exactly when type is regex
  std::optional<std::vector<std::string>> command;  // argv; set exactly when type is command
  std::optional<PlacedName> function;               // set exactly when type is python
  PercentReading percent = PercentReading::kWhole;  // of type math
  PythonSignature signature = PythonSignature::kAuto;
  PlacedName python{"python3"};  // the interpreter
  double start_timeout_s = 120;
  std::optional<std::string> url;                 // set exactly when type is http or judge
  std::map<std::string, std::string> header_env;  // header -> the variable that has its value
  std::int64_t batch_size = 16;                   // completions of one call of python or http
  std::int64_t concurrency = 4;                   // calls of http or judge at once
  JudgeSpec judge;
  double timeout_s = 10;
  std::int64_t retries = 2;
  // Environment variables of the program, beside those that CE-1 passes on.
  std::map<std::string, std::string> env;
  RewardLimitsSpec limits;
  std::optional<SandboxMode> sandbox;           // nullopt: auto for type code, else off
  std::vector<std::filesystem::path> readable;  // of a sandboxed program, beside its own files
  // Of type code.
  CodeLanguage language = CodeLanguage::kAuto;
  CodeScore score = CodeScore::kAll;
  double case_timeout_s = 4;
  double compile_timeout_s = 30;
  std::optional<std::int64_t> cases_max;  // nullopt: all
  std::int64_t code_memory_megabytes = 1024;
  std::vector<std::string> sources;  // empty: all
};

SandboxMode sandbox_of(const RewardPartSpec& reward);
reward::JudgeReward judge_of(const RewardPartSpec& reward);

// The reward of a job. With parts its own verifier is not used, and its payment is that of the sum.
struct RewardSpec : RewardPartSpec {
  std::int64_t replicas = 1;
  std::optional<double> on_failure;  // the reward of a failed completion; none: "discard"
  std::map<std::string, RewardPartSpec> parts;  // by name; empty: the single form
};
inline constexpr std::size_t kRewardPartsMax = 32;

// The verifiers with their names and the paths of their keys: {"", "reward"} in the single form,
// else {"format", "reward.parts.format"} and so on.
struct NamedReward {
  std::string name, path;
  const RewardPartSpec* spec = nullptr;  // borrowed
};
std::vector<NamedReward> rewards_of(const RewardSpec& reward);

// Resources of each reward actor.
struct RewardPoolSpec {
  double cpus_per_actor = 0.1;
};

}  // namespace tandem::job
