// A warp takes kHeadsPerWarp neighbouring heads of one token, which may be of q, k and v, and reads
// them all before it computes, so that their loads are under way together. The sum of a row is
// taken as in rms_norm.cu, by one warp with one pack per lane at a time.
//
// The normalised rows, which rms_norm would write and rope would read, go through shared memory in
// the operand's dtype. That gives the rounding of AI-1. It also lets all lanes turn: the lower half
// of one head would not give each lane a pack, the lower halves of several heads do.
#include "kernels/cuda/kv_cache.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/primitives.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/rms_norm.cuh"
#include "kernels/cuda/rope.cuh"
#include "kernels/ops/attention.h"
#include "kernels/ops/attention_input.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kHeadsPerWarp = 4;
static_assert(kHeadChannelsMax <= kNormNarrowChannels);  // a warp takes a row

// The most packs of a row that a lane has.
template <class T>
constexpr int kPacks = kHeadChannelsMax / (kWarp * kPack<T>);

template <class T>
struct Tokens {
  T *q, *k, *v;
  std::int64_t q_stride, k_stride, v_stride;
  const T *q_norm, *k_norm;
  const std::int32_t *positions, *slots;
  const float *cos, *sin;
  KvPages<T> pages;
  int queries, channels;
  float eps;

  // Heads are numbered through q, k and v.
  __device__ __forceinline__ int groups() const { return static_cast<int>(pages.groups); }
  __device__ __forceinline__ int first_key() const { return queries; }
  __device__ __forceinline__ int first_value() const { return queries + groups(); }
  __device__ __forceinline__ T* row(std::int64_t token, int head) const {
    if (head < first_key()) return q + token * q_stride + head * channels;
    if (head < first_value()) return k + token * k_stride + (head - first_key()) * channels;
    return v + token * v_stride + (head - first_value()) * channels;
  }
};

// The beginning of a lane's pack of a row.
template <class T>
__device__ __forceinline__ int channel_of(int pack) {
  return (pack * kWarp + static_cast<int>(threadIdx.x) % kWarp) * kPack<T>;
}

template <class T>
using Row = PackBits<T, T>[kPacks<T>];  // a lane's packs, not widened: values are only moved

// Writes a head's normalised row to `to`, rounded.
template <class T>
__device__ __forceinline__ void normalise_row(const Row<T>& row, const T* weight, int channels,
                                              float eps, T* to) {
  float squares = 0;
  TANDEM_UNROLL
  for (int p = 0; p < kPacks<T>; ++p) {
    squares = add_squares(squares, load_pack<true>(row[p].at, kPack<T>));
  }
  const float inverse = inverse_rms(warp_sum(squares), channels, eps);
  TANDEM_UNROLL
  for (int p = 0; p < kPacks<T>; ++p) {
    const int c = channel_of<T>(p);
    if (c >= channels) continue;
    Pack<T> pack = load_pack<true>(row[p].at, kPack<T>);
    normalise(pack, inverse, load_pack<true>(weight + c, kPack<T>));
    store_pack<true>(to + c, pack, kPack<T>);
  }
}

template <class T>
__device__ __forceinline__ void write_key(T* key, int c, const Pack<T>& pack) {
  if constexpr (KvPages<T>::kKeyStep == 1) {
    store_pack<true>(key + c, pack, kPack<T>);
  } else {
    for (int i = 0; i < kPack<T>; ++i) {
      key[(c + i) * KvPages<T>::kKeyStep] = from_float<T>(pack.at[i]);
    }
  }
}

// The heads [first, end) of a token, those of a warp.
struct Heads {
  std::int64_t token;
  std::int32_t slot;
  int first, end;
};

