// The verifiers that a job file can ask for.
//
//   exact    the completion without surrounding white space equals the answer. Special tokens in
//            the completion are text, except the stop token at its end; the other verifiers see
//            the completion without special tokens
//   regex    `pattern` is searched in the completion. Its first group, where it has one, must equal
//            the answer; without a group a match is enough
//   math     the two are equal as exact numbers (math_answer.h)
//   command  a program of the user's decides (command_verifier.h)
//   python   a Python function of the user's decides (python_program.h)
//   http     a server decides (http_verifier.h)
//   judge    a language model behind a server grades the completion (judge_form.h)
//   code     the completion's program is run against the record's tests (code_verifier.h)
//
// A job has one of these, or several whose sum is the reward (sum_verifier.h).
//
// A record without a usable answer, or with an answer that is not a string or a number, is a
// failure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/reward/code_judge.h"
#include "actors/reward/http_verifier.h"
#include "actors/reward/judge_form.h"
#include "actors/reward/math_answer.h"
#include "actors/reward/python_program.h"
#include "actors/reward/sum_verifier.h"
#include "actors/reward/verifier.h"
#include "actors/reward/verifier_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/node/child_program.h"
#include "runtime/node/line_child.h"
#include "runtime/sandbox/layers.h"

namespace tandem::reward {

struct VerifierConfig {  // the reward.* keys of a job
  VerifierType type = VerifierType::kExact;
  std::string pattern;                              // set for kRegex
  PercentReading percent = PercentReading::kWhole;  // of kMath
  node::ChildProgram program;  // set for kCommand; for kPython without its argv
  PythonReward python;         // set for kPython
  HttpReward http;             // set for kHttp and kJudge, where a call has one item
  JudgeReward judge;           // of kJudge
  CodeReward code;             // set for kCode, whose interpreter is that of `python`
  // Of kCommand, kPython and kCode. Where it is on, enter_sandboxes() (reward_sandbox.h) must have
  // been called: it sets program.sandbox.
  sandbox::SandboxMode sandbox = sandbox::SandboxMode::kOff;
  std::vector<std::string> readable;  // absolute paths that a sandboxed program may read
  Duration timeout = std::chrono::seconds(10);
  int retries = 2;
  std::optional<int> threads = {};  // of kCode, programs at once; nullopt: the node's CPUs
  std::string log;  // the file that holds the program's stderr, for messages; may be empty
};

// A reward of a job: one part without a name, or several with names.
struct RewardParts {
  std::vector<RewardPart> parts;
  std::vector<VerifierConfig> verifiers;  // one for each part
  Payment whole;
};

// "type=command command=\"python3 r.py\" timeout_s=10 …", for the log; of a sandbox also the layers
// that this machine gave it.
std::string describe(const VerifierConfig& config);
// The same of each part, behind its name.
std::string describe(const RewardParts& reward);

// Fails with kInvalid for a pattern that does not compile, for an empty command, and where
// http_post_to() does. Only kCommand and kPython use `spawn`.
Result<std::unique_ptr<Verifier>> make_verifier(const VerifierConfig& config,
                                                node::LineChildSpawner spawn);

// One verifier for all parts. A part that is paid as it is scored, and is the only one, is that
// part's own verifier.
Result<std::unique_ptr<Verifier>> make_reward(const RewardParts& reward,
                                              const node::LineChildSpawner& spawn);

// Fails with kInvalid where the expression of a regex verifier does not compile; the message says
// what is wrong and where.
Result<void> check_pattern(const std::string& pattern);

// Whether the verifier compares completions with an answer, so that each record must have one.
bool needs_answer(VerifierType type, const std::string& pattern);

// The answer as text: a string without surrounding white space, or a number as JSON writes it.
Result<std::string> answer_text(const nlohmann::json& answer);

}  // namespace tandem::reward
