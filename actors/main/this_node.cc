// Error texts of the NCCL search travel in a message to the controller, so that they are cut to the
// length that the message allows.
#include "actors/main/this_node.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runtime/collective/nccl_api.h"
#include "runtime/node/resources.h"

namespace tandem::app {

node::NodeNccl find_nccl() {
  const Result<collective::NcclApi> api = collective::open_nccl();
  if (!api) return {.absent = api.error().message.substr(0, node::kNcclTextMax)};
  // Ranks may share a GPU only where the user asked NCCL for it and the library is new enough.
  const char* const sharing = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return {.version = api->version,
          .path = api->path.substr(0, node::kNcclTextMax),
          .shares_gpus = sharing != nullptr && std::string_view(sharing) == "1" &&
                         api->version >= node::kNcclSharesGpusSince};
}

Result<node::NodeUp> describe_this_node(Incarnation incarnation) {
  Result<node::NodeUp> node = node::describe_node(incarnation);
  if (node && !node->gpus.empty()) node->nccl = find_nccl();
  return node;
}

Result<node::NodeUp> offered_node(Incarnation incarnation, const NodeOffer& offer) {
  Result<node::NodeUp> node = describe_this_node(incarnation);
  if (!node) return node;
  node->cpus = offer.cpus.value_or(node->cpus);
  node->memory_bytes =
      std::min(node->memory_bytes, offer.memory_bytes.value_or(node->memory_bytes));
  return node;
}

}  // namespace tandem::app
