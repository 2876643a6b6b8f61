#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

// A [R, C] or [T, H, C] view as rows of C channels.
struct Rows {
  float* data = nullptr;
  std::int64_t outer_stride = 0;
  std::int64_t heads = 1;
  std::int64_t channels = 0;
  std::int64_t count = 0;

  [[gnu::always_inline]] float* row(std::int64_t r) const {
    return heads == 1 ? data + r * outer_stride
                      : data + r / heads * outer_stride + r % heads * channels;
  }
};

Rows rows_of(const TensorView& view) {
  const std::int64_t heads = view.rank == 3 ? view.dim(1) : 1;
  return {.data = view.empty() ? nullptr : view.f32(),
          .outer_stride = view.row_stride,
          .heads = heads,
          .channels = view.dim(view.rank - 1),
          .count = view.dim(0) * heads};
}

void normalise_row(const float* x, const float* weight, float* y, float* inv_rms,
                   std::int64_t channels, float eps) {
  F32x16 squares = zero();
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const F32x16 v = load(x + c, lanes(channels - c));
    squares = fma(v, v, squares);
  }
  const float mean = reduce_add(squares) / static_cast<float>(channels);
  const float inverse = 1.0f / __builtin_sqrtf(mean + eps);
  const F32x16 factor = set(inverse);
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const int n = lanes(channels - c);
    store(y + c, load(x + c, n) * factor * load(weight + c, n), n);
  }
  if (inv_rms != nullptr) *inv_rms = inverse;
}

void add_row(float* x, const float* more, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const int n = lanes(channels - c);
    store(x + c, load(x + c, n) + load(more + c, n), n);
  }
}

struct RowGradient {
  const float* dy;
  const float* x;
  const float* weight;
  float inverse;
  float* dx;
  float* dweight;  // of the row's block
  std::int64_t channels;
  bool accumulate;
};

// With n = x * inverse:  dx = inverse * (dy * w - n * mean(dy * w * n)),  dweight += dy * n.
void row_gradient(const RowGradient& row) {
  const F32x16 inverse = set(row.inverse);
  F32x16 dots = zero();
  for (std::int64_t c = 0; c < row.channels; c += kLanes) {
    const int n = lanes(row.channels - c);
    const F32x16 dy = load(row.dy + c, n), normal = load(row.x + c, n) * inverse;
    dots = fma(dy * load(row.weight + c, n), normal, dots);
    store(row.dweight + c, fma(dy, normal, load(row.dweight + c, n)), n);
  }
  const F32x16 mean = set(reduce_add(dots) / static_cast<float>(row.channels));
  for (std::int64_t c = 0; c < row.channels; c += kLanes) {
    const int n = lanes(row.channels - c);
    const F32x16 scaled = load(row.dy + c, n) * load(row.weight + c, n);
    const F32x16 gradient = inverse * fnma(load(row.x + c, n) * inverse, mean, scaled);
    store(row.dx + c, row.accumulate ? load(row.dx + c, n) + gradient : gradient, n);
  }
}

}  // namespace

void rms_norm(const Stream& stream, const RmsNorm& op) {
  const Rows x = rows_of(op.x), y = rows_of(op.y);
  const Rows more = op.add.empty() ? Rows{} : rows_of(op.add);
  const float* weight = op.weight.f32();
  float* inv_rms = op.inv_rms.empty() ? nullptr : op.inv_rms.f32();
  runtime::parallel_for(
      stream.pool, x.count, kNormRowsPerBlock, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          if (more.data != nullptr) add_row(x.row(r), more.row(r), x.channels);
          normalise_row(x.row(r), weight, y.row(r), inv_rms == nullptr ? nullptr : inv_rms + r,
                        x.channels, op.eps);
        }
      });
}

void rms_norm_backward(const Stream& stream, const RmsNormBackward& op) {
  const Rows dy = rows_of(op.dy), x = rows_of(op.x), dx = rows_of(op.dx);
  const std::int64_t channels = x.channels;
  const float* weight = op.weight.f32();
  const float* inv_rms = op.inv_rms.f32();
  float* blocks = op.workspace.f32();
  runtime::parallel_for(stream.pool, x.count, kNormRowsPerBlock,
                        [&](std::int64_t begin, std::int64_t end) {
                          float* dweight = blocks + begin / kNormRowsPerBlock * channels;
                          for (std::int64_t c = 0; c < channels; ++c) dweight[c] = 0.0f;
                          for (std::int64_t r = begin; r < end; ++r) {
                            row_gradient({.dy = dy.row(r),
                                          .x = x.row(r),
                                          .weight = weight,
                                          .inverse = inv_rms[r],
                                          .dx = dx.row(r),
                                          .dweight = dweight,
                                          .channels = channels,
                                          .accumulate = op.output == Output::kAdd});
                          }
                        });
  for (std::int64_t begin = 0; begin < x.count; begin += kNormRowsPerBlock) {
    add_row(op.dweight.f32(), blocks + begin / kNormRowsPerBlock * channels, channels);
  }
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
