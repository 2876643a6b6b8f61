// The HTTP API's description in OpenAPI 3.1, made from the table of routes and from schemas.h.
// Clients and tools read it at GET /api/v1/openapi.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "actors/api/route.h"

namespace tandem::api {

// The document. `version` is that of the program. CHECKs that each path parameter is one that
// openapi.cc explains.
nlohmann::json openapi_document(std::span<const Route> routes, const std::string& version);

}  // namespace tandem::api
