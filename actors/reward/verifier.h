// Judges completions: a score, or a failure with its reason, never one for the other.
//
//   exact    the completion without surrounding white space equals the answer; special tokens in it
//            are text, but for the stop token at its end. All others see it without them
//   regex    `pattern` is searched in the completion; its first group, where it has one, must equal
//            the answer; without a group a match is enough
//   math     equal as exact numbers (math_answer.h)
//   command  a program of the user's decides (command_verifier.h)
//
// A record without a usable answer, or an answer that is not a string or a number, is a failure.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/reward.h"
#include "actors/reward/line_child.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::actors {

struct ScoreItem {
  std::string prompt;
  std::string completion;
  nlohmann::json answer;  // null where the record has none
  nlohmann::json data;    // the dataset's record
  bool truncated = false;
  std::optional<std::string> special_text;  // of the completion, as Trajectory has it
};

class Verifier {
 public:
  virtual ~Verifier() = default;
  using Done = std::function<void(runtime::Context&, TrajectoryScore)>;
  // Calls `done` in the actor's turn, now or later, exactly once as long as the verifier lives.
  virtual void score(runtime::Context& cx, ScoreItem item, Done done) = 0;
  // `told` hears, in the actor's turn, when the program behind a verifier does not do its work, as
  // often as that happens; its `from` and `count` are the actor's to fill in. Called once, first.
  using Told = std::function<void(runtime::Context&, RewardTrouble)>;
  virtual void report_to(Told /*told*/) {}
};

enum class VerifierType : std::uint8_t { kExact, kRegex, kMath, kCommand };

struct VerifierConfig {  // the reward.* keys of a job
  VerifierType type = VerifierType::kExact;
  std::string pattern;   // of kRegex
  ChildProgram program;  // of kCommand
  Duration timeout = std::chrono::seconds(10);
  int retries = 2;
  std::string log;  // the file that holds the program's stderr, for messages; may be empty
};

// "type=command command=\"python3 r.py\" timeout_s=10 …", for the log.
std::string describe(const VerifierConfig& config);

// kInvalid: a pattern that does not compile, an empty command. `spawn` is used by kCommand alone.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config,
                                                LineChildSpawner spawn);

// kInvalid where the expression of a regex verifier does not compile; says what is wrong and where.
Result<void> check_pattern(const std::string& pattern);

// The answer as text: a string without surrounding white space, or a number as JSON writes it.
Result<std::string> answer_text(const nlohmann::json& answer);

}  // namespace tandem::actors
