#include "kernels/ops/kv_cache.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/operators.h"
#include "kernels/ops/attention.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kTokensPerRange = 256;

template <class T>
void write_slots(const Stream& stream, const KvWrite& op) {
  const std::int64_t groups = op.k.dim(1), channels = op.k.dim(2);
  const std::int64_t positions = op.k_pages.dim(2), block = positions * channels;
  const std::int32_t* slots = op.slots.i32();
  device::parallel_for(
      stream.pool, op.slots.dim(0), kTokensPerRange, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) {
          if (slots[t] < 0) continue;
          const std::int64_t page = slots[t] / positions, position = slots[t] % positions;
          for (std::int64_t g = 0; g < groups; ++g) {
            const std::int64_t base = (page * groups + g) * block;
            const T* k = data<T>(op.k) + t * op.k.row_stride + g * channels;
            const T* v = data<T>(op.v) + t * op.v.row_stride + g * channels;
            // Channel 0 of the key, in its chunk [D][16]; the next channel is 16 elements on.
            T* k_column = data<T>(op.k_pages) + base +
                          position / kChunkPositions * kChunkPositions * channels +
                          position % kChunkPositions;
            T* v_row = data<T>(op.v_pages) + base + position * channels;
            for (std::int64_t d = 0; d < channels; ++d) {
              k_column[d * kChunkPositions] = k[d];
              v_row[d] = v[d];
            }
          }
        }
      });
}

// One thread copies the list in its order: a copy may read the bytes that an earlier one wrote.
template <class T>
void copy_pages(const KvCopy& op) {
  const std::int64_t elements = op.k_pages.row_elements();
  const auto bytes = static_cast<std::size_t>(elements) * sizeof(T);
  for (const PageCopy& copy : op.pages) {
    if (copy.from == copy.to) continue;
    for (T* pool : {data<T>(op.k_pages), data<T>(op.v_pages)}) {
      __builtin_memcpy(pool + copy.to * elements, pool + copy.from * elements, bytes);
    }
  }
}

}  // namespace

void kv_write(const Stream& stream, const KvWrite& op) {
  with_type(op.k_pages.dtype, [&]<class T>(T) { write_slots<T>(stream, op); });
}

void kv_copy(const Stream&, const KvCopy& op) {
  with_type(op.k_pages.dtype, [&]<class T>(T) { copy_pages<T>(op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
