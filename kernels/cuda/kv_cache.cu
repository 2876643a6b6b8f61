// Keys and values are moved bit by bit and never computed with.
#include "kernels/cuda/kv_cache.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/ops/kv_cache.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
struct Write {
  const T *k, *v;
  const std::int32_t* slots;
  KvPages<T> pages;
  std::int64_t k_stride, v_stride, tokens;
};

// A thread writes one channel of one token's head, key and value.
template <class T>
__global__ void kv_write_kernel(Write<T> op) {
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t groups = op.pages.groups, channels = op.pages.channels;
  if (index >= op.tokens * groups * channels) return;
  const std::int64_t d = index % channels, g = index / channels % groups;
  const std::int64_t t = index / channels / groups;
  if (op.slots[t] < 0) return;
  const auto [key, value] = op.pages.place(op.slots[t], g);
  key[d * KvPages<T>::kKeyStep] = op.k[t * op.k_stride + g * channels + d];
  value[d] = op.v[t * op.v_stride + g * channels + d];
}

// A thread moves the same 16 bytes of every page in the list, in its order, so that a copy reads
// the bytes of an earlier one although threads do not wait for each other.
__global__ void kv_copy_kernel(const PageCopy* pages, std::int64_t count, uint4* k_pages,
                               uint4* v_pages, std::int64_t page_packs) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= page_packs) return;
  uint4* pool = blockIdx.y == 0 ? k_pages : v_pages;
  for (std::int64_t i = 0; i < count; ++i) {
    pool[pages[i].to * page_packs + at] = pool[pages[i].from * page_packs + at];
  }
}

}  // namespace

void kv_write(const Stream& stream, const KvWrite& op) {
  with_type(op.k.dtype, [&]<class T>(T) {
    const Write<T> write{.k = data<T>(op.k),
                         .v = data<T>(op.v),
                         .slots = data<std::int32_t>(op.slots),
                         .pages = kv_pages<T>(op.k_pages, op.v_pages),
                         .k_stride = op.k.row_stride,
                         .v_stride = op.v.row_stride,
                         .tokens = op.slots.dim(0)};
    launch(stream, {.grid = blocks_for(op.k.elements(), kThreads), .block = kThreads},
           kv_write_kernel<T>, write);
  });
}

// Pages are whole packs: a page has a multiple of 16 positions.
void kv_copy(const Stream& stream, const KvCopy& op) {
  if (op.pages.empty()) return;
  const auto element = static_cast<std::int64_t>(device::size_bytes(op.k_pages.dtype));
  const std::int64_t packs =
      op.k_pages.row_elements() * element / static_cast<std::int64_t>(sizeof(uint4));
  launch(stream, {.grid = dim3(blocks_for(packs, kThreads), 2), .block = kThreads}, kv_copy_kernel,
         op.pages.data(), std::ssize(op.pages), data<uint4>(op.k_pages), data<uint4>(op.v_pages),
         packs);
}

}  // namespace tandem::kernels::cuda
