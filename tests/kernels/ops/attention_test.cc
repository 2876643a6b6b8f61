// Attention on a CPU against a slow softmax over the visible positions, paged against packed to the
// bit, and gradients against finite differences.
#include "kernels/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/ops/kv_cache.h"
#include "tests/kernels/attention_batch.h"

namespace tandem::kernels {
namespace {

using device::tensor;

struct Packed {
  Floats out, lse;
};

Packed run_packed(const Backend& backend, const Stream& stream, const Batch& batch) {
  Packed result{poison(batch.rows * batch.heads.h * batch.heads.d),
                poison(batch.rows * batch.heads.h)};
  backend.attention_packed(
      stream, {.q = batch.q(batch.qkv),
               .k = batch.k(batch.qkv),
               .v = batch.v(batch.qkv),
               .segments = batch.segments,
               .scale = batch.scale(),
               .out = tensor(result.out.data(), {batch.rows, batch.heads.h, batch.heads.d}),
               .lse = tensor(result.lse.data(), {batch.rows, batch.heads.h})});
  return result;
}

class AttentionHeads : public testing::TestWithParam<HeadShape> {};

TEST_P(AttentionHeads, PackedIsSoftmaxOverTheVisiblePositions) {
  const Batch batch = make_batch(GetParam(), 1);
  const auto [h, g, d] = GetParam();
  const Floats result = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Packed packed = run_packed(backend, stream, batch);
    return joined({packed.out, packed.lse});
  });
  const TensorView q = batch.q(batch.qkv), k = batch.k(batch.qkv), v = batch.v(batch.qkv);
  for (const Segment& s : batch.segments) {
    for (std::int64_t i = 0; i < s.len; ++i) {
      const std::int64_t row = s.begin + i, last = s.prefix_len + i;
      for (std::int64_t head = 0; head < h; ++head) {
        const float* query = q.f32() + row * q.row_stride + head * d;
        const std::int64_t group = head / (h / g);
        std::vector<double> out(static_cast<std::size_t>(d));
        double sum = 0;
        for (std::int64_t p = 0; p <= last; ++p) {
          const std::int64_t at = row_at(s, p) * k.row_stride + group * d;
          double score = 0;
          for (std::int64_t c = 0; c < d; ++c)
            score += static_cast<double>(query[c]) * k.f32()[at + c];
          const double weight = std::exp(score * batch.scale());
          sum += weight;
          for (std::int64_t c = 0; c < d; ++c) out[c] += weight * v.f32()[at + c];
        }
        for (std::int64_t c = 0; c < d; ++c) {
          ASSERT_NEAR(result[(row * h + head) * d + c], out[c] / sum, 1e-5);
        }
        ASSERT_NEAR(result[batch.rows * h * d + row * h + head], std::log(sum), 1e-5);
      }
    }
  }
}

// The pools as a dtype stores them, which on a CPU does not change their layout.
struct Pools {
  Pools(DType dtype, const Batch& batch, const Paged& paged)
      : k(dtype, {paged.pages, batch.heads.g, kPage, batch.heads.d}, paged.k),
        v(dtype, {paged.pages, batch.heads.g, kPage, batch.heads.d}, paged.v) {}
  Stored k, v;
};

// Runs the queries [from(s), from(s) + count(s)) of every segment in one call.
template <class Count>
Floats run_paged(const Backend& backend, const Stream& stream, const Batch& batch,
                 const Paged& paged, const Pools& pools, const Count& queries) {
  const auto [h, g, d] = batch.heads;
  const DType dtype = pools.k.view().dtype;
  Floats result = poison(batch.rows * h * d), q;
  std::vector<std::int32_t> begin = {0}, first, tables, own_rows;
  for (std::size_t s = 0; s < batch.segments.size(); ++s) {
    const Segment& segment = batch.segments[s];
    const auto [from, count] = queries(segment);
    if (count == 0) continue;
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t row = segment.begin + from + i;
      own_rows.push_back(row);
      const float* data = batch.qkv.data() + row * batch.width();
      q.insert(q.end(), data, data + h * d);
    }
    begin.push_back(begin.back() + count);
    first.push_back(segment.prefix_len + from);
    const auto table = paged.tables.begin() + static_cast<std::int64_t>(s) * paged.blocks;
    tables.insert(tables.end(), table, table + paged.blocks);
  }
  const std::int64_t tokens = begin.back(), sequences = std::ssize(first);
  const Stored qs(dtype, {tokens, h, d}, q), outs = Stored::poisoned(dtype, {tokens, h, d});
  backend.attention_paged(stream, {.q = qs,
                                   .k_pages = pools.k,
                                   .v_pages = pools.v,
                                   .block_tables = tensor(tables.data(), {sequences, paged.blocks}),
                                   .query_begin = tensor(begin.data(), {sequences + 1}),
                                   .first_position = tensor(first.data(), {sequences}),
                                   .scale = batch.scale(),
                                   .out = outs});
  const Floats out = outs.values();
  for (std::int64_t i = 0; i < tokens; ++i) {
    std::copy_n(out.begin() + i * h * d, h * d, result.begin() + own_rows[i] * h * d);
  }
  return result;
}

