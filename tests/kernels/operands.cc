// Numbers that are random from a seed, or poisoned with NaN; runs of one body on every instruction
// set, whose results must have the same bits; tolerances and finite differences.
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

Floats rounded(Floats values, DType dtype) {
  device::to_f32(stored(dtype, values), dtype, values);
  return values;
}

std::vector<std::byte> stored(DType dtype, std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() * device::size_bytes(dtype));
  device::from_f32(values, dtype, bytes);
  return bytes;
}

std::string dtype_name(const testing::TestParamInfo<DType>& info) {
  return device::name(info.param);
}

Stored::Stored(DType dtype, std::initializer_list<std::int64_t> shape,
               std::span<const float> values)
    : memory_(*device::Buffer::allocate(values.size() * device::size_bytes(dtype), "a test")),
      view_(device::tensor(static_cast<void*>(memory_.data()), dtype, shape)) {
  CHECK(view_.elements() == std::ssize(values));
  device::from_f32(values, dtype, memory_.as<std::byte>());
}

Stored Stored::poisoned(DType dtype, std::initializer_list<std::int64_t> shape) {
  const TensorView view = device::tensor(static_cast<void*>(nullptr), dtype, shape);
  return Stored(dtype, shape, poison(view.elements()));
}

Floats Stored::values() const {
  Floats values(static_cast<std::size_t>(view_.elements()));
  device::to_f32(memory_.as<std::byte>(), view_.dtype, values);
  return values;
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
  std::vector<Isa> all;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (isa <= best) all.push_back(isa);
  }
  static const int said =
      best == Isa::kAvx512Bf16
          ? 0
          : std::printf("this CPU has nothing better than %s to test\n", name(best));
  static_cast<void>(said);
  return all;
}

Floats same_everywhere(const Body& body) {
  device::ThreadPool pool(2);
  std::vector<Floats> results;
  for (const Isa isa : isas()) {
    results.push_back(body(cpu_backend(isa), Stream{}));
    results.push_back(body(cpu_backend(isa), Stream{.pool = &pool}));
    EXPECT_TRUE(same_bits(results.front(), results[results.size() - 2])) << name(isa);
    EXPECT_TRUE(same_bits(results.front(), results.back())) << name(isa) << " on two threads";
  }
  return results.front();
}

void expect_rounded_once(std::initializer_list<DType> types, const TypedBody& body) {
  Floats expected;
  std::vector<Floats> exact = body(DType::kF32, cpu_backend(), Stream{});
  ASSERT_EQ(exact.size(), types.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const Floats part = rounded(std::move(exact[i]), types.begin()[i]);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  const Floats actual = same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats all;
    for (const Floats& part : body(DType::kBF16, backend, stream))
      all.insert(all.end(), part.begin(), part.end());
    return all;
  });
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_TRUE(same_bits({&actual[i], 1}, {&expected[i], 1}))
        << "element " << i << ": " << actual[i] << " for " << expected[i];
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 2e-5;
    case DType::kBF16:
      return 1.0 / 256;
    case DType::kF16:
    case DType::kI32:
    case DType::kU8:
      break;
  }
  CHECK(false);
}

void expect_close(std::span<const float> actual, std::span<const float> expected, DType dtype) {
  ASSERT_EQ(actual.size(), expected.size());
  double squares = 0;
  for (const float value : expected) squares += static_cast<double>(value) * value;
  const double typical = expected.empty() ? 0 : std::sqrt(squares / std::size(expected));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double size = std::abs(static_cast<double>(expected[i])) + typical;
    ASSERT_NEAR(actual[i], expected[i], tolerance(dtype) * size) << "element " << i;
  }
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
