#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kTokensPerRange = 512;
constexpr std::int64_t kChannelsPerRange = 64;

template <class T>
void take_rows(const Stream& stream, const Embedding& op) {
  const T* table = data<T>(op.table);
  T* y = data<T>(op.y);
  const std::int64_t channels = op.table.dim(1);
  const std::int32_t* ids = op.ids.i32();
  const auto* drawn = static_cast<const std::int32_t*>(op.drawn.data);
  runtime::parallel_for(stream.pool, op.ids.dim(0), kTokensPerRange,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t t = begin; t < end; ++t) {
                            const std::int32_t id = ids[t] < 0 ? drawn[~ids[t]] : ids[t];
                            const T* from = table + id * op.table.row_stride;
                            T* to = y + t * op.y.row_stride;
                            for (std::int64_t c = 0; c < channels; c += kLanes) {
                              const int n = lanes(channels - c);
                              store(to + c, load(from + c, n), n);
                            }
                          }
                        });
}

// Threads share the channels, not the tokens: two tokens may be the same row of the table.
template <class T>
void add_rows(const Stream& stream, const EmbeddingBackward& op) {
  const T* dy = data<T>(op.dy);
  const std::int64_t tokens = op.ids.dim(0);
  const std::int32_t* ids = op.ids.i32();
  runtime::parallel_for(stream.pool, op.dtable.dim(1), kChannelsPerRange,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t t = 0; t < tokens; ++t) {
                            const T* from = dy + t * op.dy.row_stride;
                            float* to = op.dtable.f32() + ids[t] * op.dtable.row_stride;
                            for (std::int64_t c = begin; c < end; c += kLanes) {
                              const int n = lanes(end - c);
                              store(to + c, load(to + c, n) + load(from + c, n), n);
                            }
                          }
                        });
}

}  // namespace

void embedding(const Stream& stream, const Embedding& op) {
  with_type(op.y.dtype, [&]<class T>(T) { take_rows<T>(stream, op); });
}

void embedding_backward(const Stream& stream, const EmbeddingBackward& op) {
  with_type(op.dy.dtype, [&]<class T>(T) { add_rows<T>(stream, op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
