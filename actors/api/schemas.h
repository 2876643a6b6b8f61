// The schemas of the JSON objects that the HTTP API answers, by name: "Job", "Actor", "Error" …
// docs/design/contract.md promises their fields. Objects are made in api_json.cc,
// cluster_picture.cc, wait_graph.cc, runs_api.cc and in actors/runs.
//
//   HR-2  An answer has no field that its schema does not name, and lacks none that is required.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tandem::api {

// An object: each name with its JSON schema, which may refer to others by schema::ref(). Made anew
// by each call.
nlohmann::json component_schemas();

}  // namespace tandem::api
