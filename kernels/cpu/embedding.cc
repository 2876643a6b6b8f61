#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kTokensPerRange = 512;
constexpr std::int64_t kChannelsPerRange = 64;

// Row `id` of a packed [V, C] table: column id % kPanelColumns of its panel [C, kPanelColumns].
void unpack_row(const PackedWeight& table, std::int64_t id, float* to) {
  const float* from =
      table.panels.f32() + id / kPanelColumns * table.k * kPanelColumns + id % kPanelColumns;
  for (std::int64_t c = 0; c < table.k; ++c) to[c] = from[c * kPanelColumns];
}

void copy_row(const float* from, std::int64_t channels, float* to) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const int n = lanes(channels - c);
    store(to + c, load(from + c, n), n);
  }
}
}  // namespace

void embedding(const Stream& stream, const Embedding& op) {
  const bool packed = op.table.empty();
  const std::int64_t channels = op.y.dim(1);
  const std::int32_t* ids = op.ids.i32();
  const auto* drawn = static_cast<const std::int32_t*>(op.drawn.data);
  runtime::parallel_for(stream.pool, op.ids.dim(0), kTokensPerRange,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t t = begin; t < end; ++t) {
                            const std::int32_t id = ids[t] < 0 ? drawn[~ids[t]] : ids[t];
                            float* to = op.y.f32() + t * op.y.row_stride;
                            if (packed) {
                              unpack_row(op.packed, id, to);
                            } else {
                              copy_row(op.table.f32() + id * op.table.row_stride, channels, to);
                            }
                          }
                        });
}

// Threads share the channels, not the tokens: two tokens may be the same row of the table.
void embedding_backward(const Stream& stream, const EmbeddingBackward& op) {
  const std::int64_t tokens = op.ids.dim(0);
  const std::int32_t* ids = op.ids.i32();
  runtime::parallel_for(stream.pool, op.dtable.dim(1), kChannelsPerRange,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t t = 0; t < tokens; ++t) {
                            const float* from = op.dy.f32() + t * op.dy.row_stride;
                            float* to = op.dtable.f32() + ids[t] * op.dtable.row_stride;
                            for (std::int64_t c = begin; c < end; c += kLanes) {
                              const int n = lanes(end - c);
                              store(to + c, load(to + c, n) + load(from + c, n), n);
                            }
                          }
                        });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
