// The normalizer section of tokenizer.json, as far as it is supported: the changes that a tokenizer
// makes to a text before it looks for tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/model/charsmap.h"

namespace tandem::model {

struct NormalizerStep {
  enum class Kind {
    kNfc,
    kPrepend,
    kReplace,
    kReplaceStart,  // at the beginning of the text alone
    kReplaceRuns,   // two or more spaces in a row, by `content`
    kTrimSpaces,    // takes the spaces at both ends away
    kStripLeft,     // takes white space, as Unicode has it, away at the beginning
    kStripRight,
    kCharsmap,
  };
  Kind kind;
  std::string pattern = {};  // kReplace, kReplaceStart: what is replaced, not empty
  std::string content = {};  // kPrepend, kReplace, kReplaceStart, kReplaceRuns
  std::shared_ptr<const Charsmap> charsmap = {};  // kCharsmap
};

// `text` (UTF-8) after all steps, in order, or nothing where no step changes it. An empty text
// stays empty. The time is n log n.
std::optional<std::string> normalize(std::string_view text,
                                     const std::vector<NormalizerStep>& steps);

// Unicode's White_Space.
bool is_white_space(std::uint32_t code_point);

// `text` with `content` in place of each `pattern`, the leftmost first.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace tandem::model
