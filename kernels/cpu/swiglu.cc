#include "kernels/ops/swiglu.h"

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/operators.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

constexpr std::int64_t kTokensPerRange = 64;

TANDEM_INLINE F32x16 sigmoid(F32x16 x) { return set(1.0f) / (set(1.0f) + exp(zero() - x)); }

template <class T>
void forward(const Stream& stream, const Swiglu& op) {
  const std::int64_t channels = op.y.dim(1);
  device::parallel_for(stream.pool, op.y.dim(0), kTokensPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t t = begin; t < end; ++t) {
                           const T* gate = data<T>(op.x) + t * op.x.row_stride;
                           const T* up = gate + channels;
                           T* y = data<T>(op.y) + t * op.y.row_stride;
                           for (std::int64_t f = 0; f < channels; f += kLanes) {
                             const int n = lanes(channels - f);
                             const F32x16 g = load(gate + f, n);
                             store(y + f, g * sigmoid(g) * load(up + f, n), n);
                           }
                         }
                       });
}

// dup = dy * silu(g) and dgate = dy * u * silu'(g), with silu'(g) = s * (1 + g * (1 - s)) and
// s = sigmoid(g). Lanes are loaded before they are stored: dx may be x itself.
template <class T>
void backward(const Stream& stream, const SwigluBackward& op) {
  const std::int64_t channels = op.dy.dim(1);
  const F32x16 one = set(1.0f);
  device::parallel_for(stream.pool, op.dy.dim(0), kTokensPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t t = begin; t < end; ++t) {
                           const T* gate = data<T>(op.x) + t * op.x.row_stride;
                           const T* dy = data<T>(op.dy) + t * op.dy.row_stride;
                           T* dgate = data<T>(op.dx) + t * op.dx.row_stride;
                           for (std::int64_t f = 0; f < channels; f += kLanes) {
                             const int n = lanes(channels - f);
                             const F32x16 g = load(gate + f, n), u = load(gate + channels + f, n);
                             const F32x16 d = load(dy + f, n), s = sigmoid(g);
                             store(dgate + f, d * u * s * fma(g, one - s, one), n);
                             store(dgate + channels + f, d * g * s, n);
                           }
                         }
                       });
}

}  // namespace

void swiglu(const Stream& stream, const Swiglu& op) {
  with_type(op.y.dtype, [&]<class T>(T) { forward<T>(stream, op); });
}

void swiglu_backward(const Stream& stream, const SwigluBackward& op) {
  with_type(op.dy.dtype, [&]<class T>(T) { backward<T>(stream, op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
