// `tandem generate` and `tandem eval`: a model directory and one engine in this process, without a
// controller, a job or a run directory. Both compute on the CPU, but `tandem eval --url` asks a
// server. The result is printed to the console's output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"
#include "actors/main/served_completions.h"

namespace tandem::app {

// Completes each prompt once. Sampling is greedy at temperature 0; else its seed is `seed` plus the
// number of the prompt.
struct GenerateCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path model;
  std::vector<std::string> prompts;
  bool chat = false;  // each prompt is the message of a user
  std::int64_t max_tokens = 64;
  double temperature = 0.0;  // 0: greedy
  std::int64_t seed = 0;
  cli::OutputForm output = cli::OutputForm::kTable;
};

// Evaluates the model on the job's data.val_files as the job's exchange would. Fails where not one
// completion could be scored.
struct EvalCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path model;
  std::filesystem::path job;
  std::vector<std::string> sets;
  CompletionServer server;  // its url is empty: the model is computed here
  cli::OutputForm output = cli::OutputForm::kTable;
};

}  // namespace tandem::app
