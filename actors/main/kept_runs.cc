#include "actors/main/kept_runs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "actors/api/runs_api.h"
#include "actors/cli/api_client.h"
#include "actors/job/print_job.h"
#include "actors/main/exchange_host.h"
#include "actors/main/job_shape.h"

namespace tandem::app {

namespace {

std::optional<runs::JobFacts> read_job_facts(const std::string& yaml,
                                             const std::filesystem::path& run_dir) {
  const auto spec = parse_kept_job(yaml, run_dir.string());
  if (!spec) return std::nullopt;
  const controller::JobShape shape = job_shape(*spec);
  return runs::JobFacts{shape.name, shape.total_steps, trains(shape)};
}

Result<runs::JobKeys> read_job_keys(const std::string& yaml, const std::filesystem::path& run_dir) {
  const auto spec = parse_kept_job(yaml, run_dir.string());
  if (!spec) return spec.error();
  runs::JobKeys keys;
  for (job::PrintedKey& key : printed_keys(*spec))
    keys.emplace_back(std::move(key.path), std::move(key.value));
  return keys;
}

}  // namespace

runs::JobReaders job_readers() { return {read_job_facts, read_job_keys}; }

http::HttpHandler answers_of_home() {
  const auto runs = std::make_shared<api::RunsApi>(std::nullopt, cli::tandem_home(), job_readers());
  return [runs](const http::HttpRequest& request) -> http::HttpAnswer {
    if (auto answer = runs->get(request)) return std::move(*answer);
    static constexpr std::string_view kLists[] = {"jobs", "actors", "nodes", "groups"};
    const auto& path = request.segments;
    if (path.size() == 3 && std::ranges::find(kLists, path[2]) != std::end(kLists))
      return api::ok(nlohmann::json::array());
    return http::error_response(
        Error{ErrorCode::kNotFound, "no controller runs, and no run has " + request.target});
  };
}

}  // namespace tandem::app
