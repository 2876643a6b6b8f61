#define PCRE2_CODE_UNIT_WIDTH 8

#include "actors/model/pretokenizer.h"

#include <pcre2.h>

#include "actors/model/regex_dialect.h"
#include "runtime/base/check.h"

namespace tandem::model {
namespace {

using View = std::string_view;

// A stretch of a piece: a match, or the text between two.
struct Part {
  View text;
  bool matched;
};

// Joins parts to words as `behavior` says; kRemoved and kIsolated join nothing.
void join(const std::vector<Part>& parts, SplitBehavior behavior, std::vector<View>& words) {
  const std::size_t first = words.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool begins = i == 0, before = !begins && parts[i - 1].matched;
    bool joined = false;  // whether part i belongs to the word of part i - 1
    if (behavior == SplitBehavior::kMergedWithPrevious) joined = parts[i].matched && !before;
    if (behavior == SplitBehavior::kMergedWithNext) joined = !parts[i].matched && before;
    if (behavior == SplitBehavior::kContiguous) joined = parts[i].matched == before;
    if (joined && words.size() > first)
      words.back() = View(words.back().data(), words.back().size() + parts[i].text.size());
    else
      words.push_back(parts[i].text);
  }
}

}  // namespace

const char* const kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const kDigitRegex = R"(\p{N})";
const char* const kDigitsRegex = R"(\p{N}+)";

struct WordSplit::Code {
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  };
  std::unique_ptr<pcre2_code, Free> compiled;
  Options options;

  // Appends the parts of `piece` to `parts`.
  Result<void> find(View piece, pcre2_match_data* data, std::vector<Part>& parts) const;
};

WordSplit::WordSplit(std::unique_ptr<const Code> code) : code_(std::move(code)) {}
WordSplit::WordSplit(WordSplit&&) noexcept = default;
WordSplit& WordSplit::operator=(WordSplit&&) noexcept = default;
WordSplit::~WordSplit() = default;

Result<WordSplit> WordSplit::make(View regex, const std::string& where, Options options) {
  const Result<std::string> pattern = pcre2_pattern(regex, where);
  if (!pattern) return pattern.error();
  return compile(*pattern, regex, where, options);
}

Result<WordSplit> WordSplit::of_text(View text, const std::string& where, Options options) {
  return compile(pcre2_literal(text), text, where, options);
}

Result<WordSplit> WordSplit::compile(const std::string& pattern, View shown,
                                     const std::string& where, Options options) {
  const auto refuse = [&](const std::string& why) {
    return Error{.message = "tokenizer: pre_tokenizer regex '" + std::string(shown.substr(0, 400)) +
                            "' is not supported: " + why,
                 .where = where};
  };
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_unique<Code>();
  code->options = options;
  const std::unique_ptr<pcre2_compile_context, Code::Free> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  code->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE, &error, &offset,
                                     context.get()));
  if (code->compiled == nullptr) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(error, text, sizeof text);
    return refuse(reinterpret_cast<const char*>(text));
  }
  std::uint32_t may_be_empty = 0;
  pcre2_pattern_info(code->compiled.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty != 0) return refuse("it may match no text");
  // A failure is no error: PCRE2 then interprets the regex.
  pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE);
  return WordSplit(std::move(code));
}

Result<void> WordSplit::Code::find(View piece, pcre2_match_data* data,
                                   std::vector<Part>& parts) const {
  std::size_t done = 0;
  while (done < piece.size()) {
    const int found = pcre2_match(compiled.get(), reinterpret_cast<PCRE2_SPTR>(piece.data()),
                                  piece.size(), done, PCRE2_NO_UTF_CHECK, data, nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return Error{.message = "tokenizer: the pre_tokenizer regex gave up (PCRE2 error " +
                              std::to_string(found) + ") at byte " + std::to_string(done)};
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
    CHECK(span[1] > span[0]);  // compile() refuses expressions that match no text
    if (span[0] > done) parts.push_back({piece.substr(done, span[0] - done), options.invert});
    parts.push_back({piece.substr(span[0], span[1] - span[0]), !options.invert});
    done = span[1];
  }
  if (done < piece.size()) parts.push_back({piece.substr(done), options.invert});
  return {};
}

Result<std::vector<View>> WordSplit::split(const std::vector<View>& pieces) const {
  const std::unique_ptr<pcre2_match_data, Code::Free> data(
      pcre2_match_data_create_from_pattern(code_->compiled.get(), nullptr));
  std::vector<View> words;
  std::vector<Part> parts;
  for (const View piece : pieces) {
    parts.clear();
    if (Result<void> found = code_->find(piece, data.get(), parts); !found) return found.error();
    if (code_->options.behavior == SplitBehavior::kRemoved)
      for (const Part& part : parts)
        if (part.matched)
          return Error{.message = "tokenizer: the pre_tokenizer would leave out '" +
                                  std::string(part.text.substr(0, 40)) + "'"};
    join(parts, code_->options.behavior, words);
  }
  return words;
}

}  // namespace tandem::model
