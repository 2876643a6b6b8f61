// Attention in f32; calls in bf16 go on to attention_bf16.cu. A block of warps has the query rows
// of one piece of a sequence, for the heads that share one key/value head, and walks over the keys
// in chunks (attention_tile.cuh). Products are plain fused multiply-adds; the keys and values of a
// chunk are read once per block.
//
// Each block finds its piece on the device, because the lengths of sequences are there. The size of
// the grid depends on T and the number of sequences alone (attention_block.cuh).
#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_bf16.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/primitives.cuh"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kRows = kWarps * kWarpRows;
static_assert(kGroupHeadsMax <= kRows);
constexpr std::int64_t kSplitChunks = kSplitPositions / kChunkPositions;

// A block's dynamic shared memory.
struct Shared {
  float* rows;     // [rows][D + 4]
  float* keys;     // [D][17]
  float* values;   // [16][D]
  float* weights;  // [warps][16][8]
};

std::size_t shared_bytes(int warps, std::int64_t channels) {
  const std::int64_t floats = warps * kWarpRows * (channels + 4) + channels * kKeyStride +
                              kChunk * channels + warps * kChunk * kWarpRows;
  return static_cast<std::size_t>(floats) * sizeof(float);
}

__device__ __forceinline__ Shared cut_shared(int channels) {
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  Shared shared{.rows = dynamic_shared<float>()};
  shared.values = shared.rows + warps * kWarpRows * row_stride(channels);
  shared.weights = shared.values + kChunk * channels;
  shared.keys = shared.weights + warps * kChunk * kWarpRows;
  return shared;
}

// The running softmax of a warp's rows over some positions.
template <int kColumns>
struct SoftmaxRows {
  float maximum[kLaneRows];        // of the scores; minus infinity: nothing seen
  float sums[kLaneRows];           // of weights: this lane's part, or after total() the row's
  float out[kWarpRows][kColumns];  // sums of weighted values

  __device__ __forceinline__ void clear() {
    for (int i = 0; i < kLaneRows; ++i) maximum[i] = -infinity(), sums[i] = 0.0f;
    for (int r = 0; r < kWarpRows; ++r) {
      for (int c = 0; c < kColumns; ++c) out[r][c] = 0.0f;
    }
  }

  // Turns scores into weights relative to the row's new maximum and rescales the earlier sums. The
  // order of operations is that of the CPU's weigh_row (attention_chunk.cc), for the same bits.
  __device__ __forceinline__ void weigh(const Block& block, std::int64_t chunk,
                                        float (&scores)[kLaneRows]) {
    float shrink[kLaneRows];
    bool shrinks = false;
    for (int i = 0; i < kLaneRows; ++i) {
      const int visible = block.visible(lane_row() + i, chunk * kChunk, kChunk);
      const float score = lane_key() < visible ? scores[i] * block.scale : -infinity();
      const float most = chunk_max(score);
      shrink[i] = 1.0f;
      if (most > maximum[i]) {
        shrink[i] = exponential(maximum[i] - most);
        maximum[i] = most;
        shrinks = true;
      }
      scores[i] = visible > 0 ? exponential(score - maximum[i]) : 0.0f;
      sums[i] = sums[i] * shrink[i] + scores[i];
    }
    if (!__any_sync(kAllLanes, shrinks)) return;
    for (int r = 0; r < kWarpRows; ++r) {
      const float factor = of_row(shrink, r);
      for (int c = 0; c < kColumns; ++c) out[r][c] *= factor;
    }
  }

  __device__ __forceinline__ void total() {
    for (int i = 0; i < kLaneRows; ++i) sums[i] = chunk_sum(sums[i]);
  }

  // Joins the totals of the next split to those of the splits before it. The first split meets an
  // empty state: fmaf(0, 0, total * 1) keeps its bits, which therefore are the CPU's.
  __device__ __forceinline__ void merge(const SoftmaxRows& next) {
    float own[kLaneRows], other[kLaneRows];
    for (int i = 0; i < kLaneRows; ++i) {
      const bool seen = next.maximum[i] > -infinity(), before = maximum[i] > -infinity();
      const float most = next.maximum[i] > maximum[i] ? next.maximum[i] : maximum[i];
      own[i] = before ? exponential(maximum[i] - most) : 0.0f;
      other[i] = seen ? exponential(next.maximum[i] - most) : 0.0f;
      sums[i] = fmaf(sums[i], own[i], next.sums[i] * other[i]);
      maximum[i] = most;
    }
    for (int r = 0; r < kWarpRows; ++r) {
      const float mine = of_row(own, r), others = of_row(other, r);
      for (int c = 0; c < kColumns; ++c) {
        out[r][c] = fmaf(out[r][c], mine, next.out[r][c] * others);
      }
    }
  }
};

struct PackedKeys {
  Heads<float> k, v;
  Segment segment;
  std::int64_t group;

