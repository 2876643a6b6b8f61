// Who waits for whom, as `tandem why` says it, as a graph that the web page draws. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/api/cluster_picture.h"

namespace tandem::api {

// The graph of the jobs that are not over, or of `job` alone, which is an id:
//
//   {"nodes": [{id, kind, job, state, reason}],
//    "edges": [{from, to, what, detail, since, until, ended_by}]}
//
// Kinds are the roles, "exchange", "node" and "controller". `since` and `until` are Unix
// milliseconds; `until` is null without a deadline, and `ended_by` says then who ends the wait.
// Each end of an edge is a node of the graph.
nlohmann::json wait_graph(const Picture& picture, const std::string& job, std::int64_t now_ms);

}  // namespace tandem::api
