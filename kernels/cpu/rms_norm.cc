// Rows are independent in forward. In backward every row adds to the same dweight: each block of
// kNormRowsPerBlock rows sums up its own in the workspace, and the blocks are added ascending when
// all are done, so dweight does not depend on the number of threads.
#include "kernels/ops/rms_norm.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "kernels/ops/matmul.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

// A [R, C] or [T, H, C] view as rows of C channels.
template <class T>
struct Rows {
  T* first = nullptr;
  std::int64_t outer_stride = 0;  // elements from token to token
  std::int64_t heads = 1;         // rows of a token
  std::int64_t channels = 0;
  std::int64_t count = 0;  // R

  [[gnu::always_inline]] T* row(std::int64_t r) const {
    return heads == 1 ? first + r * outer_stride
                      : first + r / heads * outer_stride + r % heads * channels;
  }
};

template <class T>
Rows<T> rows_of(const TensorView& view) {
  const std::int64_t heads = view.rank == 3 ? view.dim(1) : 1;
  return {.first = data<T>(view),
          .outer_stride = view.row_stride,
          .heads = heads,
          .channels = view.dim(view.rank - 1),
          .count = view.dim(0) * heads};
}

// Lanes past the last channel load as zeros and add nothing to the squares. y may be x.
template <class T>
void normalise_row(const T* x, const T* weight, T* y, float* inv_rms, std::int64_t channels,
                   float eps) {
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

template <class T>
void add_row(T* x, const T* more, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const int n = lanes(channels - c);
    store(x + c, load(x + c, n) + load(more + c, n), n);
  }
}

template <class T>
struct RowGradient {
  const T* dy;
  const T* x;
  const T* weight;
  float inverse;
  T* dx;
  float* dweight;  // that of the row's block
  std::int64_t channels;
  bool accumulate;
};

// With n = x * inverse:  dx = inverse * (dy * w - n * mean(dy * w * n)),  dweight += dy * n.
// The first loop only reads dy, which dx may overwrite in the second.
template <class T>
void row_gradient(const RowGradient<T>& row) {
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

template <class T>
void forward(const Stream& stream, const RmsNorm& op) {
  const Rows<T> x = rows_of<T>(op.x), y = rows_of<T>(op.y);
  const Rows<T> more = op.add.empty() ? Rows<T>{} : rows_of<T>(op.add);
  const T* weight = data<T>(op.weight);
  float* inv_rms = data<float>(op.inv_rms);
  device::parallel_for(
      stream.pool, x.count, kNormRowsPerBlock, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          if (more.first != nullptr) add_row(x.row(r), more.row(r), x.channels);
          normalise_row(x.row(r), weight, y.row(r), inv_rms == nullptr ? nullptr : inv_rms + r,
                        x.channels, op.eps);
        }
      });
}

template <class T>
void backward(const Stream& stream, const RmsNormBackward& op) {
  const Rows<T> dy = rows_of<T>(op.dy), x = rows_of<T>(op.x), dx = rows_of<T>(op.dx);
  const std::int64_t channels = x.channels;
  const T* weight = data<T>(op.weight);
  const float* inv_rms = op.inv_rms.f32();
  float* blocks = op.workspace.f32();
  device::parallel_for(stream.pool, x.count, kNormRowsPerBlock,
                       [&](std::int64_t begin, std::int64_t end) {
                         float* dweight = blocks + begin / kNormRowsPerBlock * channels;
                         for (std::int64_t c = 0; c < channels; ++c) dweight[c] = 0.0f;
                         for (std::int64_t r = begin; r < end; ++r) {
                           row_gradient<T>({.dy = dy.row(r),
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

}  // namespace

void rms_norm(const Stream& stream, const RmsNorm& op) {
  with_type(op.x.dtype, [&]<class T>(T) { forward<T>(stream, op); });
}

void rms_norm_backward(const Stream& stream, const RmsNormBackward& op) {
  with_type(op.x.dtype, [&]<class T>(T) { backward<T>(stream, op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
