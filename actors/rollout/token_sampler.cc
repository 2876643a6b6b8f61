#include "actors/rollout/token_sampler.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::actors {
namespace {

template <class T>
T* host(const runtime::Staged& block) {
  return reinterpret_cast<T*>(block.host());
}

}  // namespace

Result<TokenSampler> TokenSampler::make(std::int64_t rows_max,
                                        std::span<const std::int32_t> bannable,
                                        const runtime::Stream& stream) {
  const auto rows = static_cast<std::size_t>(rows_max);
  TokenSampler sampler;
  sampler.rows_max_ = rows_max;
  sampler.bannable_ = bannable.size();
  struct Part {
    runtime::Staged* block;
    std::size_t bytes;
  };
  for (const Part& part : {Part{&sampler.ids_, bannable.size_bytes()},
                           Part{&sampler.rows_, rows * sizeof(kernels::RowSampling)},
                           Part{&sampler.tokens_, rows * sizeof(std::int32_t)},
                           Part{&sampler.log_probs_, rows * sizeof(float)}}) {
    auto block = runtime::Staged::allocate(part.bytes, "what is sampled", stream.device);
    if (!block) return block.error();
    *part.block = *std::move(block);
  }
  std::ranges::copy(bannable, host<std::int32_t>(sampler.ids_));
  sampler.ids_.upload(stream, bannable.size_bytes());
  return sampler;
}

TokenSampler::Drawn TokenSampler::draw(const runtime::Stream& stream,
                                       const runtime::TensorView& logits,
                                       std::span<const kernels::RowSampling> rows) {
  const std::int64_t R = std::ssize(rows);
  CHECK(R <= rows_max_);
  auto* const list = host<kernels::RowSampling>(rows_);
  auto* const tokens = host<std::int32_t>(tokens_);
  auto* const log_probs = host<float>(log_probs_);
  const std::span<const std::int32_t> banned{ids_.on_device(host<std::int32_t>(ids_)), bannable_};
  std::ranges::copy(rows, list);
  for (kernels::RowSampling& row : std::span(list, rows.size())) {
    CHECK(row.banned.empty() || row.banned.size() == bannable_);
    if (!row.banned.empty()) row.banned = banned;
  }
  rows_.upload(stream, rows.size_bytes());
  kernels::sample(stream, {.logits = logits,
                           .rows = {rows_.on_device(list), rows.size()},
                           .tokens = tokens_.on_device(runtime::tensor(tokens, {R})),
                           .log_prob = log_probs_.on_device(runtime::tensor(log_probs, {R}))});
  tokens_.download(stream, rows.size() * sizeof(std::int32_t));
  log_probs_.download(stream, rows.size() * sizeof(float));
  runtime::synchronize(stream);
  return {{tokens, rows.size()}, {log_probs, rows.size()}};
}

}  // namespace tandem::actors
