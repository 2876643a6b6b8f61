#include "kernels/ops/attention_input.h"

#include <gtest/gtest.h>

#include "tests/kernels/new_tokens.h"

namespace tandem::kernels {
namespace {

using device::tensor;

class AttentionInputIn : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, AttentionInputIn, testing::ValuesIn(kFloatTypes), dtype_name);

TEST_P(AttentionInputIn, AI1_HasTheBitsOfItsSteps) {
  const DType dtype = GetParam();
  for (const TokenShape& shape : token_shapes()) {
    const auto [t, a, g, d, page] = shape;
    SCOPED_TRACE(testing::Message() << t << " tokens, " << a << " + " << g << " heads of " << d);
    const NewTokens tokens = make_new_tokens(shape);
    const Stored q_norm(dtype, {d}, tokens.q_norm), k_norm(dtype, {d}, tokens.k_norm);
    const auto computed = [&](const auto& compute) {
      const Stored qkv(dtype, {t, tokens.width()}, tokens.qkv);
      const Stored keys = Stored::poisoned(dtype, {tokens.pages(), g, page, d});
      const Stored values = Stored::poisoned(dtype, {tokens.pages(), g, page, d});
      compute({.q = tokens.q(qkv),
               .k = tokens.k(qkv),
               .v = tokens.v(qkv),
               .q_norm = q_norm,
               .k_norm = k_norm,
               .eps = 1e-3f,
               .positions = tensor(tokens.positions.data(), {t}),
               .cos = tensor(tokens.cos.data(), {NewTokens::kAngles, d / 2}),
               .sin = tensor(tokens.sin.data(), {NewTokens::kAngles, d / 2}),
               .slots = tensor(tokens.slots.data(), {t}),
               .k_pages = keys,
               .v_pages = values});
      return joined({tokens.without_k(qkv.values()), keys.values(), values.values()});
    };
    const Floats by_steps = computed(
        [&](const AttentionInput& op) { attention_input_by_steps(cpu_backend(), Stream{}, op); });
    const Floats at_once = same_everywhere([&](const Backend& backend, const Stream& stream) {
      return computed([&](const AttentionInput& op) { backend.attention_input(stream, op); });
    });
    const Floats checked =
        computed([&](const AttentionInput& op) { attention_input(Stream{}, op); });
    EXPECT_TRUE(same_bits(at_once, by_steps));
    EXPECT_TRUE(same_bits(checked, by_steps));
  }
}

}  // namespace
}  // namespace tandem::kernels
