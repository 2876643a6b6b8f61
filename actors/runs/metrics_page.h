// The lines of a run's metrics.jsonl as they are, page by page, for readers that want every figure
// of every step; MetricsIndex answers plots, which want few points. A page is read from the file
// and holds nothing between two calls, so that a reader may stop at any time.
//
//   MP-1  The pages of one reading are together the whole lines of one file, each of them once. If
//         the file was replaced or cut between two pages, the next page is an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "actors/runs/metrics_index.h"
#include "runtime/base/result.h"

namespace tandem::runs {

inline constexpr std::uint64_t kMetricsPageBytes = std::uint64_t{4} << 20;  // of metrics.jsonl

struct MetricsPageQuery {
  std::vector<std::string> globs;  // keys with a match in any of them are answered; empty: all
  StepRange steps{kVersionMin, kStepMax};
  std::string after;  // `next` of the page before; empty: the first page
};

// {"lines": [{"step": 1, "actor/pg_loss": 0.2}, …], "next": "…"}: lines that are no objects with a
// `step` are left out, and `next` is null behind the last page. A run without the file has no
// lines. kInvalid for an `after` that no page has given.
Result<nlohmann::json> metrics_page(const std::filesystem::path& run_dir,
                                    const MetricsPageQuery& query);

// Whether all of `text` matches: `*` stands for any characters and `?` for one. Takes at most
// pattern times text steps.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace tandem::runs
