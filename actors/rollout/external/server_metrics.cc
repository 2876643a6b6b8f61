#include "actors/rollout/external/server_metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tandem::rollout {
namespace {

struct Sample {
  std::string_view name, labels;
  double value = 0;
};

// The sample of a line "name{label="x"} 12.5"; nothing for a comment or another text.
std::optional<Sample> sample_of(std::string_view line) {
  const std::size_t name_end = line.find_first_of("{ ");
  const std::size_t value_begin = line.rfind(' ');
  if (line.starts_with('#') || name_end == line.npos || name_end == 0) return {};
  const std::string_view text = line.substr(value_begin + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return Sample{line.substr(0, name_end), line.substr(name_end, value_begin - name_end), value};
}

}  // namespace

std::optional<ServerMetrics> read_metrics(std::string_view text,
                                          std::span<const MetricName> names) {
  ServerMetrics metrics;
  bool any = false;
  while (!text.empty()) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    const auto sample = sample_of(text.substr(0, line_end));
    text.remove_prefix(std::min(line_end + 1, text.size()));
    if (!sample || sample->value < 0) continue;
    for (const MetricName& known : names) {
      if (known.name != sample->name || sample->labels.find(known.label) == sample->labels.npos)
        continue;
      double& field = metrics.*known.field;
      field = known.field == &ServerMetrics::kv_cache_usage ? std::max(field, sample->value)
                                                            : field + sample->value;
      field = std::min(field, kFigureMax);
      any = true;
    }
  }
  return any ? std::optional(metrics) : std::nullopt;
}

}  // namespace tandem::rollout
