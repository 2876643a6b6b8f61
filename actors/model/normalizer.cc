#include "actors/model/normalizer.h"

#include <algorithm>

#include "actors/model/nfc.h"
#include "actors/model/utf8.h"

namespace tandem::model {
namespace {

// `part` of `text`, or nothing where it is all of it.
std::optional<std::string> unless_all(std::string_view part, std::string_view text) {
  return part.size() == text.size() ? std::nullopt : std::optional<std::string>(part);
}

std::string with_runs_replaced(std::string_view text, std::string_view content) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find("  ", at), text.size());
    out += text.substr(at, begin - at);
    at = std::min(text.find_first_not_of(' ', begin), text.size());
    if (at > begin) out += content;
  }
  return out;
}

std::string_view trimmed_of_spaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::string_view stripped_left(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!is_white_space(next_code_point(text, at))) return text.substr(begin);
  }
  return {};
}

std::string_view stripped_right(std::string_view text) {
  for (std::size_t end = text.size(); end > 0;) {
    std::size_t begin = end - 1;
    while ((text[begin] & 0xC0) == 0x80) --begin;
    std::size_t at = begin;
    if (!is_white_space(next_code_point(text, at))) return text.substr(0, end);
    end = begin;
  }
  return {};
}

std::optional<std::string> apply(std::string_view text, const NormalizerStep& step) {
  switch (step.kind) {
    case NormalizerStep::Kind::kNfc:
      return to_nfc(text);
    case NormalizerStep::Kind::kPrepend:
      return step.content + std::string(text);
    case NormalizerStep::Kind::kReplace:
      if (text.find(step.pattern) == text.npos) return std::nullopt;
      return replace_all(text, step.pattern, step.content);
    case NormalizerStep::Kind::kReplaceStart:
      if (!text.starts_with(step.pattern)) return std::nullopt;
      return step.content + std::string(text.substr(step.pattern.size()));
    case NormalizerStep::Kind::kReplaceRuns:
      if (text.find("  ") == text.npos) return std::nullopt;
      return with_runs_replaced(text, step.content);
    case NormalizerStep::Kind::kTrimSpaces:
      return unless_all(trimmed_of_spaces(text), text);
    case NormalizerStep::Kind::kStripLeft:
      return unless_all(stripped_left(text), text);
    case NormalizerStep::Kind::kStripRight:
      return unless_all(stripped_right(text), text);
    case NormalizerStep::Kind::kCharsmap:
      return step.charsmap->apply(text);
  }
  return std::nullopt;
}

}  // namespace

bool is_white_space(std::uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(pattern, at);
    out += text.substr(at, found - at);
    if (found == text.npos) return out;
    out += content;
    at = found + pattern.size();
  }
}

std::optional<std::string> normalize(std::string_view text,
                                     const std::vector<NormalizerStep>& steps) {
  std::optional<std::string> changed;
  if (text.empty()) return changed;
  for (const NormalizerStep& step : steps)
    if (auto next = apply(changed ? *changed : text, step)) changed = std::move(next);
  return changed;
}

}  // namespace tandem::model
