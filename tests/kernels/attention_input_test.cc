#include "kernels/ops/attention_input.h"

#include <gtest/gtest.h>

#include "tests/kernels/new_tokens.h"

namespace tandem::kernels {
namespace {

using runtime::tensor;

TEST(AttentionInput, AI1_HasTheBitsOfItsSteps) {
  for (const TokenShape& shape : token_shapes()) {
    const auto [t, a, g, d, page] = shape;
    SCOPED_TRACE(testing::Message() << t << " tokens, " << a << " + " << g << " heads of " << d);
    const NewTokens tokens = make_new_tokens(shape);
    const auto computed = [&](const auto& compute) {
      Floats qkv = tokens.qkv, keys = poison(tokens.pool_elements()), values = keys;
      const TensorView matrix = tensor(qkv.data(), {t, tokens.width()});
      compute({.q = tokens.q(matrix),
               .k = tokens.k(matrix),
               .v = tokens.v(matrix),
               .q_norm = tensor(tokens.q_norm.data(), {d}),
               .k_norm = tensor(tokens.k_norm.data(), {d}),
               .eps = 1e-3f,
               .positions = tensor(tokens.positions.data(), {t}),
               .cos = tensor(tokens.cos.data(), {NewTokens::kAngles, d / 2}),
               .sin = tensor(tokens.sin.data(), {NewTokens::kAngles, d / 2}),
               .slots = tensor(tokens.slots.data(), {t}),
               .k_pages = tensor(keys.data(), {tokens.pages(), g, page, d}),
               .v_pages = tensor(values.data(), {tokens.pages(), g, page, d})});
      return joined({tokens.without_k(qkv), keys, values});
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
