// `GET /metrics` in Prometheus' text format, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats). docs/metrics.md lists the families; a test
// compares it with this code. Pure.
//
// A value that is not known has no series. The label of a job is `tandem_job`, because Prometheus
// gives every target a label `job` of its own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/api/alert_watch.h"
#include "actors/api/api_json.h"
#include "actors/api/home_disk.h"

namespace tandem::api {

inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

// All families, also those without samples.
std::string prometheus_text(const controller::ClusterView& cluster, const ExchangeReports& reports,
                            const std::optional<HomeDisk>& disk = {});
// The samples of these families, as prometheus_text() writes them.
std::vector<MetricSample> metric_samples(const controller::ClusterView& cluster,
                                         const ExchangeReports& reports,
                                         const std::optional<HomeDisk>& disk,
                                         std::span<const std::string> families);

}  // namespace tandem::api
