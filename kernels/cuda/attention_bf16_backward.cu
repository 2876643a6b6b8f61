// Gradients of packed attention in bf16: the two passes of attention_backward.cuh on tensor cores.
// attention.cu has computed the means of dout . out. In both passes a warp has 16 rows of its own
// and meets 32 other rows at a time:
//
//   queries' pass   own q, dout   others k, v      dq += ds k
//   keys' pass      own k, v      others q, dout   dk += ds q, dv += p dout
//
// so each pass needs the products own0 . other0 (scores) and own1 . other1 (dout . v), from which
// it makes the weights p and the score gradients ds. Both are rounded to bf16 as operands of the
// last products. No sum is shared by blocks, so the order of all sums is fixed (AT-2).
#include "kernels/cuda/attention_bf16.h"
#include "kernels/cuda/attention_gradients.cuh"
#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix_tile.cuh"

namespace tandem::kernels::cuda {

namespace bf16 {

namespace {

constexpr int kOthers = 32;
static_assert(kGroupHeadsMax <= kOthers);

// The shape of a kernel for kPadded channels. Its shared memory has two tiles of own rows, and
// kStages stages of two tiles of other rows: with two stages one is copied while the other is used.
template <int kPadded>
struct GradientForm {
  static constexpr int kChannels = kPadded;
  static constexpr int kColumns = kPadded < 128 ? kPadded : 128;  // gradient columns in one block
  static constexpr int kThreads = (kPadded <= 128 ? 4 : 2) * kWarp;
  static constexpr int kRows = kThreads / kWarp * kMatrixRows;  // own rows of a block
  static constexpr int kStages = kPadded <= 128 ? 2 : 1;
  static constexpr int kStride = kTileStride<kPadded>;
  static constexpr int kOwn = kRows * kStride, kOther = kOthers * kStride;  // elements of a tile
  static constexpr std::size_t kRowsBytes = 3 * kOthers * sizeof(float);
  static constexpr std::size_t kStageBytes = 2 * kOther * sizeof(Bf16) + kRowsBytes;
  static constexpr std::size_t kSharedBytes = 2 * kOwn * sizeof(Bf16) + kStages * kStageBytes;
  static_assert(kGroupHeadsMax <= kRows && kSharedBytes <= kSharedBytesMax);
};

// One stage: the two tiles of other rows and, in the keys' pass, facts about each row.
struct Others {
  Bf16* first;   // [32][D]
  Bf16* second;  // [32][D]
  float* lse;    // [32]
  float* mean;   // [32]
  int* seen;     // [32] how many of the block's keys, from the first on, the query sees
};

template <class Shape>
__device__ __forceinline__ Others others_of(int stage) {
  auto* at = dynamic_shared<char>() + 2 * Shape::kOwn * sizeof(Bf16) + stage * Shape::kStageBytes;
  Others others{.first = reinterpret_cast<Bf16*>(at)};
  others.second = others.first + Shape::kOther;
  others.lse = reinterpret_cast<float*>(others.second + Shape::kOther);
  others.mean = others.lse + kOthers;
  others.seen = reinterpret_cast<int*>(others.mean + kOthers);
  return others;
}

template <class Shape, int kRows, class Row>
__device__ __forceinline__ void copy_tile(int count, const Heads<Bf16>& from, const Row& row,
                                          Bf16* tile) {
  copy_rows<Shape::kThreads, kRows, Shape::kChannels, Shape::kStride>(
      count, static_cast<int>(from.channels), from.data, row, tile);
}

// A block's rows of an operand that has a row per query and head.
template <class Shape, int kRows>
__device__ __forceinline__ void copy_queries(const Heads<Bf16>& from, const Block& block,
                                             Bf16* tile) {
  const auto row = [&](int r) {
    return from.at(block.row + r / block.heads, block.head + r % block.heads);
  };
  copy_tile<Shape, kRows>(block.rows(), from, row, tile);
}

// Calls use(stage) for each tile of others, while the next one is being copied. issue(stage) begins
// to copy the next tile, or returns false: there is none.
template <class Shape, class Issue, class Use>
__device__ __forceinline__ void walk(const Issue& issue, const Use& use) {
  bool more = issue(0);
  for (int stage = 0; more;) {
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();  // this tile is there, and all are done with the one before
    const int next = Shape::kStages - 1 - stage;
    if constexpr (Shape::kStages > 1) more = issue(next);
    use(stage);
    if constexpr (Shape::kStages == 1) {
      __syncthreads();
      more = issue(next);
    }
    stage = next;
  }
}

// The products of the warp's own rows with 32 others.
template <class Shape>
__device__ __forceinline__ void multiply_both(int first, const Others& others,
                                              float (&scores)[kOthers / 8][4],
                                              float (&gradients)[kOthers / 8][4]) {
  const Bf16* own = dynamic_shared<Bf16>() + first * Shape::kStride;
  multiply_by_rows<Shape::kChannels, kOthers>(own, others.first, scores);
  multiply_by_rows<Shape::kChannels, kOthers>(own + Shape::kOwn, others.second, gradients);
}

// Turns the product q . k into the weight p, and dout . v into the score's gradient ds. Both become
// 0 where the query does not see the key.
__device__ __forceinline__ void weigh_gradient(bool seen, float lse, float mean, float scale,
                                               float& score, float& gradient) {
  score = seen ? exponential(score * scale - lse) : 0.0f;
  gradient = score == 0.0f ? 0.0f : score * (gradient - mean) * scale;
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) query_gradient_kernel(Gradients<Bf16> op) {
  Segment segment;
  Block block;
  if (!find_queries(op, Shape::kRows, segment, block)) return;
  const std::int64_t group = blockIdx.y;
  copy_queries<Shape, Shape::kRows>(op.q, block, dynamic_shared<Bf16>());
  copy_queries<Shape, Shape::kRows>(op.dout, block, dynamic_shared<Bf16>() + Shape::kOwn);
  const int own = static_cast<int>(threadIdx.x) / kWarp * kMatrixRows;
  const int column = static_cast<int>(blockIdx.z) * Shape::kColumns;
  std::int64_t row[2], head[2];
  int seen[2];
  float lse[2] = {}, mean[2] = {};
  for (int i = 0; i < 2; ++i) {
    const int r = own + matrix_row() + 8 * i;
    row[i] = block.row + r / block.heads, head[i] = block.head + r % block.heads;
    seen[i] = static_cast<int>(block.seen(r));
    if (seen[i] == 0) continue;
    lse[i] = op.lse[row[i] * op.heads + head[i]];
    mean[i] = op.means[row[i] * op.heads + head[i]];
  }
  const int positions = static_cast<int>(block.positions());
  int issued = 0, used = 0;  // positions
  const auto issue = [&](int stage) {
    if (issued >= positions) return false;
    const Others others = others_of<Shape>(stage);
    const int first = issued;
    const auto from = [&](const Heads<Bf16>& rows, Bf16* tile) {
      const auto at = [&](int j) { return rows.at(row_of(segment, first + j), group); };
      copy_tile<Shape, kOthers>(positions - first, rows, at, tile);
    };
    from(op.k, others.first);
    from(op.v, others.second);
    issued += kOthers;
    return true;
  };
  float dq[Shape::kColumns / 8][4] = {};
  walk<Shape>(issue, [&](int stage) {
    const Others others = others_of<Shape>(stage);
    float scores[kOthers / 8][4] = {}, gradients[kOthers / 8][4] = {};
    multiply_both<Shape>(own, others, scores, gradients);
    TANDEM_UNROLL
    for (int n = 0; n < kOthers / 8; ++n) {
      for (int i = 0; i < 4; ++i) {
        const int position = used + n * 8 + matrix_column() + i % 2;
        weigh_gradient(position < seen[i / 2], lse[i / 2], mean[i / 2], op.scale, scores[n][i],
                       gradients[n][i]);
      }
    }
    __syncwarp();  // lanes may have diverged at weights of 0, and products need the whole warp
    unsigned weights[kOthers / 16][4];
    round_to_operand<kOthers>(gradients, weights);
    multiply_by_columns<kOthers, Shape::kColumns, Shape::kStride>(weights, others.first + column,
                                                                  dq);
    used += kOthers;
  });
  for (int i = 0; i < 2; ++i) {
    if (seen[i] == 0) continue;
    store_half_row<Shape::kColumns>(dq, i, 1.0f, block.channels - column,
                                    op.dq.at(row[i], head[i]) + column);
  }
}

// Finds the tiles of queries that see some of `count` keys, which are own rows of a segment from
// `first` on: first the segment's own queries, then those of the segments that use its rows as a
// prefix, which follow it (AT-2).
struct SeeingQueries {
  const Gradients<Bf16>& op;
  Segment own;
  std::int64_t own_index, first;
  int count;
  Block shape;
  std::int64_t segment, query = 0;

