#include "actors/learner/trainer_setup.h"

#include <string>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::learner {
namespace {

Error refusal(std::string message, std::string where) {
  return {.code = ErrorCode::kInvalid,
          .message = std::move(message),
          .where = std::move(where),
          .help = {}};
}

}  // namespace

Result<void> check_setup(const NativeTrainerSetup& setup) {
  const int rank = setup.gang ? setup.gang->rank() : 0, ranks = setup.gang ? setup.gang->size() : 1;
  // The Gang's sums are made in host memory; between GPUs only shards can move gradients.
  CHECK(setup.device == device::DeviceKind::kCpu || ranks == 1 || setup.shards);
  CHECK(!setup.shards || (setup.shards->rank() == rank && setup.shards->size() == ranks));
  const std::int64_t model_positions = setup.model.config.max_position_embeddings;
  if (setup.config.positions_max > model_positions)
    return refusal("sequences of " + std::to_string(setup.config.positions_max) +
                       " tokens are longer than the model's max_position_embeddings of " +
                       std::to_string(model_positions),
                   "data.max_prompt_length + data.max_response_length");
  if (setup.config.warm_start && setup.records.empty())
    return refusal("the warm start has no records", "warm_start.train_files");
  // The decoder CHECKs its limits, so records from a user's file have to be checked here.
  for (const WarmStartRecord& record : setup.records) {
    const std::int64_t tokens = std::ssize(record.prompt) + std::ssize(record.completion);
    if (tokens > setup.config.positions_max)
      return refusal("a warm-start record has " + std::to_string(tokens) +
                         " tokens, more than max_prompt_length + max_response_length = " +
                         std::to_string(setup.config.positions_max),
                     "warm_start.train_files");
  }
  return {};
}

}  // namespace tandem::learner