  // Positions from `positions` on are not read.
  __device__ __forceinline__ void load(std::int64_t chunk, std::int64_t positions,
                                       const Shared& to) const {
    const auto row = [&](int j) {
      const std::int64_t position = chunk * kChunk + j;
      return position < positions ? row_of(segment, position) : kNoRow;
    };
    load_chunk<true>(k, group, row, to.keys);
    load_chunk<false>(v, group, row, to.values);
  }
};

struct PagedKeys {
  const float* k;
  const float* v;
  const std::int32_t* pages;  // the sequence's pages
  std::int64_t page_positions, groups, channels, group;

  __device__ __forceinline__ void load(std::int64_t chunk, std::int64_t positions,
                                       const Shared& to) const {
    const std::int64_t first = chunk * kChunk;
    const std::int64_t offset =
        (pages[first / page_positions] * groups + group) * page_positions * channels +
        first % page_positions * channels;
    const int count = kChunk * static_cast<int>(channels);
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
      const bool key = first + i % kChunk < positions;
      const bool value = first + i / static_cast<int>(channels) < positions;
      to.keys[i / kChunk * kKeyStride + i % kChunk] = key ? k[offset + i] : 0.0f;
      to.values[i] = value ? v[offset + i] : 0.0f;
    }
  }
};

template <class Keys, int kColumns>
__device__ __forceinline__ void absorb(const Block& block, const Keys& keys, std::int64_t begin,
                                       std::int64_t end, const Shared& shared,
                                       SoftmaxRows<kColumns>& state) {
  float* weights = shared.weights + warp_row() * kChunk;
  const ChunkRows values{.data = shared.values, .row = block.channels, .channel = 1};
  for (std::int64_t chunk = begin; chunk < end; ++chunk) {
    __syncthreads();  // all warps have read the chunk before
    keys.load(chunk, block.positions(), shared);
    __syncthreads();
    float scores[kLaneRows];
    dot_keys(shared.rows, shared.keys, block.channels, scores);
    state.weigh(block, chunk, scores);
    share(scores, weights);
    add_rows(block, chunk, weights, values, state.out);
  }
  state.total();
}

// The block's rows, split by split; each warp ends with the sums of its own.
template <class Keys, int kColumns>
__device__ __forceinline__ void attend(const Block& block, const Heads<float>& q, const Keys& keys,
                                       SoftmaxRows<kColumns>& state) {
  const Shared shared = cut_shared(block.channels);
  load_rows(q, block, static_cast<int>(blockDim.x) / kWarp * kWarpRows, shared.rows);
  const std::int64_t chunks = (block.positions() + kChunk - 1) / kChunk;
  state.clear();
  for (std::int64_t begin = 0; begin < chunks; begin += kSplitChunks) {
    SoftmaxRows<kColumns> split;
    split.clear();
    const std::int64_t end = begin + kSplitChunks < chunks ? begin + kSplitChunks : chunks;
    absorb(block, keys, begin, end, shared, split);
    state.merge(split);
  }
}

// Divides by the sums and writes the warp's rows to out and lse; lse is [T, H], or null.
template <int kColumns>
__device__ __forceinline__ void finish(const Block& block, const SoftmaxRows<kColumns>& state,
                                       const Heads<float>& out, float* lse, std::int64_t heads) {
  float factors[kLaneRows];
  for (int i = 0; i < kLaneRows; ++i) factors[i] = 1.0f / state.sums[i];
  for (int r = 0; r < kWarpRows; ++r) {
    const float factor = of_row(factors, r);
    const int row = warp_row() + r;
    if (row >= block.rows()) continue;  // the whole warp
    float* to = out.at(block.row + row / block.heads, block.head + row % block.heads);
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane_index() + c * kWarp;
      if (d < block.channels) to[d] = state.out[r][c] * factor;
    }
  }
  if (lse == nullptr || lane_key() != 0) return;
  for (int i = 0; i < kLaneRows; ++i) {
    const int row = lane_row() + i;
    if (row >= block.rows()) continue;
    lse[(block.row + row / block.heads) * heads + block.head + row % block.heads] =
        state.maximum[i] + logarithm(state.sums[i]);
  }
}

template <int kColumns>
__global__ void packed_kernel(Packed<float> op) {
  Segment segment;
  Block block;
  if (!find_queries(op, kRows, segment, block)) return;
  const PackedKeys keys{.k = op.k, .v = op.v, .segment = segment, .group = blockIdx.y};
  SoftmaxRows<kColumns> state;
  attend(block, op.q, keys, state);
  finish(block, state, op.out, op.lse, op.heads);
}

template <int kColumns>
__global__ void paged_kernel(Paged<float> op) {
  std::int64_t sequence = 0;
  Block block;
  if (!find_queries(op, static_cast<int>(blockDim.x) / kWarp * kWarpRows, sequence, block)) return;
  const PagedKeys keys{.k = op.k_pages,
                       .v = op.v_pages,
                       .pages = op.tables + sequence * op.table_stride,
                       .page_positions = op.page_positions,
                       .groups = op.groups,
                       .channels = op.q.channels,
                       .group = blockIdx.y};
  SoftmaxRows<kColumns> state;
  attend(block, op.q, keys, state);
  finish(block, state, op.out, nullptr, op.heads);
}

