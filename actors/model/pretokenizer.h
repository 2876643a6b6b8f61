// Cutting text into the words that BPE then merges within: the regexes of GPT-2, Qwen2 and Llama 3,
// and SmolLM's digits.
//
// Only regexes known by their text are run: PCRE2 and the Oniguruma of the reference agree on
// these, with \s read as Unicode's White_Space, but not on every regex that both accept.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::actors {

extern const char* const kGpt2Regex;
extern const char* const kDigitRegex;   // pre_tokenizer Digits with individual_digits
extern const char* const kDigitsRegex;  // and without

class WordRegex {
 public:
  // `where` names the file in the error for an unknown regex.
  static Result<WordRegex> make(std::string_view regex, const std::string& where);

  WordRegex(WordRegex&&) noexcept;
  WordRegex& operator=(WordRegex&&) noexcept;
  ~WordRegex();

  // Appends the pieces of `text` (valid UTF-8), matches and what lies between them, in order.
  Result<void> split(std::string_view text, std::vector<std::string_view>& words) const;

 private:
  struct Code;
  explicit WordRegex(std::unique_ptr<const Code> code);
  std::unique_ptr<const Code> code_;
};

}  // namespace tandem::actors
