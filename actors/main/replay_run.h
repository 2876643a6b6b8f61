// Trains a recorded run again, step by step, and compares: each batch with the journal, the weights
// after each step with the checksum that the journal has, and those of each checkpoint with its
// weights_sha256. Reads the run directory and writes nothing there.
//
// Steps are numbered as in metrics.jsonl: step N makes policy version N.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"

namespace tandem::app {

struct ReplayRequest {
  std::filesystem::path run_dir;
  std::int64_t from = 0;             // a checkpoint's step; 0: from the model, warm start included
  std::optional<std::int64_t> to;    // nullopt: the run's last step
  std::optional<std::int64_t> dump;  // the step whose batch is wanted as JSON
};

enum class ReplayDifference { kStart, kBatch, kWeights };
constexpr auto enum_names(ReplayDifference) {
  using enum ReplayDifference;
  return enum_name_rows<ReplayDifference>(
      {{kStart, "start"}, {kBatch, "batch"}, {kWeights, "weights"}});
}

struct ReplayOutcome {
  std::int64_t from = 0, done = 0;  // the steps behind `from` up to `done` are trained
  bool interrupted = false;         // `goes_on` said no
  // The first difference; nullopt: there is none up to `done`.
  struct Difference {
    std::int64_t step = 0;
    ReplayDifference what = ReplayDifference::kStart;
    std::string message;
  };
  std::optional<Difference> difference;
  std::string weights_sha256;                  // of the weights after step `done`
  std::optional<std::string> expected_sha256;  // where the run has a checkpoint of that step
  std::uint64_t recorded_bytes = 0;
  std::int64_t recorded_steps = 0;
  std::vector<std::string> notes;      // what is other than when it was recorded
  std::optional<nlohmann::json> dump;  // replay/step_dump.h
};

// `goes_on` hears how many steps are done, of how many, before each step and while the warm start
// lasts; false ends the replay. Errors: kNotFound for a run that records nothing, or a step that is
// not recorded; kInvalid for steps that the run does not have and for damaged files.
Result<ReplayOutcome> replay_run(
    const ReplayRequest& request,
    const std::function<bool(std::int64_t done, std::int64_t of)>& goes_on);

}  // namespace tandem::app
