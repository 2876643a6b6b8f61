// The queries about metrics, samples and events of runs: their parameters, and how a request's
// query becomes the query of the index that answers. Queries about logs are in log_answers.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/api/query.h"
#include "actors/runs/cluster_event.h"
#include "actors/runs/metrics_page.h"
#include "actors/runs/sample_index.h"
#include "runtime/base/result.h"

namespace tandem::api {

inline constexpr QueryParameter kMetricKeys{
    .name = "keys",
    .kind = QueryKind::kWords,
    .about = "Keys of metrics.jsonl, with commas between them.",
    .words_max = runs::kMetricKeysMax};
inline constexpr QueryParameter kStepsFrom{.name = "from",
                                           .kind = QueryKind::kNumber,
                                           .about = "The first step; -1 is before a warm start.",
                                           .bounds = {runs::kVersionMin, runs::kStepMax}};
inline constexpr QueryParameter kStepsTo{.name = "to",
                                         .kind = QueryKind::kNumber,
                                         .about = "The last step.",
                                         .bounds = {runs::kVersionMin, runs::kStepMax}};
inline constexpr QueryParameter kPoints{.name = "points",
                                        .kind = QueryKind::kNumber,
                                        .about = "So many buckets for each key at most.",
                                        .bounds = {1, runs::kPointsMax},
                                        .usual = runs::kPointsDefault};
inline constexpr QueryParameter kAfterPage{.name = "after", .about = "`next` of the page before."};

inline constexpr const char* kEvaluationChoices[] = {"0", "1", "any"};
inline constexpr QueryParameter kSampleStep{.name = "step",
                                            .kind = QueryKind::kNumber,
                                            .about = "Samples of this step alone.",
                                            .bounds = {-1, runs::kStepMax}};
inline constexpr QueryParameter kSampleEvaluation{
    .name = "eval",
    .kind = QueryKind::kChoice,
    .about = "0: samples of training; 1: of evaluations; any: both.",
    .usual_choice = "0",
    .choices = kEvaluationChoices};
inline constexpr QueryParameter kSampleFailed{
    .name = "failed", .kind = QueryKind::kFlag, .about = "Those alone that could not be scored."};
inline constexpr QueryParameter kSampleBefore{.name = "before",
                                              .kind = QueryKind::kNumber,
                                              .about = "Those alone with a lower `seq`.",
                                              .bounds = {0, runs::kStepMax}};
inline constexpr QueryParameter kSampleLimit{.name = "limit",
                                             .kind = QueryKind::kNumber,
                                             .about = "So many of the newest at most.",
                                             .bounds = {1, runs::kSamplePageMax},
                                             .usual = runs::kSamplePageDefault};
inline constexpr QueryParameter kSampleSteps{
    .name = "steps",
    .kind = QueryKind::kFlag,
    .about = "Answers the steps that have samples in place of the samples."};

inline constexpr QueryParameter kEventsSince{.name = "since",
                                             .kind = QueryKind::kNumber,
                                             .about = "Those alone with a higher `seq`.",
                                             .bounds = {0, runs::kStepMax}};
inline constexpr QueryParameter kEventsLimit{
    .name = "limit",
    .kind = QueryKind::kNumber,
    .about = "So many of the newest at most; with `since`, of the first ones behind it.",
    .bounds = {1, runs::kEventsMax},
    .usual = runs::kEventsDefault};
inline constexpr QueryParameter kEventsJob{
    .name = "job", .about = "Events of this job or run alone, and of its actors."};

inline constexpr QueryParameter kWatch{
    .name = "watch",
    .kind = QueryKind::kFlag,
    .about =
        "Streams lines of JSON until the client goes: all that there is, and then whatever is "
        "new or has changed."};

struct MetricsQuery {
  std::vector<std::string> keys;
  runs::StepRange range;
  std::size_t points = 0;
};

// Each is kInvalid for the first value that is out of its parameter's bounds.
Result<MetricsQuery> metrics_query(const http::HttpRequest& request);
Result<runs::MetricsPageQuery> page_query(const http::HttpRequest& request);
Result<runs::SampleQuery> sample_query(const http::HttpRequest& request);
Result<runs::EventQuery> event_query(const http::HttpRequest& request);

}  // namespace tandem::api
