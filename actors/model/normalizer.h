// The normalizer section of tokenizer.json, as far as it is supported: the changes that a tokenizer
// makes to a text before it looks for tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::model {

struct NormalizerStep {
  enum class Kind { kNfc, kPrepend, kReplace };
  Kind kind;
  std::string pattern = {};  // kReplace: what is replaced, not empty
  std::string content = {};  // kPrepend, kReplace
};

// `text` (UTF-8) after all steps, in order, or nothing where no step changes it. An empty text
// stays empty. The time is n log n.
std::optional<std::string> normalize(std::string_view text,
                                     const std::vector<NormalizerStep>& steps);

// `text` with `content` in place of each `pattern`, the leftmost first.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace tandem::model
