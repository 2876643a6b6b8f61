// A reward that is a Python function: how the user's interpreter is started with our runner
// (python_runner.py), which is compiled into this program, so that it is there wherever the program
// is and never of another version. The runner comes as the first line of the interpreter's input;
// from then on it is a program that reads and writes lines (command_verifier.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/enum_names.h"

namespace tandem::reward {

// The arguments that the function gets. kAuto: the runner knows the form by the parameters' names.
//
//   kVerl       data_source, solution_str, ground_truth, extra_info     one completion
//   kVerlBatch  data_sources, solution_strs, ground_truths, extra_infos lists
//   kTrl        prompts, completions, each column of the records        lists
//   kOpenrlhf   queries, prompts, labels                                lists
//   kTandem     prompt, completion, answer, data, data_source, truncated, each column of the record
enum class PythonSignature : std::uint8_t {
  kAuto,
  kVerl,
  kVerlBatch,
  kTrl,
  kOpenrlhf,
  kTandem,
};
constexpr auto enum_names(PythonSignature) {
  using enum PythonSignature;
  return enum_name_rows<PythonSignature>({{kAuto, "auto"},
                                          {kVerl, "verl"},
                                          {kVerlBatch, "verl_batch"},
                                          {kTrl, "trl"},
                                          {kOpenrlhf, "openrlhf"},
                                          {kTandem, "tandem"}});
}

struct PythonReward {
  std::string function;  // "/a/file.py:name", "/a/folder/module:name" or "module:name"
  PythonSignature signature = PythonSignature::kAuto;
  std::string interpreter = "python3";
  int batch_size = 16;  // completions in one call, at most
  // The time that the interpreter, the imports of the user's module included, has to get ready.
  Duration start_timeout = std::chrono::seconds(120);
};

std::vector<std::string> argv_of(const PythonReward& reward);
// The first line of the interpreter's input.
std::string greeting_of(const PythonReward& reward);

}  // namespace tandem::reward
