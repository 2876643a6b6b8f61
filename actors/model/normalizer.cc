#include "actors/model/normalizer.h"

#include "actors/model/nfc.h"

namespace tandem::model {
namespace {

std::optional<std::string> apply(std::string_view text, const NormalizerStep& step) {
  switch (step.kind) {
    case NormalizerStep::Kind::kNfc:
      return to_nfc(text);
    case NormalizerStep::Kind::kPrepend:
      return step.content + std::string(text);
    case NormalizerStep::Kind::kReplace:
      if (text.find(step.pattern) == text.npos) return std::nullopt;
      return replace_all(text, step.pattern, step.content);
  }
  return std::nullopt;
}

}  // namespace

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
