// Batches for tests of attention: packed sequences, some with shared prefixes, and the pages that
// an engine would hold them on.
#pragma once

#include <cmath>
#include <initializer_list>

#include "tests/kernels/operands.h"

namespace tandem::kernels {

inline constexpr std::int64_t kPage = 32;

struct HeadShape {
  std::int64_t h, g, d;
};

// A packed batch in one [T, q|k|v] buffer, as the model has it.
struct Batch {
  HeadShape heads;
  std::vector<Segment> segments;
  std::int64_t rows = 0;
  Floats qkv;

  std::int64_t width() const { return (heads.h + 2 * heads.g) * heads.d; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(heads.d)); }
  // The parts of any [T, q|k|v] buffer.
  TensorView q(const TensorView& buffer) const { return part(buffer, 0, heads.h); }
  TensorView k(const TensorView& buffer) const { return part(buffer, heads.h, heads.g); }
  TensorView v(const TensorView& buffer) const { return part(buffer, heads.h + heads.g, heads.g); }
  TensorView q(const Floats& buffer) const { return q(whole(buffer)); }
  TensorView k(const Floats& buffer) const { return k(whole(buffer)); }
  TensorView v(const Floats& buffer) const { return v(whole(buffer)); }
  TensorView whole(const Floats& buffer) const;
  TensorView part(const TensorView& buffer, std::int64_t first_head, std::int64_t count) const;

  // A family: a prefix of `prefix` rows and one user of it per entry of `tails`.
  void add_family(std::int32_t prefix, std::initializer_list<std::int32_t> tails);
};

// Some families, around and at the ends of chunks, with random q, k and v.
Batch make_batch(const HeadShape& heads, std::uint64_t seed);

std::int64_t row_at(const Segment& s, std::int64_t position);

// The pools of an engine that holds each segment's whole sequence on pages of its own, in an order
// that has nothing to do with the batch; slots beyond a sequence hold NaN.
struct Paged {
  Floats k, v;
  std::vector<std::int32_t> tables;  // [segments, blocks]
  std::int64_t pages = 0, blocks = 0;
};

Paged make_pages(const Backend& backend, const Stream& stream, const Batch& batch);

}  // namespace tandem::kernels
