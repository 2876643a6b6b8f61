// Judges completions. The result is a score or a failure with its reason, never one in place of the
// other (TrajectoryScore). The verifiers that a job can ask for are in make_verifier.h.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "actors/messages/reward.h"
#include "runtime/actor/context.h"
#include "runtime/base/json.h"

namespace tandem::reward {

struct ScoreItem {
  std::string prompt;
  std::string completion;
  nlohmann::json answer;    // null where the record has none
  nlohmann::json data;      // the dataset's record
  std::string data_source;  // the data set that the record is of; empty: it does not say
  bool truncated = false;
  std::optional<std::string> special_text;  // the completion's, as in Trajectory
};

// Called in the turns of the actor that owns the verifier.
class Verifier {
 public:
  virtual ~Verifier() = default;
  using Done = std::function<void(actor::Context&, messages::TrajectoryScore)>;
  // Calls `done` in the actor's turn, now or later, exactly once while the verifier exists.
  virtual void score(actor::Context& cx, ScoreItem item, Done done) = 0;
  // The answer that a verifier of ours finds in the completion, for people who ask why; nullopt
  // where it finds none or looks for none. A program says its own in `extra` (reward_answer.h).
  virtual std::optional<std::string> found(const ScoreItem& /*item*/) const { return {}; }
  // Sets the function that hears, in the actor's turn, of each failure of the program behind a
  // verifier to do its work. The actor fills in `from` and `count`. Call report_to() once, before
  // score().
  using Told = std::function<void(actor::Context&, messages::RewardTrouble)>;
  virtual void report_to(Told /*told*/) {}
};

}  // namespace tandem::reward