struct Queries {
  std::int32_t from, count;
};

TEST_P(AttentionHeads, PagedHasTheBitsOfPacked) {  // AT-1
  const Batch batch = make_batch(GetParam(), 2);
  const std::int64_t width = batch.heads.h * batch.heads.d;
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Floats packed = run_packed(backend, stream, batch).out;
    const Paged paged = make_pages(backend, stream, batch);
    const Pools pools(DType::kF32, batch, paged);
    const Floats prefill = run_paged(backend, stream, batch, paged, pools, [](const Segment& s) {
      return Queries{0, s.len};
    });
    EXPECT_TRUE(same_bits(packed, prefill)) << "all queries at once";
    // Decode: one query each, at every depth; a chunked prefill of seven.
    for (const std::int32_t step : {1, 7}) {
      Floats steps = poison(std::ssize(packed));
      for (std::int32_t from = 0; from < 50; from += step) {
        const Floats some = run_paged(backend, stream, batch, paged, pools, [&](const Segment& s) {
          return Queries{from, std::max(0, std::min(step, s.len - from))};
        });
        for (std::size_t i = 0; i < some.size(); ++i) {
          if (!std::isnan(some[i])) steps[i] = some[i];
        }
      }
      EXPECT_TRUE(same_bits(packed, steps)) << "in steps of " << step;
    }
    // The same batch without sharing: each segment's prefix is copied before its own rows.
    for (const Segment& s : batch.segments) {
      Batch alone{.heads = batch.heads};
      alone.add_family(s.prefix_len + s.len, {});
      for (std::int64_t p = 0; p < alone.rows; ++p) {
        const auto from = batch.qkv.begin() + row_at(s, p) * batch.width();
        alone.qkv.insert(alone.qkv.end(), from, from + batch.width());
      }
      const Floats out = run_packed(backend, stream, alone).out;
      const auto own = static_cast<std::size_t>(s.len * width);
      EXPECT_TRUE(same_bits(std::span(out).last(own), {packed.data() + s.begin * width, own}));
    }
    return packed;
  });
}

// The gradient of sum(out * dout), laid out as qkv.
Floats backward(const Backend& backend, const Stream& stream, const Batch& batch,
                const Floats& dout) {
  const Packed packed = run_packed(backend, stream, batch);
  const auto [h, g, d] = batch.heads;
  Floats to = poison(batch.rows * batch.width());
  backend.attention_backward(stream, {.dout = tensor(dout.data(), {batch.rows, h, d}),
                                      .q = batch.q(batch.qkv),
                                      .k = batch.k(batch.qkv),
                                      .v = batch.v(batch.qkv),
                                      .out = tensor(packed.out.data(), {batch.rows, h, d}),
                                      .lse = tensor(packed.lse.data(), {batch.rows, h}),
                                      .segments = batch.segments,
                                      .scale = batch.scale(),
                                      .dq = batch.q(to),
                                      .dk = batch.k(to),
                                      .dv = batch.v(to)});
  return to;
}

TEST_P(AttentionHeads, BackwardMatchesFiniteDifferences) {
  Batch batch{.heads = GetParam()};
  batch.add_family(3, {2, 1});
  batch.add_family(15, {3});
  Rng rng(3);
  batch.qkv = normals(rng, batch.rows * batch.width());
  const auto [h, g, d] = batch.heads;
  const Floats dout = normals(rng, batch.rows * h * d);
  const Floats gradient = same_everywhere([&](const Backend& backend, const Stream& stream) {
    return backward(backend, stream, batch, dout);
  });
  EXPECT_FALSE(has_nan(gradient));
  const auto loss = [&] { return dot(run_packed(cpu_backend(), Stream{}, batch).out, dout); };
  // Every third element keeps the test short; the stride is coprime to the width.
  for (std::size_t i = rng.below(3); i < batch.qkv.size(); i += 11) {
    expect_gradient(std::span(batch.qkv).subspan(i, 1), std::span(gradient).subspan(i, 1), loss);
  }
}

