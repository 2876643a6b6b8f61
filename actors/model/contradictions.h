// Finds where the files of a model's directory say different things, each of which a run would
// follow in silence: where a completion ends, and what a prompt begins with.
//
// Not here: what makes a directory unusable. Those are errors of the readers (model_config.h,
// tokenizer.h) and of load_model_info(), such as a token id beyond the model's embedding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"

namespace tandem::model {

struct Contradictions {
  // The token that the tokenizer calls eos_token, where the configuration does not have it: a
  // completion ends there too, as in vLLM and SGLang.
  std::vector<std::int32_t> further_ends;
  std::vector<std::string> warnings;  // a sentence each, without its full stop
};

// `config` and `tokenizer` were read from `directory`. A file that is not there contradicts
// nothing, and one that cannot be read is told as a warning.
Contradictions find_contradictions(const std::filesystem::path& directory,
                                   const ModelConfig& config, const Tokenizer& tokenizer);

}  // namespace tandem::model
