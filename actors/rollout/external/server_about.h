// What a server that runs already says of itself, and whether a job can be driven with it. Asks by
// GET alone, and changes nothing there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/rollout/external/dialect.h"
#include "runtime/base/result.h"
#include "runtime/http/http.h"

namespace tandem::rollout {

// GET of a path and query.
using GetFromServer = std::function<Result<http::HttpResponse>(const std::string& target)>;

struct ServerAbout {
  std::string owner;                      // "vllm", "sglang"; empty: it does not say
  std::string model, version;             // may be empty
  std::optional<std::int64_t> positions;  // of prompt and completion together
  // vLLM: log-probabilities are of what is sampled, after temperature and filters.
  std::optional<bool> processed_logprobs;
  std::string weight_backend;  // vLLM: of its --weight-transfer-config; empty: it does not say
};
// Errors are those of the connection; what the server does not say stays empty.
Result<ServerAbout> ask_about(const GetFromServer& get);

// Those of `needed` that it has not.
Result<std::vector<NeededRoute>> missing_routes(const GetFromServer& get,
                                                std::span<const NeededRoute> needed);

// Pure. What a job needs of a server besides its routes.
struct ServerNeeds {
  EngineName engine = EngineName::kVllm;
  std::int64_t positions = 0;  // of prompt and completion together
  bool processed_logprobs = false;
  WeightTransfer transfer = WeightTransfer::kDisk;
};
// Why the server does not do, with what to do; nothing where it does, or where it does not say.
std::optional<Error> unmet_need(const ServerAbout& about, const ServerNeeds& needs);

}  // namespace tandem::rollout
