// `tandem tokenize`: text to token ids and back, by the tokenizer of a model directory. Needs no
// weights and no cluster.
#pragma once

#include <iosfwd>

#include "actors/cli/client_program.h"
#include "actors/cli/command.h"

namespace tandem::app {

// Returns the exit code; an error has been printed. `in` is read to its end where the command names
// no text, and line by line as the file `-` of --jsonl.
int tokenize(const cli::TokenizeCommand& command, std::istream& in, const cli::Console& console);

}  // namespace tandem::app
