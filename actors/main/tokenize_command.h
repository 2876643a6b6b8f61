// `tandem tokenize`: text to token ids and back, by the tokenizer of a model directory.
#pragma once

#include <iosfwd>

#include "actors/main/cli/client_program.h"
#include "actors/main/cli/command.h"

namespace tandem::cli {

// `in` is read where the command names no text, and as the file `-` of --jsonl.
int tokenize(const TokenizeCommand& command, std::istream& in, const Console& console);

}  // namespace tandem::cli
