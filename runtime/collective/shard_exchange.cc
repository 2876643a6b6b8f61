#include "runtime/collective/shard_exchange.h"

#include "runtime/base/check.h"

namespace tandem::collective {

ShardRange shard_of(std::int64_t floats, int rank, int ranks) {
  CHECK(floats >= 0 && rank >= 0 && rank < ranks);
  // floats * rank / ranks, without the product that could overflow.
  const auto border = [&](std::int64_t r) {
    if (r == ranks) return floats;
    const std::int64_t place = floats / ranks * r + floats % ranks * r / ranks;
    return place / kShardAlignFloats * kShardAlignFloats;
  };
  return {.begin = border(rank), .end = border(rank + 1)};
}

void sum_on_host(const device::Stream&, std::span<const float* const> pieces, float* out,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    // SH-1: in the order of the pieces, in a single f32; `out` may be one of them, so it is written
    // last.
    float sum = pieces.front()[i];
    for (const float* piece : pieces.subspan(1)) sum += piece[i];
    out[i] = sum;
  }
}

}  // namespace tandem::collective
