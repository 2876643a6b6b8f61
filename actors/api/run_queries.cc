#include "actors/api/run_queries.h"

namespace tandem::api {

using http::HttpRequest;

Result<MetricsQuery> metrics_query(const HttpRequest& request) {
  auto keys = query_words(request, kMetricKeys);
  if (!keys) return keys.error();
  const auto from = query_number(request, kStepsFrom);
  const auto to = query_number(request, kStepsTo);
  const auto points = query_number(request, kPoints);
  for (const auto* number : {&from, &to, &points})
    if (!*number) return number->error();
  return MetricsQuery{.keys = *std::move(keys),
                      .range = {from->value_or(runs::kVersionMin), to->value_or(runs::kStepMax)},
                      .points = static_cast<std::size_t>(points->value())};
}

Result<runs::MetricsPageQuery> page_query(const HttpRequest& request) {
  const auto query = metrics_query(request);  // the same keys and range, without points
  if (!query) return query.error();
  return runs::MetricsPageQuery{query->keys, query->range, query_text(request, kAfterPage)};
}

Result<runs::SampleQuery> sample_query(const HttpRequest& request) {
  const auto step = query_number(request, kSampleStep);
  const auto limit = query_number(request, kSampleLimit);
  const auto before = query_number(request, kSampleBefore);
  for (const auto* number : {&step, &limit, &before})
    if (!*number) return number->error();
  runs::SampleQuery query{
      .step = *step, .failed = query_flag(request, kSampleFailed), .before = *before};
  if (query_text(request, kSampleEvaluation) != "any")
    query.evaluation = query_flag(request, kSampleEvaluation);
  query.limit = static_cast<std::size_t>(limit->value());
  return query;
}

Result<runs::EventQuery> event_query(const HttpRequest& request) {
  const auto since = query_number(request, kEventsSince);
  const auto limit = query_number(request, kEventsLimit);
  for (const auto* number : {&since, &limit})
    if (!*number) return number->error();
  return runs::EventQuery{.since = *since, .limit = static_cast<std::size_t>(limit->value())};
}

}  // namespace tandem::api
