#include "actors/main/offline_runs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "actors/api/runs_api.h"
#include "actors/cli/api_client.h"
#include "actors/main/job_shape.h"

namespace tandem::app {

http::HttpHandler offline_answers() {
  const auto runs = std::make_shared<api::RunsApi>(std::nullopt, cli::tandem_home(), job_readers());
  const auto table = std::make_shared<const api::RouteTable>(runs->routes());
  // The routes refer to `runs`, so the handler keeps both.
  return [runs, table](const http::HttpRequest& request) -> http::HttpAnswer {
    if (auto answer = table->answer(request)) return *std::move(answer);
    static constexpr std::string_view kLists[] = {"jobs", "actors", "nodes", "groups"};
    const auto& path = request.segments;
    if (path.size() == 3 && std::ranges::find(kLists, path[2]) != std::end(kLists))
      return api::ok(nlohmann::json::array());
    return http::error_response(
        Error{ErrorCode::kNotFound, "no controller runs, and no run has " + request.target});
  };
}

}  // namespace tandem::app
