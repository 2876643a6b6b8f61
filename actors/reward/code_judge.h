// Runs a model's program against the tests of a record, each case in a sandbox of its own, and
// scores what came out. A fault of the program is a score of 0 with its reason; a fault of ours (no
// compiler or one that compiles nothing, no room for a process) is a failure, never a score.
//
//   CJ-1  Expected outputs and returned values never enter the sandbox. Asserts must; such a case
//         passes only where the runner writes, after them, a word that it reads after the program,
//         in C++ after the program's static objects are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/reward.h"
#include "actors/reward/code_tests.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/sandbox/layers.h"

namespace tandem::reward {

struct CodeReward {  // the keys of a job
  CodeLanguage language = CodeLanguage::kAuto;
  CodeScore score = CodeScore::kAll;
  // CPU time of a case. By the clock it has kClockPerCpu times as long, since other programs share
  // the machine.
  Duration case_timeout = std::chrono::seconds(4);
  std::optional<std::int64_t> cases_max;  // the first ones are run; nullopt: all
  Duration compile_timeout = std::chrono::seconds(30);
  std::uint64_t memory_bytes = 1u << 30;
};
inline constexpr int kClockPerCpu = 3;

// What a node judges with.
struct CodeTools {
  CodeReward reward;
  sandbox::Box box;                      // of each case
  std::vector<std::string> environment;  // "NAME=value"
  std::string python;                    // an absolute path
  std::string compiler;                  // of C++, likewise; empty: this node has none
  int retries = 0;                       // of starts that fail for want of room
};

// The interpreter itself, which `name` starts, perhaps through a script that looks for it.
Result<std::string> interpreter_of(const std::string& name);
// g++, clang++ or c++; empty: none is there.
std::string compiler_here();

// Whether this node can compile C++ at all; the Error says what it lacks.
Result<void> can_compile(const CodeTools& tools);

// Blocks until all cases are judged; where `stop` becomes readable the result means nothing. The
// program's language is that of language_for(). Cases of C++ are compiled together, so that what
// does not compile fails the first and leaves the others out; each with a `main` is compiled alone.
//
// The score is 1 or 0, or the share of cases that pass; with CodeScore::kAll the cases after the
// first that does not pass are not run. `extra` has the counts `passed` and `cases`, the
// `language`, a word for each case in `results` (passed, wrong, error, timeout, not run), and in
// `why` the first case that did not pass.
messages::TrajectoryScore judge_code(const CodeTools& tools, const CodeProgram& program,
                                     const CodeTests& tests, int stop);

}  // namespace tandem::reward
