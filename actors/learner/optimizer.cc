#include "actors/learner/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/ops/adamw.h"
#include "kernels/ops/global_norm.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::actors {
namespace {

runtime::TensorView flat(const runtime::Buffer& floats) {
  return runtime::tensor(floats.data(), runtime::DType::kF32,
                         {static_cast<std::int64_t>(floats.size() / sizeof(float))});
}

// On a CPU both sides are one memory.
void copy_moment(const runtime::Stream& stream, std::byte* to, const std::byte* from,
                 std::size_t bytes) {
  if (to != from) runtime::copy(stream, to, from, bytes);
}

}  // namespace

Result<Optimizer> Optimizer::allocate(std::size_t arena_bytes, runtime::DeviceKind device) {
  const runtime::Place place = runtime::operand_place(device);
  auto m = runtime::Buffer::allocate(arena_bytes, "AdamW's first moments", place);
  if (!m) return m.error();
  auto v = runtime::Buffer::allocate(arena_bytes, "AdamW's second moments", place);
  if (!v) return v.error();
  const std::int64_t sums =
      kernels::sum_of_squares_workspace(static_cast<std::int64_t>(arena_bytes / sizeof(float)));
  auto workspace = runtime::Buffer::allocate(static_cast<std::size_t>(sums) * sizeof(double),
                                             "the gradient's norm", place);
  if (!workspace) return workspace.error();
  auto squares = runtime::Staged::allocate(sizeof(double), "the gradient's norm", device);
  if (!squares) return squares.error();
  Optimizer optimizer;
  optimizer.m_ = *std::move(m);
  optimizer.v_ = *std::move(v);
  optimizer.norm_workspace_ = *std::move(workspace);
  optimizer.squares_ = *std::move(squares);
  return optimizer;
}

void Optimizer::reset(const runtime::Stream& stream) {
  runtime::zero(stream, m_.data(), m_.size());
  runtime::zero(stream, v_.data(), v_.size());
  steps_ = 0;
}

Result<Optimizer::HostMoments> Optimizer::host_moments() const {
  if (m_.place() != runtime::Place::kDevice)
    return HostMoments{.m = m_.bytes(), .v = v_.bytes(), .copy = {}};
  auto copy = runtime::Buffer::allocate(m_.size() + v_.size(), "a copy of AdamW's moments");
  if (!copy) return copy.error();
  const std::span<std::byte> both = copy->bytes();
  return HostMoments{
      .m = both.first(m_.size()), .v = both.subspan(m_.size()), .copy = *std::move(copy)};
}

void Optimizer::fetch(const runtime::Stream& stream, const HostMoments& to) const {
  CHECK(to.m.size() == m_.size() && to.v.size() == v_.size());
  copy_moment(stream, to.m.data(), m_.data(), m_.size());
  copy_moment(stream, to.v.data(), v_.data(), v_.size());
  runtime::synchronize(stream);
}

void Optimizer::put(const runtime::Stream& stream, const HostMoments& from) {
  CHECK(from.m.size() == m_.size() && from.v.size() == v_.size());
  copy_moment(stream, m_.data(), from.m.data(), m_.size());
  copy_moment(stream, v_.data(), from.v.data(), v_.size());
  runtime::synchronize(stream);
}

double Optimizer::apply(const runtime::Stream& stream, const OptimizerConfig& config, double lr,
                        const runtime::Arena& weights, const runtime::Arena& gradients) {
  double* const squares = reinterpret_cast<double*>(squares_.host());
  runtime::zero(stream, squares_.on_device(squares), sizeof *squares);
  kernels::sum_of_squares(stream, {.x = gradients.flat(),
                                   .workspace = {reinterpret_cast<double*>(norm_workspace_.data()),
                                                 norm_workspace_.size() / sizeof(double)},
                                   .sum = squares_.on_device(squares)});
  squares_.download(stream, sizeof *squares);
  runtime::synchronize(stream);
  const double norm = std::sqrt(*squares);
  if (!std::isfinite(norm)) return norm;
  const double scale =
      config.grad_clip > 0 ? std::min(1.0, config.grad_clip / (norm + kClipEps)) : 1.0;
  ++steps_;
  kernels::adamw(stream, {.parameters = weights.flat(),
                          .gradients = gradients.flat(),
                          .m = flat(m_),
                          .v = flat(v_),
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
