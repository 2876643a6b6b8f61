// Moments are stored part after part in two blocks without gaps, while weights and gradients are
// addressed by their place in the arena. Part::moments translates between the two.
#include "actors/learner/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/ops/adamw.h"
#include "kernels/ops/global_norm.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::learner {
namespace {

std::size_t float_bytes(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

device::TensorView floats_of(const device::Buffer& floats, std::int64_t begin, std::int64_t count) {
  return device::tensor(floats.data() + float_bytes(begin), device::DType::kF32, {count});
}

// HostMoments may be views of the optimizer's own memory; then there is nothing to copy.
void copy_moment(const device::Stream& stream, std::byte* to, const std::byte* from,
                 std::size_t bytes) {
  if (to != from) device::copy(stream, to, from, bytes);
}

}  // namespace

Result<Optimizer> Optimizer::allocate(std::int64_t arena_floats,
                                      std::vector<collective::ShardRange> own,
                                      device::DeviceKind device) {
  Optimizer optimizer;
  optimizer.arena_bytes_ = float_bytes(arena_floats);
  std::int64_t floats = 0, largest = 0;
  for (const collective::ShardRange& range : own) {
    CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= arena_floats);
    optimizer.parts_.push_back({.range = range, .moments = floats});
    floats += range.size();
    largest = std::max(largest, range.size());
  }
  const device::MemoryKind kind = device::operand_memory(device);
  auto m = device::Buffer::allocate(float_bytes(floats), "AdamW's first moments", kind);
  if (!m) return m.error();
  auto v = device::Buffer::allocate(float_bytes(floats), "AdamW's second moments", kind);
  if (!v) return v.error();
  // One workspace serves all parts, because they run one after another.
  const auto sums = static_cast<std::size_t>(kernels::sum_of_squares_workspace(largest));
  auto workspace = device::Buffer::allocate(sums * sizeof(double), "the gradient's norm", kind);
  if (!workspace) return workspace.error();
  auto squares = device::Staged::allocate(sizeof(double), "the gradient's norm", device);
  if (!squares) return squares.error();
  optimizer.m_ = *std::move(m);
  optimizer.v_ = *std::move(v);
  optimizer.norm_workspace_ = *std::move(workspace);
  optimizer.squares_ = *std::move(squares);
  return optimizer;
}

void Optimizer::reset(const device::Stream& stream) {
  device::zero(stream, m_.data(), m_.size());
  device::zero(stream, v_.data(), v_.size());
  steps_ = 0;
}

bool Optimizer::whole() const {
  return parts_.size() == 1 && float_bytes(parts_.front().range.size()) == arena_bytes_;
}

Result<Optimizer::HostMoments> Optimizer::host_moments() const {
  if (whole() && m_.kind() != device::MemoryKind::kDevice)
    return HostMoments{.m = m_.bytes(), .v = v_.bytes(), .copy = {}};
  auto copy = device::Buffer::allocate(2 * arena_bytes_, "a copy of AdamW's moments");
  if (!copy) return copy.error();
  const std::span<std::byte> both = copy->bytes();
  return HostMoments{
      .m = both.first(arena_bytes_), .v = both.subspan(arena_bytes_), .copy = *std::move(copy)};
}

void Optimizer::fetch(const device::Stream& stream, const HostMoments& to) const {
  // Other ranks' moments are not here: ShardedUpdate::gather_moments() collects them.
  CHECK(whole() && to.m.size() == m_.size() && to.v.size() == v_.size());
  copy_moment(stream, to.m.data(), m_.data(), m_.size());
  copy_moment(stream, to.v.data(), v_.data(), v_.size());
  device::synchronize(stream);
}

void Optimizer::put(const device::Stream& stream, const HostMoments& from) {
  CHECK(from.m.size() == arena_bytes_ && from.v.size() == arena_bytes_);
  for (const Part& part : parts_) {
    const std::size_t in_arena = float_bytes(part.range.begin), here = float_bytes(part.moments);
    const std::size_t bytes = float_bytes(part.range.size());
    copy_moment(stream, m_.data() + here, from.m.data() + in_arena, bytes);
    copy_moment(stream, v_.data() + here, from.v.data() + in_arena, bytes);
  }
  device::synchronize(stream);
}

void Optimizer::lay_out(const device::Stream& stream, Moment moment,
                        const device::Arena& arena) const {
  CHECK(arena.manifest().bytes_total == arena_bytes_);
  const device::Buffer& from = moment == Moment::kFirst ? m_ : v_;
  auto* const to = static_cast<std::byte*>(arena.flat().data);
  for (const Part& part : parts_)
    device::copy(stream, to + float_bytes(part.range.begin),
                 from.data() + float_bytes(part.moments), float_bytes(part.range.size()));
}

double Optimizer::squares(const device::Stream& stream, const device::Arena& gradients) {
  double* const squares = reinterpret_cast<double*>(squares_.host());
  // The kernel adds (+=), so all parts share one sum, which is read back once.
  device::zero(stream, squares_.on_device(squares), sizeof *squares);
  for (const Part& part : parts_) {
    if (part.range.size() == 0) continue;
    kernels::sum_of_squares(
        stream, {.x = device::rows(gradients.flat(), part.range.begin, part.range.size()),
                 .workspace = {reinterpret_cast<double*>(norm_workspace_.data()),
                               norm_workspace_.size() / sizeof(double)},
                 .sum = squares_.on_device(squares)});
  }
  squares_.download(stream, sizeof *squares);
  device::synchronize(stream);
  return *squares;
}

double Optimizer::begin_step(const OptimizerConfig& config, double lr, double squares) {
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return norm;
  // Gradients are scaled inside AdamW: to scale them here would be one more pass over the arena.
  const double scale =
      config.grad_clip > 0 ? std::min(1.0, config.grad_clip / (norm + kClipEps)) : 1.0;
  config_ = config;
  lr_ = lr;
  grad_scale_ = static_cast<float>(scale);
  ++steps_;
  return norm;
}

void Optimizer::update(const device::Stream& stream, std::size_t part, const device::Arena& weights,
                       const device::Arena& gradients) {
  const auto& [range, moments] = parts_[part];
  // A bucket may be too small to give every rank a shard.
  if (range.size() == 0) return;
  kernels::adamw(stream, {.parameters = device::rows(weights.flat(), range.begin, range.size()),
                          .gradients = device::rows(gradients.flat(), range.begin, range.size()),
                          .m = floats_of(m_, moments, range.size()),
                          .v = floats_of(v_, moments, range.size()),
                          .step = static_cast<std::int64_t>(steps_),
                          .lr = lr_,
                          .beta1 = config_.betas[0],
                          .beta2 = config_.betas[1],
                          .eps = config_.eps,
                          .weight_decay = config_.weight_decay,
                          .grad_scale = grad_scale_});
}

}  // namespace tandem::learner
