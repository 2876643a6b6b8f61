#include "actors/main/this_node.h"

#include <cstdlib>
#include <string_view>

#include "runtime/collective/nccl_api.h"
#include "runtime/node/resources.h"

namespace tandem::cli {

runtime::NodeNccl find_nccl() {
  const Result<runtime::NcclApi> api = runtime::open_nccl();
  if (!api) return {.absent = api.error().message.substr(0, runtime::kNcclTextMax)};
  const char* const sharing = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return {.version = api->version,
          .path = api->path.substr(0, runtime::kNcclTextMax),
          .shares_gpus = sharing != nullptr && std::string_view(sharing) == "1" &&
                         api->version >= runtime::kNcclSharesGpusSince};
}

Result<runtime::NodeUp> describe_this_node(Incarnation incarnation) {
  Result<runtime::NodeUp> node = runtime::describe_node(incarnation);
  if (node && !node->gpus.empty()) node->nccl = find_nccl();
  return node;
}

}  // namespace tandem::cli
