// Parameters and results have two sides on the host, so that the host fills one while the device
// still reads the other; turn() waits where a side is still in use.
#include "actors/rollout/token_sampler.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem::rollout {
namespace {

template <class T>
T* host(const device::Staged& block) {
  return reinterpret_cast<T*>(block.host());
}

}  // namespace

Result<TokenSampler> TokenSampler::make(std::int64_t rows_max,
                                        std::span<const std::int32_t> bannable,
                                        const device::Stream& stream) {
  const auto rows = static_cast<std::size_t>(rows_max);
  TokenSampler sampler;
  sampler.rows_max_ = rows_max;
  sampler.bannable_ = bannable.size();
  struct Part {
    device::Staged* block;
    std::size_t bytes, sides;
  };
  for (const Part& part :
       {Part{&sampler.ids_, bannable.size_bytes(), 1},
        Part{&sampler.rows_, rows * sizeof(kernels::RowSampling), kUntakenMax},
        Part{&sampler.drawn_, rows * (sizeof(std::int32_t) + sizeof(float)), kUntakenMax}}) {
    auto block = device::Staged::allocate(part.bytes, "what is sampled", stream.device, part.sides);
    if (!block) return block.error();
    *part.block = *std::move(block);
  }
  std::ranges::copy(bannable, host<std::int32_t>(sampler.ids_));
  sampler.ids_.upload(stream, bannable.size_bytes());
  return sampler;
}

void TokenSampler::draw(const device::Stream& stream, const device::TensorView& logits,
                        std::span<const kernels::RowSampling> rows) {
  const std::int64_t R = std::ssize(rows);
  CHECK(R <= rows_max_ && untaken_.size() < kUntakenMax);
  rows_.turn();
  drawn_.turn();
  auto* const list = host<kernels::RowSampling>(rows_);
  const std::span<const std::int32_t> banned{ids_.on_device(host<std::int32_t>(ids_)), bannable_};
  std::ranges::copy(rows, list);
  for (kernels::RowSampling& row : std::span(list, rows.size())) {
    CHECK(row.banned.empty() || row.banned.size() == bannable_);
    // The kernel follows this pointer, so it must be the device's copy of the list.
    if (!row.banned.empty()) row.banned = banned;
  }
  rows_.upload(stream, rows.size_bytes());
  auto* const log_probs = reinterpret_cast<float*>(host<std::int32_t>(drawn_) + rows_max_);
  kernels::sample(stream, {.logits = logits,
                           .rows = {rows_.on_device(list), rows.size()},
                           .tokens = device::rows(drawing(), 0, R),
                           .log_prob = drawn_.on_device(device::tensor(log_probs, {R}))});
  drawn_.download(stream, drawn_.size());
  untaken_.push_back({drawn_.side(), rows.size()});
}

device::TensorView TokenSampler::drawing() const {
  return drawn_.on_device(device::tensor(host<std::int32_t>(drawn_), {rows_max_}));
}

TokenSampler::Drawn TokenSampler::take() {
  CHECK(!untaken_.empty());
  const auto [side, count] = untaken_.front();
  untaken_.pop_front();
  drawn_.wait(side);
  const auto* const tokens = reinterpret_cast<const std::int32_t*>(drawn_.host(side));
  const auto* const log_probs = reinterpret_cast<const float*>(tokens + rows_max_);
  return {{tokens, count}, {log_probs, count}};
}

}  // namespace tandem::rollout
