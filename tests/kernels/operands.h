// Builders for kernel tests: random and poisoned operands, comparison by bits, finite differences.
//
// An operator is tested through a backend's table, so that the same body runs on each instruction
// set; what a body returns must have the same bits everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/rng.h"

namespace tandem::kernels {

using Floats = std::vector<float>;

Floats normals(Rng& rng, std::int64_t count, float deviation = 1.0f);
Floats poison(std::int64_t count);  // NaN everywhere: proves that an output is written
std::vector<std::int32_t> ids_below(Rng& rng, std::int64_t count, std::int64_t bound);
// With every third id in `drawn`, and named by its place there (kernels/ops/embedding.h).
std::vector<std::int32_t> name_some(std::vector<std::int32_t> ids,
                                    std::vector<std::int32_t>& drawn);

// The instruction sets of this machine, AVX2 first; says once if AVX-512 is missing.
std::vector<Isa> isas();

// Runs `body` with every instruction set, alone and on two threads, and expects the same bits each
// time. Returns the result.
using Body = std::function<Floats(const Backend&, const Stream&)>;
Floats same_everywhere(const Body& body);

bool same_bits(std::span<const float> a, std::span<const float> b);
bool has_nan(std::span<const float> values);
Floats joined(std::initializer_list<Floats> parts);

// Expects analytic[i] to be the central difference of `loss` in x[i], within `tolerance` relative
// to the larger of 1 and either value. f32 losses with h = 1e-2 leave errors of about 1e-3.
void expect_gradient(std::span<float> x, std::span<const float> analytic,
                     const std::function<double()>& loss, double tolerance = 3e-3);

double dot(std::span<const float> a, std::span<const float> b);

}  // namespace tandem::kernels
