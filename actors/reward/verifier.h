// Judges completions. The result is a score or a failure with its reason, never one in place of the
// other.
//
//   exact    the completion without surrounding white space equals the answer. Special tokens in
//            the completion are text, except the stop token at its end; the other verifiers see
//            the completion without special tokens
//   regex    `pattern` is searched in the completion. Its first group, where it has one, must equal
//            the answer; without a group a match is enough
//   math     the two are equal as exact numbers (math_answer.h)
//   command  a program of the user's decides (command_verifier.h)
//
// A record without a usable answer, or with an answer that is not a string or a number, is a
// failure.
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
  std::optional<std::string> special_text;  // the completion's, as in Trajectory
};

// Called in the turns of the actor that owns the verifier.
class Verifier {
 public:
  virtual ~Verifier() = default;
  using Done = std::function<void(runtime::Context&, TrajectoryScore)>;
  // Calls `done` in the actor's turn, now or later, exactly once while the verifier exists.
  virtual void score(runtime::Context& cx, ScoreItem item, Done done) = 0;
  // Sets the function that hears, in the actor's turn, of each failure of the program behind a
  // verifier to do its work. The actor fills in `from` and `count`. Call report_to() once, before
  // score().
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

// Fails with kInvalid for a pattern that does not compile and for an empty command. Only kCommand
// uses `spawn`.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config,
                                                LineChildSpawner spawn);

// Fails with kInvalid where the expression of a regex verifier does not compile; the message says
// what is wrong and where.
Result<void> check_pattern(const std::string& pattern);

// The answer as text: a string without surrounding white space, or a number as JSON writes it.
Result<std::string> answer_text(const nlohmann::json& answer);

}  // namespace tandem::actors
