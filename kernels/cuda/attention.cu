// A block of warps owns the query rows of one piece of a sequence, for the heads that share one
// key/value head, and walks over the keys in chunks (attention_tile.cuh). Products are plain f32
// fused multiply-adds; the keys and values of a chunk are read once per block.
//
// Where a sequence's pieces lie in the grid is found on the device: its lengths are there, and the
// grid's size depends on T and the number of sequences alone.
#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/primitives.cuh"

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
  float sums[kLaneRows];           // this lane's part, or after total() the whole
  float out[kWarpRows][kColumns];  // weighted values

  __device__ __forceinline__ void clear() {
    for (int i = 0; i < kLaneRows; ++i) maximum[i] = -infinity(), sums[i] = 0.0f;
    for (int r = 0; r < kWarpRows; ++r) {
      for (int c = 0; c < kColumns; ++c) out[r][c] = 0.0f;
    }
  }

  // Turns scores into weights relative to the row's new maximum and rescales what was summed.
  __device__ __forceinline__ void weigh(const Block& block, std::int64_t chunk,
                                        float (&scores)[kLaneRows]) {
    float shrink[kLaneRows];
    bool shrinks = false;
    for (int i = 0; i < kLaneRows; ++i) {
      const int visible = block.visible(lane_row() + i, chunk);
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

  // Joins the next split's totals to those of the splits before it.
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

template <class T>
struct PackedKeys {
  Heads<T> k, v;
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

template <class T>
struct PagedKeys {
  const T* k;
  const T* v;
  const std::int32_t* pages;  // of the sequence
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
      to.keys[i / kChunk * kKeyStride + i % kChunk] = key ? to_float(k[offset + i]) : 0.0f;
      to.values[i] = value ? to_float(v[offset + i]) : 0.0f;
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
    __syncthreads();  // the chunk before is done with
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
template <class T, class Keys, int kColumns>
__device__ __forceinline__ void attend(const Block& block, const Heads<T>& q, const Keys& keys,
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

// lse: [T, H], or null.
template <class T, int kColumns>
__device__ __forceinline__ void finish(const Block& block, const SoftmaxRows<kColumns>& state,
                                       const Heads<T>& out, float* lse, std::int64_t heads) {
  float factors[kLaneRows];
  for (int i = 0; i < kLaneRows; ++i) factors[i] = 1.0f / state.sums[i];
  for (int r = 0; r < kWarpRows; ++r) {
    const float factor = of_row(factors, r);
    const int row = warp_row() + r;
    if (row >= block.rows()) continue;  // the whole warp
    T* to = out.at(block.row + row / block.heads, block.head + row % block.heads);
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane_index() + c * kWarp;
      if (d < block.channels) to[d] = from_float<T>(state.out[r][c] * factor);
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

template <class T>
struct Packed {
  Heads<T> q, k, v, out;
  const Segment* segments;
  std::int64_t count;
  float* lse;
  int heads, groups;
  float scale;
};

template <class T, int kColumns>
__global__ void packed_kernel(Packed<T> op) {
  const int heads = op.heads / op.groups, queries = kRows / heads;
  const Piece piece = find_piece(op.segments, op.count, queries, blockIdx.x);
  if (piece.segment == op.count) return;
  const Segment segment = op.segments[piece.segment];
  const Block block = block_of(segment, piece.index * queries, queries,
                               {.heads = heads,
                                .channels = static_cast<int>(op.q.channels),
                                .head = std::int64_t{blockIdx.y} * heads,
                                .scale = op.scale});
  const PackedKeys<T> keys{.k = op.k, .v = op.v, .segment = segment, .group = blockIdx.y};
  SoftmaxRows<kColumns> state;
  attend(block, op.q, keys, state);
  finish(block, state, op.out, op.lse, op.heads);
}

template <class T>
struct Paged {
  Heads<T> q, out;
  const T* k_pages;
  const T* v_pages;
  const std::int32_t* tables;
  std::int64_t table_stride;
  const std::int32_t* query_begin;
  const std::int32_t* first_position;
  std::int64_t sequences, page_positions;
  int heads, groups;
  float scale;
};

// Sequence s has the blocks begin[s] / queries + s …: room for its pieces whatever its length, and
// never another's. The last of it may be no piece.
__device__ __forceinline__ std::int64_t find_sequence(const std::int32_t* begin,
                                                      std::int64_t sequences, int queries,
                                                      std::int64_t block) {
  std::int64_t low = 0, high = sequences;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (begin[middle] / queries + middle <= block ? low : high) = middle;
  }
  return low;
}

template <class T, int kColumns>
__global__ void paged_kernel(Paged<T> op) {
  const int heads = op.heads / op.groups;
  const int queries = static_cast<int>(blockDim.x) / kWarp * kWarpRows / heads;
  const std::int64_t s = find_sequence(op.query_begin, op.sequences, queries, blockIdx.x);
  const Segment own{.prefix_len = op.first_position[s],
                    .begin = op.query_begin[s],
                    .len = op.query_begin[s + 1] - op.query_begin[s]};
  const std::int64_t query = (blockIdx.x - (own.begin / queries + s)) * queries;
  if (query >= own.len) return;
  const Block block = block_of(own, query, queries,
                               {.heads = heads,
                                .channels = static_cast<int>(op.q.channels),
                                .head = std::int64_t{blockIdx.y} * heads,
                                .scale = op.scale});
  const PagedKeys<T> keys{.k = op.k_pages,
                          .v = op.v_pages,
                          .pages = op.tables + s * op.table_stride,
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

// At least as many as there are pieces of `per_piece` rows in sequences of T rows in all.
unsigned pieces_max(std::int64_t rows, std::int64_t sequences, std::int64_t per_piece) {
  return static_cast<unsigned>(sequences == 0 ? 0 : rows / per_piece + sequences);
}

template <class T>
Gradients<T> gradients(const AttentionBackward& op) {
  return {.dout = heads_of<T>(op.dout),
          .q = heads_of<T>(op.q),
          .k = heads_of<T>(op.k),
          .v = heads_of<T>(op.v),
          .dq = heads_of<T>(op.dq),
          .dk = heads_of<T>(op.dk),
          .dv = heads_of<T>(op.dv),
          .segments = op.segments.data(),
          .count = std::ssize(op.segments),
          .lse = data<float>(op.lse),
          .means = data<float>(op.workspace),
          .heads = static_cast<int>(op.q.dim(1)),
          .groups = static_cast<int>(op.k.dim(1)),
          .scale = op.scale};
}

}  // namespace

void attention_packed(const Stream& stream, const AttentionPacked& op) {
  const std::int64_t heads = op.q.dim(1), groups = op.k.dim(1), channels = op.q.dim(2);
  const std::int64_t count = std::ssize(op.segments);
  const dim3 grid(pieces_max(op.q.dim(0), count, kRows / (heads / groups)),
                  static_cast<unsigned>(groups));
  with_type(op.q.dtype, [&]<class T>(T) {
    const Packed<T> packed{.q = heads_of<T>(op.q),
                           .k = heads_of<T>(op.k),
                           .v = heads_of<T>(op.v),
                           .out = heads_of<T>(op.out),
                           .segments = op.segments.data(),
                           .count = count,
                           .lse = data<float>(op.lse),
                           .heads = static_cast<int>(heads),
                           .groups = static_cast<int>(groups),
                           .scale = op.scale};
    with_columns(channels, [&](auto columns) {
      launch(
          stream,
          {.grid = grid, .block = kWarps * kWarp, .shared_bytes = shared_bytes(kWarps, channels)},
          packed_kernel<T, columns>, packed);
    });
  });
}

void attention_paged(const Stream& stream, const AttentionPaged& op) {
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), channels = op.q.dim(2);
  const std::int64_t groups = op.k_pages.dim(1), sequences = op.first_position.dim(0);
  // One query per sequence, the decode step, leaves most of four warps idle. How rows are dealt to
  // blocks does not touch their bits.
  const bool few = rows == sequences && heads / groups <= kWarpRows;
  const int warps = few ? 1 : kWarps;
  const dim3 grid(pieces_max(rows, sequences, warps * kWarpRows / (heads / groups)),
                  static_cast<unsigned>(groups));
  with_type(op.q.dtype, [&]<class T>(T) {
    const Paged<T> paged{.q = heads_of<T>(op.q),
                         .out = heads_of<T>(op.out),
                         .k_pages = data<T>(op.k_pages),
                         .v_pages = data<T>(op.v_pages),
                         .tables = data<std::int32_t>(op.block_tables),
                         .table_stride = op.block_tables.row_stride,
                         .query_begin = data<std::int32_t>(op.query_begin),
                         .first_position = data<std::int32_t>(op.first_position),
                         .sequences = sequences,
                         .page_positions = op.k_pages.dim(2),
                         .heads = static_cast<int>(heads),
                         .groups = static_cast<int>(groups),
                         .scale = op.scale};
    with_columns(channels, [&](auto columns) {
      launch(stream,
             {.grid = grid,
              .block = static_cast<unsigned>(warps * kWarp),
              .shared_bytes = shared_bytes(warps, channels)},
             paged_kernel<T, columns>, paged);
    });
  });
}

void attention_backward(const Stream& stream, const AttentionBackward& op) {
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), groups = op.k.dim(1);
  const std::int64_t channels = op.q.dim(2), count = std::ssize(op.segments);
  const auto grid = [&](std::int64_t per_piece) {
    return dim3(pieces_max(rows, count, per_piece), static_cast<unsigned>(groups));
  };
  with_type(op.q.dtype, [&]<class T>(T) {
    const Gradients<T> all = gradients<T>(op);
    launch(stream, {.grid = blocks_for(rows * heads, kMeanThreads / kChunk), .block = kMeanThreads},
           means_kernel<T>, all.dout, heads_of<T>(op.out), rows * heads, heads, all.means);
    const Launch to_queries{.grid = grid(kGradientRows / (heads / groups)),
                            .block = kGradientThreads,
                            .shared_bytes = gradient_shared_bytes(channels)};
    const Launch to_keys{.grid = grid(kChunk),
                         .block = kGradientThreads,
                         .shared_bytes = gradient_shared_bytes(channels)};
    with_columns(channels, [&](auto columns) {
      launch(stream, to_queries, query_gradient_kernel<T, columns>, all);
      launch(stream, to_keys, key_gradient_kernel<T, columns>, all);
    });
  });
}

}  // namespace tandem::kernels::cuda
