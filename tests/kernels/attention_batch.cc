#include "tests/kernels/attention_batch.h"

#include <algorithm>
#include <numeric>

#include "kernels/ops/kv_cache.h"

namespace tandem::kernels {

using device::tensor;

TensorView Batch::whole(const Floats& buffer) const {
  return tensor(buffer.data(), {rows, width()});
}

TensorView Batch::part(const TensorView& buffer, std::int64_t first_head,
                       std::int64_t count) const {
  return split_heads(columns(buffer, first_head * heads.d, count * heads.d), count);
}

void Batch::add_family(std::int32_t prefix, std::initializer_list<std::int32_t> tails) {
  const auto begin = static_cast<std::int32_t>(rows);
  segments.push_back({.begin = begin, .len = prefix});
  rows += prefix;
  for (const std::int32_t len : tails) {
    segments.push_back({.prefix_begin = begin,
                        .prefix_len = prefix,
                        .begin = static_cast<std::int32_t>(rows),
                        .len = len});
    rows += len;
  }
}

Batch make_batch(const HeadShape& heads, std::uint64_t seed) {
  Batch batch{.heads = heads};
  batch.add_family(6, {5, 8, 1});
  batch.add_family(1, {});
  batch.add_family(37, {20, 3});
  batch.add_family(16, {16, 17});
  batch.add_family(50, {});
  Rng rng(seed);
  batch.qkv = normals(rng, batch.rows * batch.width());
  return batch;
}

std::int64_t row_at(const Segment& s, std::int64_t position) {
  return position < s.prefix_len ? s.prefix_begin + position : s.begin + position - s.prefix_len;
}

Paged make_pages(const Backend& backend, const Stream& stream, const Batch& batch) {
  Paged paged;
  paged.blocks = 4;
  for (const Segment& segment : batch.segments) {
    const std::int64_t positions = segment.prefix_len + segment.len;
    paged.blocks = std::max(paged.blocks, (positions + kPage - 1) / kPage + 1);
  }
  const auto sequences = static_cast<std::int64_t>(batch.segments.size());
  paged.pages = sequences * paged.blocks;
  const auto [h, g, d] = batch.heads;
  paged.k = paged.v = poison(paged.pages * g * kPage * d);
  std::int64_t stride = 7;
  while (std::gcd(stride, paged.pages) != 1) ++stride;
  for (std::int64_t i = 0; i < paged.pages; ++i) {
    paged.tables.push_back(static_cast<std::int32_t>((i * stride + 3) % paged.pages));
  }
  for (std::int64_t s = 0; s < sequences; ++s) {
    const Segment& segment = batch.segments[s];
    for (std::int64_t p = 0; p < segment.prefix_len + segment.len; ++p) {
      const auto slot =
          static_cast<std::int32_t>(paged.tables[s * paged.blocks + p / kPage] * kPage + p % kPage);
      const std::int64_t row = row_at(segment, p);
      backend.kv_write(stream, {.k = rows(batch.k(batch.qkv), row, 1),
                                .v = rows(batch.v(batch.qkv), row, 1),
                                .slots = tensor(&slot, {1}),
                                .k_pages = tensor(paged.k.data(), {paged.pages, g, kPage, d}),
                                .v_pages = tensor(paged.v.data(), {paged.pages, g, kPage, d})});
    }
  }
  return paged;
}

}  // namespace tandem::kernels