  // The next tile, of at most kOthers rows, and how many of the keys belong to its sequence. False:
  // there is none left.
  __device__ __forceinline__ bool next(Block& block, int& keys) {
    const std::int64_t position = own.prefix_len + first;
    const int queries = kOthers / shape.heads;
    for (; segment < op.count; ++segment, query = 0) {
      const Segment user = op.segments[segment];
      if (segment > own_index && (own.prefix_len > 0 || user.prefix_len == 0)) break;
      const std::int64_t has = segment == own_index ? std::int64_t{count} : user.prefix_len - first;
      if (has <= 0) continue;
      const std::int64_t before = position - user.prefix_len;  // queries that see no key
      if (query < before) query = before / queries * queries;
      if (query >= user.len) continue;
      block = block_of(user, query, queries, shape);
      keys = has < count ? static_cast<int>(has) : count;
      query += queries;
      return true;
    }
    segment = op.count;
    return false;
  }
};

// Begins to copy a tile of queries, with lse and mean of each. The block's first key is at
// `position` of the queries' sequence, and the first `keys` of its keys belong to that sequence.
template <class Shape>
__device__ __forceinline__ void copy_others(const Gradients<Bf16>& op, const Block& block,
                                            std::int64_t position, int keys, const Others& others) {
  copy_queries<Shape, kOthers>(op.q, block, others.first);
  copy_queries<Shape, kOthers>(op.dout, block, others.second);
  const int r = static_cast<int>(threadIdx.x);
  if (r >= kOthers) return;
  const bool none = r >= block.rows();
  const std::int64_t at =
      none ? 0 : (block.row + r / block.heads) * op.heads + block.head + r % block.heads;
  copy_async<4>(others.lse + r, op.lse + at, none);
  copy_async<4>(others.mean + r, op.means + at, none);
  others.seen[r] = block.visible(r, position, keys);
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) key_gradient_kernel(Gradients<Bf16> op) {
  const Piece piece = find_piece(op.segments, op.count, Shape::kRows, blockIdx.x);
  if (piece.segment == op.count) return;
  const Segment segment = op.segments[piece.segment];
  const std::int64_t group = blockIdx.y, first = piece.index * Shape::kRows;
  const int count =
      segment.len - first < Shape::kRows ? static_cast<int>(segment.len - first) : Shape::kRows;
  const auto row = [&](int j) { return segment.begin + first + j; };
  copy_tile<Shape, Shape::kRows>(
      count, op.k, [&](int j) { return op.k.at(row(j), group); }, dynamic_shared<Bf16>());
  copy_tile<Shape, Shape::kRows>(
      count, op.v, [&](int j) { return op.v.at(row(j), group); },
      dynamic_shared<Bf16>() + Shape::kOwn);
  SeeingQueries tiles{.op = op,
                      .own = segment,
                      .own_index = piece.segment,
                      .first = first,
                      .count = count,
                      .shape = shape_of(op),
                      .segment = piece.segment};
  const auto issue = [&](int stage) {
    Block block;
    int keys = 0;
    if (!tiles.next(block, keys)) return false;
    copy_others<Shape>(op, block, segment.prefix_len + first, keys, others_of<Shape>(stage));
    return true;
  };
  const int own = static_cast<int>(threadIdx.x) / kWarp * kMatrixRows;
  const int column = static_cast<int>(blockIdx.z) * Shape::kColumns;
  float dk[Shape::kColumns / 8][4] = {}, dv[Shape::kColumns / 8][4] = {};
  walk<Shape>(issue, [&](int stage) {
    const Others others = others_of<Shape>(stage);
    float scores[kOthers / 8][4] = {}, gradients[kOthers / 8][4] = {};
    multiply_both<Shape>(own, others, scores, gradients);
    TANDEM_UNROLL
    for (int n = 0; n < kOthers / 8; ++n) {
      for (int i = 0; i < 4; ++i) {
        const int key = own + matrix_row() + i / 2 * 8, r = n * 8 + matrix_column() + i % 2;
        weigh_gradient(key < others.seen[r], others.lse[r], others.mean[r], op.scale, scores[n][i],
                       gradients[n][i]);
      }
    }
    __syncwarp();  // lanes may have diverged at weights of 0, and products need the whole warp
    unsigned weights[kOthers / 16][4];
    round_to_operand<kOthers>(scores, weights);
    multiply_by_columns<kOthers, Shape::kColumns, Shape::kStride>(weights, others.second + column,
                                                                  dv);
    round_to_operand<kOthers>(gradients, weights);
    multiply_by_columns<kOthers, Shape::kColumns, Shape::kStride>(weights, others.first + column,
                                                                  dk);
  });
  const int channels = tiles.shape.channels;
  for (int i = 0; i < 2; ++i) {
    const int key = own + matrix_row() + 8 * i;
    if (key >= count) continue;
    store_half_row<Shape::kColumns>(dk, i, 1.0f, channels - column,
                                    op.dk.at(row(key), group) + column);
    store_half_row<Shape::kColumns>(dv, i, 1.0f, channels - column,
                                    op.dv.at(row(key), group) + column);
  }
}

}  // namespace

}  // namespace bf16

void attention_backward_bf16(const Stream& stream, const AttentionBackward& op) {
  CHECK(packs_align({op.dout, op.q, op.k, op.v, op.dq, op.dk, op.dv}));
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), groups = op.k.dim(1);
  const std::int64_t count = std::ssize(op.segments), channels = op.q.dim(2);
  const auto all = gradients_of<Bf16>(op);
  with_padded(channels, [&](auto padded) {
    using Shape = bf16::GradientForm<padded>;
    const auto shape = [&](std::int64_t per_piece) {
      return Launch{.grid = dim3(pieces_max(rows, count, per_piece), static_cast<unsigned>(groups),
                                 blocks_for(channels, Shape::kColumns)),
                    .block = Shape::kThreads,
                    .shared_bytes = Shape::kSharedBytes};
    };
    launch(stream, shape(Shape::kRows / (heads / groups)), bf16::query_gradient_kernel<Shape>, all);
    launch(stream, shape(Shape::kRows), bf16::key_gradient_kernel<Shape>, all);
  });
}

}  // namespace tandem::kernels::cuda
