#include "actors/learner/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/ops/adamw.h"
#include "kernels/ops/global_norm.h"

namespace tandem::actors {
namespace {

runtime::TensorView flat(std::span<float> values) {
  return runtime::tensor(values.data(), {std::ssize(values)});
}

}  // namespace

Optimizer::Optimizer(runtime::HostBuffer m, runtime::HostBuffer v)
    : m_(std::move(m)), v_(std::move(v)) {
  norm_workspace_.resize(
      static_cast<std::size_t>(kernels::sum_of_squares_workspace(std::ssize(m_.as<float>()))));
}

Result<Optimizer> Optimizer::allocate(std::size_t arena_bytes) {
  auto m = runtime::HostBuffer::allocate(arena_bytes, "AdamW's first moments");
  if (!m) return m.error();
  auto v = runtime::HostBuffer::allocate(arena_bytes, "AdamW's second moments");
  if (!v) return v.error();
  return Optimizer(*std::move(m), *std::move(v));
}

void Optimizer::reset() {
  std::fill(m().begin(), m().end(), std::byte{0});
  std::fill(v().begin(), v().end(), std::byte{0});
  steps_ = 0;
}

double Optimizer::apply(const runtime::Stream& stream, const OptimizerConfig& config, double lr,
                        const runtime::Arena& weights, const runtime::Arena& gradients) {
  double squares = 0;
  kernels::sum_of_squares(
      stream, {.x = flat(gradients.f32()), .workspace = norm_workspace_, .sum = &squares});
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return norm;
  const double scale =
      config.grad_clip > 0 ? std::min(1.0, config.grad_clip / (norm + kClipEps)) : 1.0;
  ++steps_;
  kernels::adamw(stream, {.parameters = flat(weights.f32()),
                          .gradients = flat(gradients.f32()),
                          .m = flat(m_.as<float>()),
                          .v = flat(v_.as<float>()),
                          .step = static_cast<std::int64_t>(steps_),
                          .lr = lr,
                          .beta1 = config.beta1,
                          .beta2 = config.beta2,
                          .eps = config.eps,
                          .weight_decay = config.weight_decay,
                          .grad_scale = static_cast<float>(scale)});
  return norm;
}

}  // namespace tandem::actors
