// Builders for kernel tests: random and poisoned operands, comparison by bits, finite differences.
//
// An operator is tested through a backend's table, so that the same body runs on each instruction
// set; the result of a body must have the same bits everywhere.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/attention_input.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/global_norm.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/policy_loss.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/sample.h"
#include "kernels/ops/sum_pieces.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/rng.h"
#include "runtime/device/memory.h"

namespace tandem::kernels {

using Floats = std::vector<float>;
using device::DType;

Floats normals(Rng& rng, std::int64_t count, float deviation = 1.0f);
Floats poison(std::int64_t count);  // NaN everywhere: proves that an output is written
inline constexpr DType kFloatTypes[] = {DType::kF32, DType::kBF16};

// The nearest values that the dtype has.
Floats rounded(Floats values, DType dtype);
std::vector<std::byte> stored(DType dtype, std::span<const float> values);
std::string dtype_name(const testing::TestParamInfo<DType>& info);

// A dense tensor in this process's memory, aligned as a device's blocks are.
class Stored {
 public:
  Stored(DType dtype, std::initializer_list<std::int64_t> shape, std::span<const float> values);
  // NaN everywhere.
  static Stored poisoned(DType dtype, std::initializer_list<std::int64_t> shape);

  const TensorView& view() const { return view_; }
  operator TensorView() const { return view_; }
  Floats values() const;

 private:
  device::Buffer memory_;
  TensorView view_;
};

std::vector<std::int32_t> ids_below(Rng& rng, std::int64_t count, std::int64_t bound);
// Moves every third id into `drawn` and names it by its place there (kernels/ops/embedding.h).
std::vector<std::int32_t> name_some(std::vector<std::int32_t> ids,
                                    std::vector<std::int32_t>& drawn);

// The instruction sets of this machine, AVX2 first; says once which ones are missing.
std::vector<Isa> isas();

// Runs `body` with every instruction set, alone and on two threads, and expects the same bits each
// time. Returns the result.
using Body = std::function<Floats(const Backend&, const Stream&)>;
Floats same_everywhere(const Body& body);

// The same in bf16: expects the bits of the computation in f32 from the same operands, rounded once
// to `types`, one for each part of what the body returns. The body takes the operands' dtype.
using TypedBody = std::function<std::vector<Floats>(DType, const Backend&, const Stream&)>;
void expect_rounded_once(std::initializer_list<DType> types, const TypedBody& body);

bool same_bits(std::span<const float> a, std::span<const float> b);
bool has_nan(std::span<const float> values);
Floats joined(std::initializer_list<Floats> parts);

// How far a result may lie from the CPU's, in units of |expected| + its root mean square.
//   f32   2e-5    the same f32 operations summed in another order: some 10 roundings of 2^-24 in
//                 chains of up to 10,000 terms, and cancellation within a sum
//   bf16  2^-8    one rounding to 8 bits of the exact result, where the CPU's and the GPU's f32
//   values
//                 may fall to either side of a tie: one unit in the last place
// The result's own dtype counts: f32 sums of bf16 operands are held to f32's.
double tolerance(DType dtype);

void expect_close(std::span<const float> actual, std::span<const float> expected, DType dtype);

// Expects analytic[i] to be the central difference of `loss` in x[i], within `tolerance` relative
// to the larger of 1 and either value. f32 losses with h = 1e-2 leave errors of about 1e-3.
void expect_gradient(std::span<float> x, std::span<const float> analytic,
                     const std::function<double()>& loss, double tolerance = 3e-3);

double dot(std::span<const float> a, std::span<const float> b);

}  // namespace tandem::kernels
