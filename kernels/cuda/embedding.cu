// Backward works without atomic additions, whose order would change from run to run: the block of
// an id's first occurrence adds up all occurrences, ascending, which is the CPU's order to the bit.
// The blocks of later occurrences end. Each block reads the ids of all tokens, which is quadratic
// but cheap: 16,384 tokens read 1 GB out of the L2 cache.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/reduce.cuh"
#include "kernels/ops/embedding.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

template <class T, bool kVector>
__global__ void embedding_kernel(const std::int32_t* ids, const std::int32_t* drawn, const T* table,
                                 std::int64_t table_stride, T* y, std::int64_t y_stride,
                                 std::int64_t channels) {
  const std::int64_t t = blockIdx.x;
  const std::int32_t id = ids[t] < 0 ? drawn[~ids[t]] : ids[t];
  const T* from = table + id * table_stride;
  T* to = y + t * y_stride;
  for (std::int64_t c = std::int64_t{threadIdx.x} * kPack<T>; c < channels;
       c += kThreads * kPack<T>) {
    store_pack<kVector>(to + c, load_pack<kVector>(from + c, channels - c), channels - c);
  }
}

// Finds which of the kThreads tokens from `begin` on, and before `end`, are `id`: bit i of word w
// stands for token begin + 32 w + i. The whole block calls together; `words` is shared memory.
__device__ __forceinline__ void find_tokens(const std::int32_t* ids, std::int64_t begin,
                                            std::int64_t end, std::int32_t id, unsigned* words) {
  const std::int64_t at = begin + threadIdx.x;
  __syncthreads();  // until all threads have read the words of the call before
  const unsigned word = __ballot_sync(kAllLanes, at < end && ids[at] == id);
  if (threadIdx.x % kWarp == 0) words[threadIdx.x / kWarp] = word;
  __syncthreads();
}

template <class T>
struct Backward {
  const std::int32_t* ids;
  const T* dy;
  float* dtable;
  std::int64_t dy_stride, dtable_stride;
  std::int64_t tokens, channels;
};

template <class T>
__global__ void embedding_backward_kernel(Backward<T> op) {
  __shared__ unsigned words[kWarps];
  const std::int64_t own = blockIdx.x;
  const std::int32_t id = op.ids[own];
  for (std::int64_t begin = 0; begin < own; begin += kThreads) {
    find_tokens(op.ids, begin, own, id, words);
    for (int w = 0; w < kWarps; ++w) {
      if (words[w] != 0) return;  // the whole block: an earlier one has this token
    }
  }
  float* to = op.dtable + id * op.dtable_stride;
  for (std::int64_t begin = own; begin < op.tokens; begin += kThreads) {
    find_tokens(op.ids, begin, op.tokens, id, words);
    for (int w = 0; w < kWarps; ++w) {
      for (unsigned left = words[w]; left != 0; left &= left - 1) {
        const std::int64_t t = begin + w * kWarp + __ffs(static_cast<int>(left)) - 1;
        const T* from = op.dy + t * op.dy_stride;
        for (std::int64_t c = threadIdx.x; c < op.channels; c += kThreads) {
          to[c] += to_float(from[c]);
        }
      }
    }
  }
}

}  // namespace

void embedding(const Stream& stream, const Embedding& op) {
  with_type(op.y.dtype, [&]<class T>(T) {
    with_flag(packs_align({op.table, op.y}), [&](auto vector) {
      launch(stream, {.grid = blocks_for(op.ids.dim(0), 1), .block = kThreads},
             embedding_kernel<T, vector>, data<std::int32_t>(op.ids), data<std::int32_t>(op.drawn),
             data<T>(op.table), op.table.row_stride, data<T>(op.y), op.y.row_stride,
             op.table.dim(1));
    });
  });
}

void embedding_backward(const Stream& stream, const EmbeddingBackward& op) {
  with_type(op.dy.dtype, [&]<class T>(T) {
    const Backward<T> backward{.ids = data<std::int32_t>(op.ids),
                               .dy = data<T>(op.dy),
                               .dtable = data<float>(op.dtable),
                               .dy_stride = op.dy.row_stride,
                               .dtable_stride = op.dtable.row_stride,
                               .tokens = op.ids.dim(0),
                               .channels = op.dtable.dim(1)};
    launch(stream, {.grid = blocks_for(backward.tokens, 1), .block = kThreads},
           embedding_backward_kernel<T>, backward);
  });
}

}  // namespace tandem::kernels::cuda
