// New tokens for tests of attention_input: shapes, operands, and what it must give (AI-1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/kernels/operands.h"

namespace tandem::kernels {

// Letters as in kernels/ops/attention_input.h; `page` positions to a page.
struct TokenShape {
  std::int64_t t, a, g, d, page;
};

// Covers no, one and several tokens; head sizes on both sides of a lane's second pack; heads that
// fill no warp, a warp, and more than a block; pages of one chunk and of several.
std::span<const TokenShape> token_shapes();

struct NewTokens {
  TokenShape shape;
  Floats qkv, q_norm, k_norm;
  Floats cos, sin;                             // tables of kAngles positions
  std::vector<std::int32_t> positions, slots;  // every fourth slot is -1
  static constexpr std::int64_t kAngles = 50;

  // Columns on either side of q, k and v in their matrix, which no operator may touch.
  static constexpr std::int64_t kMargin = 8;
  std::int64_t width() const { return (shape.a + 2 * shape.g) * shape.d + 2 * kMargin; }
  std::int64_t pages() const { return shape.t / shape.page + 2; }
  std::int64_t pool_elements() const { return pages() * shape.g * shape.page * shape.d; }

  TensorView q(const TensorView& matrix) const { return heads(matrix, 0, shape.a); }
  TensorView k(const TensorView& matrix) const { return heads(matrix, shape.a, shape.g); }
  TensorView v(const TensorView& matrix) const { return heads(matrix, shape.a + shape.g, shape.g); }
  // A matrix without the columns of k, which mean nothing once it was used.
  Floats without_k(const Floats& matrix) const;

 private:
  TensorView heads(const TensorView& matrix, std::int64_t first, std::int64_t count) const;
};

NewTokens make_new_tokens(const TokenShape& shape);

// The operators that attention_input replaces.
void attention_input_by_steps(const Backend& backend, const Stream& stream,
                              const AttentionInput& op);

}  // namespace tandem::kernels
