#include "actors/reward/python_program.h"

#include "runtime/base/json.h"

namespace tandem::reward {

extern const char* const kPythonRunner;  // written by CMake from python_runner.py

namespace {

// Reads the greeting and becomes the runner; `held` is what was read behind the greeting.
constexpr const char* kBootstrap = R"(import json, os
held = b""
while b"\n" not in held: held += os.read(0, 65536) or b"{}\n"
line, held = held.split(b"\n", 1)
start = json.loads(line)
exec(compile(start["runner"], "<tandem reward runner>", "exec")))";

}  // namespace

std::vector<std::string> argv_of(const PythonReward& reward) {
  return {reward.interpreter, "-c", kBootstrap, reward.function};  // the last one is for `ps` alone
}

std::string greeting_of(const PythonReward& reward) {
  return dump_json({{"runner", kPythonRunner},
                    {"function", reward.function},
                    {"signature", spelling(reward.signature)},
                    {"batch_size", reward.batch_size}});
}

}  // namespace tandem::reward