// Paged attention rounds once too, hence in bf16 the two have the same bits.
TEST_P(AttentionHeads, InBf16ForwardRoundsOnce) {  // AT-1
  Batch batch = make_batch(GetParam(), 5);
  batch.qkv = rounded(batch.qkv, DType::kBF16);
  const auto [h, g, d] = batch.heads;
  expect_rounded_once({DType::kBF16, DType::kF32, DType::kBF16, DType::kBF16},
                      [&](DType dtype, const Backend& backend, const Stream& stream) {
                        const Stored qkv(dtype, {batch.rows, batch.width()}, batch.qkv);
                        const Stored out = Stored::poisoned(dtype, {batch.rows, h, d});
                        const Stored lse = Stored::poisoned(DType::kF32, {batch.rows, h});
                        backend.attention_packed(stream, {.q = batch.q(qkv),
                                                          .k = batch.k(qkv),
                                                          .v = batch.v(qkv),
                                                          .segments = batch.segments,
                                                          .scale = batch.scale(),
                                                          .out = out,
                                                          .lse = lse});
                        const Paged paged = make_pages(backend, stream, batch);
                        const Pools pools(dtype, batch, paged);
                        const auto paged_out = [&](std::int32_t from, std::int32_t most) {
                          return run_paged(
                              backend, stream, batch, paged, pools, [&](const Segment& s) {
                                return Queries{from, std::max(0, std::min(most, s.len - from))};
                              });
                        };
                        const Floats prefill = paged_out(0, 1000), decode = paged_out(4, 1);
                        if (dtype == DType::kBF16) {
                          EXPECT_TRUE(same_bits(out.values(), prefill));
                        }
                        return std::vector{out.values(), lse.values(), prefill, decode};
                      });
}

TEST_P(AttentionHeads, InBf16GradientsAreRoundedOnce) {
  Batch batch = make_batch(GetParam(), 6);
  batch.qkv = rounded(batch.qkv, DType::kBF16);
  const auto [h, g, d] = batch.heads;
  const Packed forward = run_packed(cpu_backend(), Stream{}, batch);
  Rng rng(7);
  const Floats dout = rounded(normals(rng, batch.rows * h * d), DType::kBF16);
  const Floats out = rounded(forward.out, DType::kBF16);
  expect_rounded_once(
      {DType::kBF16}, [&](DType dtype, const Backend& backend, const Stream& stream) {
        const Stored qkv(dtype, {batch.rows, batch.width()}, batch.qkv);
        const Stored to = Stored::poisoned(dtype, {batch.rows, batch.width()});
        const Stored douts(dtype, {batch.rows, h, d}, dout), outs(dtype, {batch.rows, h, d}, out);
        const std::int64_t needed =
            attention_backward_workspace(device::DeviceKind::kCpu, batch.q(qkv), batch.k(qkv));
        Floats workspace = poison(needed);
        backend.attention_backward(stream, {.dout = douts,
                                            .q = batch.q(qkv),
                                            .k = batch.k(qkv),
                                            .v = batch.v(qkv),
                                            .out = outs,
                                            .lse = tensor(forward.lse.data(), {batch.rows, h}),
                                            .segments = batch.segments,
                                            .scale = batch.scale(),
                                            .dq = batch.q(to),
                                            .dk = batch.k(to),
                                            .dv = batch.v(to),
                                            .workspace = tensor(workspace.data(), {needed})});
        return std::vector<Floats>{to.values()};
      });
}

INSTANTIATE_TEST_SUITE_P(Heads, AttentionHeads,
                         testing::Values(HeadShape{2, 1, 32}, HeadShape{4, 4, 16},
                                         HeadShape{8, 2, 48}));

TEST(Attention, BackwardOfASharedPrefixIsTheSumOverItsUsers) {
  Batch batch{.heads = {2, 1, 16}};
  batch.add_family(20, {9, 30, 4});
  Rng rng(4);
  batch.qkv = normals(rng, batch.rows * batch.width());
  const auto [h, g, d] = batch.heads;
  const Floats dout = normals(rng, batch.rows * h * d);
  const Floats shared = backward(cpu_backend(), Stream{}, batch, dout);
  std::vector<double> expected(shared.size());
  for (const Segment& s : batch.segments) {
    Batch alone{.heads = batch.heads};
    alone.add_family(s.prefix_len + s.len, {});
    Floats own_dout;
    for (std::int64_t p = 0; p < alone.rows; ++p) {
      const std::int64_t row = row_at(s, p);
      alone.qkv.insert(alone.qkv.end(), batch.qkv.begin() + row * batch.width(),
                       batch.qkv.begin() + (row + 1) * batch.width());
      for (std::int64_t c = 0; c < h * d; ++c) {
        own_dout.push_back(p < s.prefix_len ? 0.0f : dout[row * h * d + c]);
      }
    }
    const Floats part = backward(cpu_backend(), Stream{}, alone, own_dout);
    for (std::int64_t i = 0; i < std::ssize(part); ++i) {
      expected[row_at(s, i / batch.width()) * batch.width() + i % batch.width()] += part[i];
    }
  }
  for (std::size_t i = 0; i < shared.size(); ++i) ASSERT_NEAR(shared[i], expected[i], 2e-5);
}

