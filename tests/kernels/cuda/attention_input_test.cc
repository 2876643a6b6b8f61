#include "kernels/ops/attention_input.h"

#include "tests/kernels/cuda/cuda_operands.h"
#include "tests/kernels/new_tokens.h"

namespace tandem::kernels {
namespace {

using CudaAttentionInput = CudaDTypeTest;

TEST_P(CudaAttentionInput, AI1_HasTheBitsOfItsSteps) {
  const DType dtype = GetParam();
  std::vector<TokenShape> shapes(token_shapes().begin(), token_shapes().end());
  if (!emulated()) shapes.insert(shapes.end(), {{4096, 16, 8, 128, 16}, {777, 32, 8, 128, 64}});
  for (const TokenShape& shape : shapes) {
    const auto [t, a, g, d, page] = shape;
    SCOPED_TRACE(testing::Message() << t << " tokens, " << a << " + " << g << " heads of " << d);
    const NewTokens tokens = make_new_tokens(shape);
    const Operand q_norm(gpu(), dtype, {d}, tokens.q_norm);
    const Operand k_norm(gpu(), dtype, {d}, tokens.k_norm);
    const Operand positions(gpu(), {t}, tokens.positions), slots(gpu(), {t}, tokens.slots);
    const Operand cos(gpu(), DType::kF32, {NewTokens::kAngles, d / 2}, tokens.cos);
    const Operand sin(gpu(), DType::kF32, {NewTokens::kAngles, d / 2}, tokens.sin);
    // q and v with the memory around them, and all slots, also those that are not written.
    const auto computed = [&](const auto& compute) {
      const Operand qkv(gpu(), dtype, {t, tokens.width()}, tokens.qkv);
      const Operand keys = Operand::poisoned(gpu(), dtype, {tokens.pages(), g, page, d});
      const Operand values = Operand::poisoned(gpu(), dtype, {tokens.pages(), g, page, d});
      compute({.q = tokens.q(qkv),
               .k = tokens.k(qkv),
               .v = tokens.v(qkv),
               .q_norm = q_norm,
               .k_norm = k_norm,
               .eps = 1e-3f,
               .positions = positions,
               .cos = cos,
               .sin = sin,
               .slots = slots,
               .k_pages = keys,
               .v_pages = values});
      return joined({tokens.without_k(qkv.values()), keys.values(), values.values()});
    };
    const Floats at_once = computed([&](const AttentionInput& op) { attention_input(gpu(), op); });
    const Floats by_steps = computed([&](const AttentionInput& op) {
      attention_input_by_steps(backend(gpu().device), gpu(), op);
    });
    EXPECT_TRUE(same_bits(at_once, by_steps));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAttentionInput, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
