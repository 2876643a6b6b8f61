// Cuts text into the words that a model then tokenizes each for itself: the steps Split and Digits
// of the `tokenizers` library. A regular expression is run where PCRE2 finds the same matches as
// the library's Oniguruma (regex_dialect.h), and refused elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::model {

extern const char* const kGpt2Regex;    // pre_tokenizer ByteLevel with use_regex
extern const char* const kDigitRegex;   // pre_tokenizer Digits with individual_digits
extern const char* const kDigitsRegex;  // pre_tokenizer Digits without individual_digits

// What becomes of the matches, among the stretches between them.
enum class SplitBehavior : std::uint8_t {
  kIsolated,            // each match is a word
  kMergedWithPrevious,  // a match ends the word before it; of matches in a row only the first one
  kMergedWithNext,      // a match begins the word after it; of matches in a row only the last one
  kContiguous,          // matches in a row are one word
  kRemoved,             // no match may occur: its text would be lost
};

// A compiled step. Immutable: several threads may call split() at once.
class WordSplit {
 public:
  struct Options {
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;  // the stretches between matches count as matches
  };
  // `regex` is in the library's syntax. The error (kFailed) names what cannot be run, and `where`,
  // the file.
  static Result<WordSplit> make(std::string_view regex, const std::string& where, Options options);
  // The matches are the places of `text`, which is not empty.
  static Result<WordSplit> of_text(std::string_view text, const std::string& where,
                                   Options options);

  WordSplit(WordSplit&&) noexcept;
  WordSplit& operator=(WordSplit&&) noexcept;
  ~WordSplit();

  // Cuts each of `pieces` (valid UTF-8, not empty), and returns the words of all, in order, as
  // views of the same text. The error says that PCRE2 reached one of its limits, or which text
  // kRemoved would lose.
  Result<std::vector<std::string_view>> split(const std::vector<std::string_view>& pieces) const;

 private:
  struct Code;
  explicit WordSplit(std::unique_ptr<const Code> code);
  static Result<WordSplit> compile(const std::string& pattern, std::string_view shown,
                                   const std::string& where, Options options);
  std::unique_ptr<const Code> code_;
};

}  // namespace tandem::model