// Writes normalised rows of q and k to `normal`, and rows of v to their slot.
template <class T>
__device__ __forceinline__ void normalise_heads(const Tokens<T>& op, const Heads& heads,
                                                T (*normal)[kHeadChannelsMax]) {
  Row<T> rows[kHeadsPerWarp];
  TANDEM_UNROLL
  for (int i = 0; i < kHeadsPerWarp; ++i) {
    TANDEM_UNROLL
    for (int p = 0; p < kPacks<T>; ++p) {
      const int c = channel_of<T>(p), head = heads.first + i;
      rows[i][p] = {};
      if (head < heads.end && c < op.channels) {
        rows[i][p] = *reinterpret_cast<const PackBits<T, T>*>(op.row(heads.token, head) + c);
      }
    }
  }
  TANDEM_UNROLL
  for (int i = 0; i < kHeadsPerWarp; ++i) {
    const int head = heads.first + i;
    if (head >= heads.end) continue;
    if (head < op.first_value()) {
      normalise_row(rows[i], head < op.first_key() ? op.q_norm : op.k_norm, op.channels, op.eps,
                    normal[i]);
      continue;
    }
    T* const value = op.pages.place(heads.slot, head - op.first_value()).value;
    TANDEM_UNROLL
    for (int p = 0; p < kPacks<T>; ++p) {
      const int c = channel_of<T>(p);
      if (c < op.channels) store_whole(value + c, rows[i][p]);
    }
  }
}

// Turns the normalised rows; writes those of q back to q and those of k to their slot.
template <class T>
__device__ __forceinline__ void turn_heads(const Tokens<T>& op, const Heads& heads,
                                           const T (*normal)[kHeadChannelsMax]) {
  const int half = op.channels / 2, packs = half / kPack<T>;
  const int count = min(heads.end, op.first_value()) - heads.first;  // 0 or less: only heads of v
  const std::int64_t table = std::int64_t{op.positions[heads.token]} * half;
  for (int item = static_cast<int>(threadIdx.x) % kWarp; item < count * packs; item += kWarp) {
    const int i = item / packs, c = item % packs * kPack<T>, head = heads.first + i;
    Pack<T> low = load_pack<true>(normal[i] + c, kPack<T>);
    Pack<T> high = load_pack<true>(normal[i] + c + half, kPack<T>);
    turn(low, high, op.cos + table + c, op.sin + table + c, 1.0f, kPack<T>);
    if (head < op.first_key()) {
      T* const query = op.row(heads.token, head);
      store_pack<true>(query + c, low, kPack<T>);
      store_pack<true>(query + c + half, high, kPack<T>);
    } else {
      T* const key = op.pages.place(heads.slot, head - op.first_key()).key;
      write_key(key, c, low);
      write_key(key, c + half, high);
    }
  }
}

template <class T>
__global__ void attention_input_kernel(Tokens<T> op) {
  alignas(16) __shared__ T normal[kWarps][kHeadsPerWarp][kHeadChannelsMax];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first = (static_cast<int>(blockIdx.y) * kWarps + warp) * kHeadsPerWarp;
  const std::int64_t token = blockIdx.x;
  const std::int32_t slot = op.slots[token];
  // A row of padding has no slot: only its q is computed.
  const int all = slot < 0 ? op.first_key() : op.first_value() + op.groups();
  const Heads heads{
      .token = token, .slot = slot, .first = first, .end = min(first + kHeadsPerWarp, all)};
  normalise_heads(op, heads, normal[warp]);
  __syncwarp();
  turn_heads<T>(op, heads, normal[warp]);
}

}  // namespace

void attention_input(const Stream& stream, const AttentionInput& op) {
  CHECK(packs_align({op.q, op.k, op.v, op.q_norm, op.k_norm, op.k_pages, op.v_pages}));
  const std::int64_t heads = op.q.dim(1) + 2 * op.k_pages.dim(1);
  with_type(op.q.dtype, [&]<class T>(T) {
    const Tokens<T> tokens{.q = data<T>(op.q),
                           .k = data<T>(op.k),
                           .v = data<T>(op.v),
                           .q_stride = op.q.row_stride,
                           .k_stride = op.k.row_stride,
                           .v_stride = op.v.row_stride,
                           .q_norm = data<T>(op.q_norm),
                           .k_norm = data<T>(op.k_norm),
                           .positions = data<std::int32_t>(op.positions),
                           .slots = data<std::int32_t>(op.slots),
                           .cos = data<float>(op.cos),
                           .sin = data<float>(op.sin),
                           .pages = kv_pages<T>(op.k_pages, op.v_pages),
                           .queries = static_cast<int>(op.q.dim(1)),
                           .channels = static_cast<int>(op.q.dim(2)),
                           .eps = op.eps};
    const dim3 grid(blocks_for(op.q.dim(0), 1), blocks_for(heads, kWarps * kHeadsPerWarp));
    launch(stream, {.grid = grid, .block = kThreads}, attention_input_kernel<T>, tokens);
  });
}

}  // namespace tandem::kernels::cuda
