// The sections of a tokenizer.json that say what happens before and after the model: normalizer,
// pre_tokenizer, decoder and post_processor. Internal to tokenizer_json.cc.
#pragma once

#include <string>

#include "actors/model/tokenizer_parts.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::model {

// The errors of one file.
struct TokenizerFile {
  const std::string& name;

  Error fail(const std::string& problem) const;
  Error refuse(const std::string& what) const;  // a feature that is not supported
};

// A member of an object, or null where it is absent; null in the file counts as absent.
const nlohmann::json* member(const nlohmann::json& object, const char* key);
bool flag(const nlohmann::json& object, const char* key, bool fallback);
// The "type" of a step, or the step itself where it has none, for an error.
std::string type_of(const nlohmann::json& step);

// Each reads one section, or a step of it, into `parts`. The decoder is read first: it says whether
// symbols are bytes or characters, where no pre_tokenizer does.
Result<void> read_decoder(const nlohmann::json& step, const TokenizerFile& file,
                          TokenizerParts& parts);
Result<void> read_normalizer(const nlohmann::json& step, const TokenizerFile& file,
                             TokenizerParts& parts);
Result<void> read_pre_tokenizer(const nlohmann::json& step, const TokenizerFile& file,
                                TokenizerParts& parts);
// Needs parts.exists: the ids that it names are checked.
Result<void> read_post_processor(const nlohmann::json& step, const TokenizerFile& file,
                                 TokenizerParts& parts);

}  // namespace tandem::model
