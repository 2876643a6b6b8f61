// `tandem tokenize`: text to token ids and back, by the tokenizer of a model directory. Needs no
// weights and no cluster.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/console.h"
#include "actors/cli/kinds.h"
#include "actors/cli/verb.h"

namespace tandem::app {

struct TokenizeCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::filesystem::path model;
  std::vector<std::string> texts;  // or ids, with `decode`; empty: read from standard input
  // A file to read instead, with one text or list per line; "-": standard input.
  std::optional<std::string> jsonl;
  bool decode = false;
  cli::OutputForm output = cli::OutputForm::kTable;
};

// Returns the exit code; an error has been printed. `in` is read to its end where the command names
// no text, and line by line as the file `-` of --jsonl.
int tokenize(const TokenizeCommand& command, std::istream& in, const cli::Console& console);

}  // namespace tandem::app
