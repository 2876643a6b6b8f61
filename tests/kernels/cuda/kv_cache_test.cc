#include "kernels/ops/kv_cache.h"

#include <numeric>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::columns;
using device::tensor;

using CudaKvCache = CudaDTypeTest;

constexpr std::int64_t kPages = 5, kGroups = 3, kPositions = 32, kChannels = 16;

Floats random_pool(Rng& rng, DType dtype) {
  return rounded(normals(rng, kPages * kGroups * kPositions * kChannels), dtype);
}

TensorView pool(Floats& values) {
  return tensor(values.data(), {kPages, kGroups, kPositions, kChannels});
}

Operand pool(const Stream& stream, DType dtype, const Floats& values) {
  return Operand(stream, dtype, {kPages, kGroups, kPositions, kChannels}, values);
}

TEST_P(CudaKvCache, WritesTheSlotsAndNothingElse) {
  const DType dtype = GetParam();
  for (const std::int64_t t : {0, 1, 37}) {
    Rng rng(static_cast<std::uint64_t>(t));
    Floats keys = random_pool(rng, dtype), values = random_pool(rng, dtype);
    const std::int64_t width = 2 * kGroups * kChannels;
    const Floats fused = rounded(normals(rng, t * width), dtype);
    std::vector<std::int32_t> slots(kPages * kPositions);
    std::iota(slots.begin(), slots.end(), 0);
    shuffle(std::span(slots), rng);
    slots.resize(static_cast<std::size_t>(t));
    for (std::size_t padding = 3; padding < slots.size(); padding += 7) slots[padding] = -1;
    const auto split = [&](const TensorView& all, std::int64_t begin) {
      return split_heads(columns(all, begin, kGroups * kChannels), kGroups);
    };

    const Operand all(gpu(), dtype, {t, width}, fused), places(gpu(), {t}, slots);
    const Operand k_pages = pool(gpu(), dtype, keys), v_pages = pool(gpu(), dtype, values);
    kv_write(gpu(), {.k = split(all, 0),
                     .v = split(all, kGroups * kChannels),
                     .slots = places,
                     .k_pages = k_pages,
                     .v_pages = v_pages});
    const TensorView cpu = tensor(fused.data(), {t, width});
    Floats other = keys;
    const auto write = [&](std::int64_t k, std::int64_t v, Floats& to_k, Floats& to_v) {
      kv_write(Stream{}, {.k = split(cpu, k),
                          .v = split(cpu, v),
                          .slots = tensor(slots.data(), {t}),
                          .k_pages = pool(to_k),
                          .v_pages = pool(to_v)});
    };
    write(0, kGroups * kChannels, keys, values);
    // The keys of bf16 lie as values do.
    if (dtype == DType::kBF16) keys = other, write(kGroups * kChannels, 0, other, keys);
    EXPECT_TRUE(same_bits(k_pages.values(), keys)) << t;
    EXPECT_TRUE(same_bits(v_pages.values(), values)) << t;
  }
}

TEST_P(CudaKvCache, CopiesPagesInOrder) {
  const DType dtype = GetParam();
  const std::vector<PageCopy> in_a_chain = {{0, 1}, {1, 2}, {3, 3}, {4, 0}, {2, 4}};
  for (const std::vector<PageCopy>& copies : {std::vector<PageCopy>{}, in_a_chain}) {
    Rng rng(9);
    Floats keys = random_pool(rng, dtype), values = random_pool(rng, dtype);
    const Operand k_pages = pool(gpu(), dtype, keys), v_pages = pool(gpu(), dtype, values);
    const OnGpu<PageCopy> list(gpu(), copies);
    kv_copy(gpu(), {.pages = list.span(), .k_pages = k_pages, .v_pages = v_pages});
    kv_copy(Stream{}, {.pages = copies, .k_pages = pool(keys), .v_pages = pool(values)});
    EXPECT_TRUE(same_bits(k_pages.values(), keys));
    EXPECT_TRUE(same_bits(v_pages.values(), values));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaKvCache, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