// Calls body with the channels per lane as a constant.
template <class Body>
void with_columns(std::int64_t channels, const Body& body) {
  if (channels <= 128) {
    body(std::integral_constant<int, 128 / kWarp>{});
  } else {
    body(std::integral_constant<int, kHeadChannelsMax / kWarp>{});
  }
}

constexpr int kMeanThreads = 128, kMeanLanes = 16;

// means[t, h] = dout . out. 16 lanes share a row: each takes every sixteenth channel, and the lanes
// are added by halves, as on a CPU.
template <class T>
__global__ void means_kernel(Heads<T> dout, Heads<T> out, std::int64_t count, std::int64_t heads,
                             float* means) {
  const int channel = static_cast<int>(threadIdx.x) % kMeanLanes;
  const std::int64_t i = std::int64_t{blockIdx.x} * (kMeanThreads / kMeanLanes) +
                         static_cast<int>(threadIdx.x) / kMeanLanes;
  float sum = 0;
  if (i < count) {
    const T* a = dout.at(i / heads, i % heads);
    const T* b = out.at(i / heads, i % heads);
    for (std::int64_t d = channel; d < dout.channels; d += kMeanLanes) {
      sum = fmaf(to_float(a[d]), to_float(b[d]), sum);
    }
  }
  for (int step = kMeanLanes / 2; step > 0; step /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, step);
  }
  if (i < count && channel == 0) means[i] = sum;
}

// The first step of the backward pass, for every dtype.
void find_means(const Stream& stream, const AttentionBackward& op) {
  const std::int64_t heads = op.q.dim(1), count = op.q.dim(0) * heads;
  with_type(op.q.dtype, [&]<class T>(T) {
    launch(stream, {.grid = blocks_for(count, kMeanThreads / kMeanLanes), .block = kMeanThreads},
           means_kernel<T>, heads_of<T>(op.dout), heads_of<T>(op.out), count, heads,
           data<float>(op.workspace));
  });
}

}  // namespace

void attention_packed(const Stream& stream, const AttentionPacked& op) {
  if (op.q.dtype == device::DType::kBF16) return attention_packed_bf16(stream, op);
  const std::int64_t heads = op.q.dim(1), groups = op.k.dim(1), channels = op.q.dim(2);
  const dim3 grid(pieces_max(op.q.dim(0), std::ssize(op.segments), kRows / (heads / groups)),
                  static_cast<unsigned>(groups));
  with_columns(channels, [&](auto columns) {
    launch(stream,
           {.grid = grid, .block = kWarps * kWarp, .shared_bytes = shared_bytes(kWarps, channels)},
           packed_kernel<columns>, packed_of<float>(op));
  });
}

void attention_paged(const Stream& stream, const AttentionPaged& op) {
  if (op.q.dtype == device::DType::kBF16) return attention_paged_bf16(stream, op);
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), channels = op.q.dim(2);
  const std::int64_t groups = op.k_pages.dim(1), sequences = op.first_position.dim(0);
  // A decode step, with one query per sequence, would leave most of four warps idle. How rows are
  // dealt to blocks does not change their bits.
  const bool few = rows == sequences && heads / groups <= kWarpRows;
  const int warps = few ? 1 : kWarps;
  const dim3 grid(pieces_max(rows, sequences, warps * kWarpRows / (heads / groups)),
                  static_cast<unsigned>(groups));
  with_columns(channels, [&](auto columns) {
    launch(stream,
           {.grid = grid,
            .block = static_cast<unsigned>(warps * kWarp),
            .shared_bytes = shared_bytes(warps, channels)},
           paged_kernel<columns>, paged_of<float>(op));
  });
}

void attention_backward(const Stream& stream, const AttentionBackward& op) {
  find_means(stream, op);
  if (op.q.dtype == device::DType::kBF16) return attention_backward_bf16(stream, op);
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), groups = op.k.dim(1);
  const std::int64_t channels = op.q.dim(2);
  const auto shape = [&](std::int64_t per_piece) {
    return Launch{.grid = dim3(pieces_max(rows, std::ssize(op.segments), per_piece),
                               static_cast<unsigned>(groups)),
                  .block = kGradientThreads,
                  .shared_bytes = gradient_shared_bytes(channels)};
  };
  const auto all = gradients_of<float>(op);
  with_columns(channels, [&](auto columns) {
    launch(stream, shape(kGradientRows / (heads / groups)), query_gradient_kernel<columns>, all);
    launch(stream, shape(kChunk), key_gradient_kernel<columns>, all);
  });
}

}  // namespace tandem::kernels::cuda
