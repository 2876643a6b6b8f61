// The figures of a server, read from the text that it gives Prometheus. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace tandem::rollout {

// Each field is at most kFigureMax. A field without a name at a server stays 0. Counters count from
// the server's start.
inline constexpr double kFigureMax = 0x1p53;
struct ServerMetrics {
  double generation_tokens = 0, prompt_tokens = 0;
  double prefix_cache_queries = 0, prefix_cache_hits = 0;  // tokens
  double preemptions = 0;
  double waiting = 0;         // requests at the moment
  double kv_cache_usage = 0;  // 0…1
};

struct MetricName {
  std::string_view name;   // as the text has it
  std::string_view label;  // only series with this one, as in mode="decode"; empty: all
  double ServerMetrics::*field;
};

// The sums over all series of each name, which may stand for several fields; of kv_cache_usage the
// largest value. Nothing where the text has none of the names, as that of another kind of server.
std::optional<ServerMetrics> read_metrics(std::string_view text, std::span<const MetricName> names);

}  // namespace tandem::rollout
