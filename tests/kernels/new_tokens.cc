#include "tests/kernels/new_tokens.h"

#include <numeric>

namespace tandem::kernels {

using device::tensor;

std::span<const TokenShape> token_shapes() {
  static constexpr TokenShape kShapes[] = {
      {0, 2, 1, 32, 16},   {1, 16, 8, 128, 16}, {1, 1, 1, 16, 48},  {37, 3, 1, 32, 16},
      {9, 2, 2, 48, 32},   {21, 4, 2, 64, 16},  {5, 7, 1, 80, 16},  {18, 5, 5, 96, 64},
      {33, 2, 1, 112, 32}, {7, 14, 2, 128, 16}, {6, 3, 3, 144, 16}, {4, 2, 1, 256, 32}};
  return kShapes;
}

NewTokens make_new_tokens(const TokenShape& shape) {
  const auto [t, a, g, d, page] = shape;
  NewTokens tokens{.shape = shape};
  Rng rng(static_cast<std::uint64_t>(t * 1000 + d));
  tokens.qkv = normals(rng, t * tokens.width());
  tokens.q_norm = normals(rng, d);
  tokens.k_norm = normals(rng, d);
  tokens.cos = tokens.sin = poison(NewTokens::kAngles * d / 2);
  fill_rope_table({.cos = tensor(tokens.cos.data(), {NewTokens::kAngles, d / 2}),
                   .sin = tensor(tokens.sin.data(), {NewTokens::kAngles, d / 2}),
                   .theta = 1e4});
  tokens.positions = ids_below(rng, t, NewTokens::kAngles);
  tokens.slots.resize(static_cast<std::size_t>(tokens.pages() * page));
  std::iota(tokens.slots.begin(), tokens.slots.end(), 0);
  shuffle(std::span(tokens.slots), rng);
  tokens.slots.resize(static_cast<std::size_t>(t));
  for (std::size_t padding = 2; padding < tokens.slots.size(); padding += 4)
    tokens.slots[padding] = -1;
  return tokens;
}

TensorView NewTokens::heads(const TensorView& matrix, std::int64_t first,
                            std::int64_t count) const {
  return split_heads(columns(matrix, kMargin + first * shape.d, count * shape.d), count);
}

Floats NewTokens::without_k(const Floats& matrix) const {
  const std::int64_t begin = kMargin + shape.a * shape.d, end = begin + shape.g * shape.d;
  Floats rest;
  for (std::int64_t i = 0; i < std::ssize(matrix); ++i) {
    if (i % width() < begin || i % width() >= end) rest.push_back(matrix[i]);
  }
  return rest;
}

void attention_input_by_steps(const Backend& backend, const Stream& stream,
                              const AttentionInput& op) {
  const auto prepare = [&](const TensorView& x, const TensorView& weight) {
    backend.rms_norm(stream, {.x = x, .weight = weight, .y = x, .eps = op.eps});
    backend.rope(stream, {.x = x, .positions = op.positions, .cos = op.cos, .sin = op.sin});
  };
  prepare(op.q, op.q_norm);
  prepare(op.k, op.k_norm);
  backend.kv_write(
      stream,
      {.k = op.k, .v = op.v, .slots = op.slots, .k_pages = op.k_pages, .v_pages = op.v_pages});
}

}  // namespace tandem::kernels
