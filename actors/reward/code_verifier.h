// The reward `code`: the program in a completion is run against the tests of its record. Cases run
// on threads of the verifier, beside the actor's turns, one completion on each.
#pragma once

#include <memory>
#include <optional>

#include "actors/reward/code_judge.h"
#include "actors/reward/verifier.h"
#include "runtime/node/child_program.h"
#include "runtime/sandbox/workers.h"

namespace tandem::reward {

// All members run in the actor's turns.
class CodeVerifier final : public Verifier {
 public:
  CodeVerifier(CodeTools tools, int threads);

  // A record whose tests cannot be read is ScoreFailed.
  void score(actor::Context& cx, ScoreItem item, Done done) override;
  // A failure to judge, which is never the program's fault, is told.
  void report_to(Told told) override { told_ = std::move(told); }

 private:
  void judged(actor::Context& cx, const messages::TrajectoryScore& score, const Done& done);

  const std::shared_ptr<const CodeTools> tools_;  // shared with work that has begun
  Told told_;                                     // may be empty
  sandbox::Workers workers_;
};

// `program` has the environment and the sandbox, without one the program runs with our rights;
// `python` names the interpreter, `threads` says how many programs run at once; nullopt: one for
// each CPU of this node. kInvalid where there is no such interpreter.
Result<std::unique_ptr<Verifier>> make_code_verifier(const CodeReward& reward,
                                                     const node::ChildProgram& program,
                                                     const std::string& python, int retries,
                                                     std::optional<int> threads);

}  // namespace tandem::reward
