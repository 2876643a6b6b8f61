#include "tests/kernels/operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "runtime/device/parallel.h"

namespace tandem::kernels {

Floats normals(Rng& rng, std::int64_t count, float deviation) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.normal()) * deviation;
  return values;
}

Floats poison(std::int64_t count) {
  return Floats(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

std::vector<std::int32_t> ids_below(Rng& rng, std::int64_t count, std::int64_t bound) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::int32_t& id : ids) {
    id = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(bound)));
  }
  return ids;
}

std::vector<std::int32_t> name_some(std::vector<std::int32_t> ids,
                                    std::vector<std::int32_t>& drawn) {
  for (std::size_t i = 0; i < ids.size(); i += 3) {
    drawn.push_back(ids[i]);
    ids[i] = ~static_cast<std::int32_t>(drawn.size() - 1);
  }
  return ids;
}

std::vector<Isa> isas() {
  const Isa best = detect_isa().value();
  if (best == Isa::kAvx2) {
    static const int said = std::printf("this CPU has no AVX-512: only AVX2 is tested\n");
    static_cast<void>(said);
    return {Isa::kAvx2};
  }
  return {Isa::kAvx2, Isa::kAvx512};
}

Floats same_everywhere(const Body& body) {
  runtime::ThreadPool pool(2);
  std::vector<Floats> results;
  for (const Isa isa : isas()) {
    results.push_back(body(cpu_backend(isa), Stream{}));
    results.push_back(body(cpu_backend(isa), Stream{.pool = &pool}));
    EXPECT_TRUE(same_bits(results.front(), results[results.size() - 2])) << name(isa);
    EXPECT_TRUE(same_bits(results.front(), results.back())) << name(isa) << " on two threads";
  }
  return results.front();
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

bool has_nan(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

Floats joined(std::initializer_list<Floats> parts) {
  Floats all;
  for (const Floats& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void expect_gradient(std::span<float> x, std::span<const float> analytic,
                     const std::function<double()>& loss, double tolerance) {
  ASSERT_EQ(x.size(), analytic.size());
  const float h = 1e-2f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float at = x[i];
    x[i] = at + h;
    const double above = loss();
    x[i] = at - h;
    const double below = loss();
    x[i] = at;
    const double expected = (above - below) / (2.0 * static_cast<double>(h));
    const double actual = static_cast<double>(analytic[i]);
    const double size = std::max({1.0, std::abs(expected), std::abs(actual)});
    ASSERT_NEAR(actual, expected, tolerance * size) << "element " << i;
  }
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

}  // namespace tandem::kernels