// Values that cancel only if they are added in the stated order: a large one, its negative, then a
// small one that a large partial sum would swallow. Scores make every query read its prefix alone
// and evenly, so that each adds the same share of its dout to the gradient of a prefix's value.
TEST(Attention, GradientsOfASharedPrefixAreSummedInOrder) {  // AT-2
  constexpr float kLarge = 1 << 27, kSmall = 4;
  constexpr std::int64_t kChannels = 16;
  for (const bool one_segment : {false, true}) {
    Batch batch{.heads = {1, 1, kChannels}};
    one_segment ? batch.add_family(4, {2, 1}) : batch.add_family(4, {1, 1, 1});
    batch.qkv.assign(static_cast<std::size_t>(batch.rows * batch.width()), 0.0f);
    Floats dout(static_cast<std::size_t>(batch.rows * kChannels), 0.0f);
    for (std::int64_t row = 4; row < batch.rows; ++row) {
      batch.qkv[row * batch.width()] = 1;                  // q
      batch.qkv[row * batch.width() + kChannels] = -1000;  // k: no query reads own rows
      dout[row * kChannels] = row == 4 ? kLarge : row == 5 ? -kLarge : kSmall;
    }
    const Floats gradient = same_everywhere([&](const Backend& backend, const Stream& stream) {
      return backward(backend, stream, batch, dout);
    });
    for (std::int64_t row = 0; row < 4; ++row)
      EXPECT_NEAR(gradient[row * batch.width() + 2 * kChannels], kSmall / 4, 1e-5) << one_segment;
  }
}

TEST(KvCache, CopiedPagesServeLikeTheirOriginals) {
  Batch batch{.heads = {2, 2, 16}};
  batch.add_family(20, {});
  Rng rng(5);
  batch.qkv = normals(rng, batch.rows * batch.width());
  const auto whole = [](const Segment& s) { return Queries{0, s.len}; };
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    Paged paged = make_pages(backend, stream, batch);
    const Floats before =
        run_paged(backend, stream, batch, paged, Pools(DType::kF32, batch, paged), whole);
    const std::int32_t page = paged.tables[0], other = paged.tables[1];
    const PageCopy copies[] = {{page, other}};
    const auto shape = {paged.pages, std::int64_t{2}, kPage, std::int64_t{16}};
    backend.kv_copy(stream, {.pages = copies,
                             .k_pages = tensor(paged.k.data(), shape),
                             .v_pages = tensor(paged.v.data(), shape)});
    paged.tables[0] = other;
    const Pools pools(DType::kF32, batch, paged);
    EXPECT_TRUE(same_bits(before, run_paged(backend, stream, batch, paged, pools, whole)));
    return before;
  });
}

TEST(KvCache, PagesInBf16LieAsThoseInF32) {
  const std::int64_t t = 37, g = 3, d = 16, pages = 4, width = 2 * g * d;
  Rng rng(8);
  const Floats fused = rounded(normals(rng, t * width), DType::kBF16);
  std::vector<std::int32_t> slots;
  for (std::int32_t i = 0; i < t; ++i) slots.push_back(i % 5 == 0 ? -1 : i * 11 % 128);
  const PageCopy copies[] = {{0, 1}, {1, 2}, {3, 3}};
  expect_rounded_once(
      {DType::kBF16, DType::kBF16}, [&](DType dtype, const Backend& backend, const Stream& stream) {
        const Stored all(dtype, {t, width}, fused);
        const Stored keys(dtype, {pages, g, kPage, d}, Floats(pages * g * kPage * d, 7.0f));
        const Stored values(dtype, {pages, g, kPage, d}, Floats(pages * g * kPage * d, 8.0f));
        const auto heads = [&](std::int64_t first) {
          return device::split_heads(device::columns(all, first * d, g * d), g);
        };
        backend.kv_write(stream, {.k = heads(0),
                                  .v = heads(g),
                                  .slots = tensor(slots.data(), {t}),
                                  .k_pages = keys,
                                  .v_pages = values});
        backend.kv_copy(stream, {.pages = copies, .k_pages = keys, .v_pages = values});
        return std::vector{keys.values(), values.values()};
      });
}

}  // namespace
}  // namespace tandem::kernels
