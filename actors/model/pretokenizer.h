// Cuts text into the words that BPE then merges within, by the regular expressions of GPT-2, Qwen2
// and Llama 3 and by SmolLM's rules for digits.
//
// Only regexes whose text is known are run. PCRE2 and the Oniguruma of the reference agree on these
// (with \s read as Unicode's White_Space), but not on every regex that both accept; an unknown
// regex could therefore give other tokens without any error.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::model {

extern const char* const kGpt2Regex;
extern const char* const kDigitRegex;   // pre_tokenizer Digits with individual_digits
extern const char* const kDigitsRegex;  // pre_tokenizer Digits without individual_digits

// A compiled regex. Immutable: several threads may call split() at once.
class WordRegex {
 public:
  // `where` names the file in the error for an unknown regex.
  static Result<WordRegex> make(std::string_view regex, const std::string& where);

  WordRegex(WordRegex&&) noexcept;
  WordRegex& operator=(WordRegex&&) noexcept;
  ~WordRegex();

  // Appends the pieces of `text` (valid UTF-8) in order: the matches and the stretches between
  // them. The pieces are views of `text`. The error says that PCRE2 reached one of its limits.
  Result<void> split(std::string_view text, std::vector<std::string_view>& words) const;

 private:
  struct Code;
  explicit WordRegex(std::unique_ptr<const Code> code);
  std::unique_ptr<const Code> code_;
};

}  // namespace tandem::model
