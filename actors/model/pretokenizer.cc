#define PCRE2_CODE_UNIT_WIDTH 8

#include "actors/model/pretokenizer.h"

#include <pcre2.h>

#include <algorithm>
#include <array>

#include "runtime/base/check.h"

namespace tandem::model {
namespace {

// The expressions of these models' tokenizer.json files, character by character.
constexpr std::array kKnownRegexes = {
    // GPT-2
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    // Qwen2, Qwen2.5, Qwen3
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // Llama 3
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"(\p{N})",
    R"(\p{N}+)",
};

// Rewrites \s and \S: PCRE2's \s includes U+180E, which Unicode's White_Space and Oniguruma's \s do
// not.
std::string for_pcre2(std::string_view regex) {
  std::string out;
  for (std::size_t i = 0; i < regex.size(); ++i) {
    const std::string_view pair = regex.substr(i, 2);
    if (pair == R"(\s)" || pair == R"(\S)") {
      out += pair == R"(\s)" ? R"(\p{White_Space})" : R"(\P{White_Space})";
      ++i;
    } else {
      out += regex[i];
    }
  }
  return out;
}

}  // namespace

const char* const kGpt2Regex = kKnownRegexes[0];
const char* const kDigitRegex = kKnownRegexes[3];
const char* const kDigitsRegex = kKnownRegexes[4];

struct WordRegex::Code {
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> compiled;
};

WordRegex::WordRegex(std::unique_ptr<const Code> code) : code_(std::move(code)) {}
WordRegex::WordRegex(WordRegex&&) noexcept = default;
WordRegex& WordRegex::operator=(WordRegex&&) noexcept = default;
WordRegex::~WordRegex() = default;

Result<WordRegex> WordRegex::make(std::string_view regex, const std::string& where) {
  if (std::find(kKnownRegexes.begin(), kKnownRegexes.end(), regex) == kKnownRegexes.end())
    return Error{
        .message = "tokenizer: pre_tokenizer regex '" + std::string(regex) + "' is not supported",
        .where = where,
        .help = "supported: those of GPT-2, Qwen2 and Llama 3"};
  const std::string translated = for_pcre2(regex);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_unique<Code>();
  code->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                     translated.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset,
                                     nullptr));
  CHECK(code->compiled != nullptr);
  // A failure is no error: PCRE2 then interprets the regex.
  pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE);
  return WordRegex(std::move(code));
}

Result<void> WordRegex::split(std::string_view text, std::vector<std::string_view>& words) const {
  const std::unique_ptr<pcre2_match_data, Code::Free> data(
      pcre2_match_data_create_from_pattern(code_->compiled.get(), nullptr));
  std::size_t done = 0;
  while (done < text.size()) {
    const int found = pcre2_match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), done, PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return Error{.message = "tokenizer: the pre_tokenizer regex gave up (PCRE2 error " +
                              std::to_string(found) + ") at byte " + std::to_string(done)};
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
    CHECK(span[1] > span[0]);  // no known regex has an empty match, so the loop makes progress
    if (span[0] > done) words.push_back(text.substr(done, span[0] - done));
    words.push_back(text.substr(span[0], span[1] - span[0]));
    done = span[1];
  }
  if (done < text.size()) words.push_back(text.substr(done));
  return {};
}

}  // namespace tandem::model
