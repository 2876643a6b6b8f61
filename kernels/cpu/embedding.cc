#include "kernels/ops/embedding.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "kernels/ops/matmul.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kTokensPerRange = 512;
constexpr std::int64_t kChannelsPerRange = 64;

// Copies row `id` of a packed [V, C] table (matmul.h), which is column id % kPanelColumns of its
// panel. In bf16 pairs of a row's values lie side by side.
template <class T>
void unpack_row(const PackedWeight& table, std::int64_t id, T* to) {
  constexpr std::int64_t kPair = sizeof(T) == 2 ? 2 : 1;
  const T* from = data<T>(table.panels) + id / kPanelColumns * table.panels.row_stride +
                  id % kPanelColumns * kPair;
  for (std::int64_t c = 0; c < table.k; ++c)
    to[c] = from[c / kPair * kPair * kPanelColumns + c % kPair];
}

template <class T>
void copy_row(const T* from, std::int64_t channels, T* to) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const int n = lanes(channels - c);
    store(to + c, load(from + c, n), n);
  }
}

template <class T>
void take_rows(const Stream& stream, const Embedding& op) {
  const bool packed = op.table.empty();
  const T* table = packed ? nullptr : data<T>(op.table);
  T* y = data<T>(op.y);
  const std::int64_t channels = op.y.dim(1);
  const std::int32_t* ids = op.ids.i32();
  const auto* drawn = static_cast<const std::int32_t*>(op.drawn.data);
  device::parallel_for(stream.pool, op.ids.dim(0), kTokensPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t t = begin; t < end; ++t) {
                           const std::int32_t id = ids[t] < 0 ? drawn[~ids[t]] : ids[t];
                           T* to = y + t * op.y.row_stride;
                           if (packed) {
                             unpack_row(op.packed, id, to);
                           } else {
                             copy_row(table + id * op.table.row_stride, channels, to);
                           }
                         }
                       });
}

// Threads share the channels and not the tokens: several tokens may add to one row of the table,
// and a row's sum must be in the order of the tokens.
template <class T>
void add_rows(const Stream& stream, const EmbeddingBackward& op) {
  const T* dy = data<T>(op.dy);
  const std::int64_t tokens = op.ids.dim(0);
  const std::int32_t* ids = op.ids.i32();
  device::parallel_for(stream.pool, op.dtable.dim(1), kChannelsPerRange,
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
