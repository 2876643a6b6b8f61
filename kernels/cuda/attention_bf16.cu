// Attention on tensor cores. A warp holds 16 rows of one key/value head: any mix of queries and
// heads, since a product's row depends on its own row of the left operand alone. It takes the keys
// in chunks of kMatrixChunkPositions, whose weights it rounds to bf16 for the second product; the
// sums of a split are joined to those of the splits before it (AT-1).
//
// Keys and values come through a ring of pieces in shared memory, copied some pieces ahead. There
// are two kinds of kernels (Many, Few):
//   many rows   prefill and training: a block of four warps shares a ring, so that each piece is
//               read once for 64 rows
//   few rows    decoding: each warp has a ring and takes splits of its own, because warps have no
//               other rows to share a piece with
// A batch with sequences of both kinds takes two kernels, each for the sequences of its kind.
//
// Before the kernel for few rows a third one, split_kernel, may sum up splits. The kernel for few
// rows then joins them as if it had computed them. They are splits of a prefix that sequences
// share, for the queries of all of them at once, and, where there are fewer sequences than the GPU
// has room for, splits of each sequence, spread over blocks.
//
// Heads are padded with zeros to 64, 128 or 256 channels. At 256 the registers do not hold the
// output, so two blocks compute the same weights, and each of them half of the channels.
#include <algorithm>

#include "kernels/cuda/attention_bf16.h"
#include "kernels/cuda/attention_block.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix_tile.cuh"
#include "kernels/cuda/softmax_tile.cuh"

namespace tandem::kernels::cuda {

namespace bf16 {

namespace {

constexpr int kSplitChunks = static_cast<int>(kSplitPositions) / kMatrixChunk;
static_assert(kSplitChunks * kMatrixChunk == kSplitPositions);

// The shape of a kernel for kPadded channels: teams of threads, each of which has a ring of kStages
// slots for pieces of kPieceRows positions.
template <int kPadded, int kTeamThreads, int kTeams, int kPieceRows, int kStages>
struct Form {
  static constexpr int kChannels = kPadded;
  static constexpr int kColumns = kPadded < 128 ? kPadded : 128;  // output columns in one block
  static constexpr int kTeam = kTeamThreads;
  static constexpr int kInBlock = kTeams;
  static constexpr int kThreads = kTeamThreads * kInBlock;
  static constexpr int kRows = kTeamThreads / kWarp * kMatrixRows;
  static constexpr int kRing = kStages;
  static constexpr int kPiece = kPieceRows;
  static constexpr int kPieces = kMatrixChunk / kPieceRows;        // per chunk of keys or of values
  static constexpr int kSlot = kPieceRows * kTileStride<kPadded>;  // elements
  static constexpr std::size_t kSharedBytes =
      (kRows + kPieceRows * kStages * kInBlock) * kTileRowBytes<kPadded>;
  static_assert(kMatrixChunk % kPieceRows == 0 && kPieceRows % 16 == 0);
  static_assert(kSharedBytes <= kSharedBytesMax);
};

template <int kPadded>
using Many = Form<kPadded, 4 * kWarp, 1, kPadded <= 128 ? 64 : 32, 3>;
template <int kPadded>
using Few = Form<kPadded, kWarp, kPadded <= 128 ? 4 : 2, 16, 4>;
static_assert(kGroupHeadsMax <= Many<256>::kRows);

struct PackedKeys {
  Heads<Bf16> k, v;
  Segment segment;
  std::int64_t group;

  // The rows of the 16 positions from `first` on, as copy_rows wants them; `first` is a multiple
  // of 16.
  __device__ __forceinline__ auto rows(bool keys, int first, int column) const {
    return [this, from = keys ? k : v, first, column](int j) {
      return from.at(row_of(segment, first + j), group) + column;
    };
  }
  __device__ __forceinline__ const Bf16* valid() const { return k.data; }
};

struct PagedKeys {
  const Bf16* k;
  const Bf16* v;
  const std::int32_t* pages;  // the sequence's pages
  unsigned page_positions;
  std::int64_t groups, channels, group;

  // The 16 positions lie on one page, because pages have a multiple of 16 positions.
  __device__ __forceinline__ auto rows(bool keys, int first, int column) const {
    const unsigned block = static_cast<unsigned>(first) / page_positions;
    const unsigned within = static_cast<unsigned>(first) - block * page_positions;
    const std::int64_t row = (pages[block] * groups + group) * page_positions + within;
    return [from = (keys ? k : v) + row * channels + column, step = channels](int j) {
      return from + j * step;
    };
  }
  __device__ __forceinline__ const Bf16* valid() const { return k; }
};

__device__ __forceinline__ PagedKeys keys_of(const Paged<Bf16>& op, std::int64_t sequence) {
  return {.k = op.k_pages,
          .v = op.v_pages,
          .pages = op.tables + sequence * op.table_stride,
          .page_positions = static_cast<unsigned>(op.page_positions),
          .groups = op.groups,
          .channels = op.q.channels,
          .group = blockIdx.y};
}

__device__ __forceinline__ int chunks_of(const Block& block) {
  return static_cast<int>((block.positions() + kMatrixChunk - 1) / kMatrixChunk);
}

// The 16 rows of a warp.
struct WarpRows {
  const Bf16* q;    // the first row's queries, in shared memory
  int seen[2];      // positions that the lane's rows see
  int seen_by_any;  // by any row of the warp
  float scale;
};

template <class Shape>
__device__ __forceinline__ WarpRows warp_rows(const Block& block, int first, const Bf16* q) {
  WarpRows rows{.q = q + first * kTileStride<Shape::kChannels>, .scale = block.scale};
  for (int i = 0; i < 2; ++i) {
    rows.seen[i] = static_cast<int>(block.seen(first + matrix_row() + 8 * i));
  }
  const int last = first + kMatrixRows < block.rows() ? first + kMatrixRows : block.rows();
  rows.seen_by_any = first < last ? static_cast<int>(block.seen(last - 1)) : 0;
  return rows;
}

// A team's ring of slots. Pieces are numbered from position 0 on: for each chunk first the pieces
// of its keys, then those of its values. Past the last piece a thread ends empty groups of copies,
// so that it always waits for the same number of groups.
template <class Shape, class Keys>
struct Ring {
  const Keys& keys;
  Bf16* slots;
  int positions;  // number of positions; those from here on are not read but taken for zeros
  int channels;   // D
  int column;     // the block's first channel of the output
  // The piece to be copied next, the one after the last, and the slot of the piece to be taken
  // next.
  int next = 0, end = 0, slot = 0;

  // Begins to copy the chunks from `begin` to before `last`. No thread may still read the ring.
  __device__ __forceinline__ void start(int begin, int last) {
    next = begin * 2 * Shape::kPieces;
    end = last * 2 * Shape::kPieces;
    slot = 0;
    for (int i = 0; i < Shape::kRing - 1; ++i) issue(i);
  }

  // Begins to copy the next piece to slot `to`; past the end, an empty group.
  __device__ __forceinline__ void issue(int to) {
    if (next < end) {
      const int part = next % (2 * Shape::kPieces);
      const int first =
          next / (2 * Shape::kPieces) * kMatrixChunk + part % Shape::kPieces * Shape::kPiece;
      if (part < Shape::kPieces) {
        copy<true, Shape::kChannels>(first, slots + to * Shape::kSlot);
      } else {
        copy<false, Shape::kColumns>(first, slots + to * Shape::kSlot);
      }
    }
    ++next;
    copy_async_commit();
  }

  template <bool kKeys, int kColumns>
  __device__ __forceinline__ void copy(int first, Bf16* tile) {
    constexpr int kStride = kTileStride<Shape::kChannels>;
    const int begin = kKeys ? 0 : column;
    TANDEM_UNROLL
    for (int j = 0; j < Shape::kPiece; j += 16) {
      const int count = positions - first - j;
      const auto row = keys.rows(kKeys, count > 0 ? first + j : 0, begin);
      copy_rows<Shape::kTeam, 16, kColumns, kStride>(count, channels - begin, keys.valid(), row,
                                                     tile + j * kStride);
    }
  }

  // Waits for the next piece and returns it. Behind the barrier all threads of the team are done
  // with the piece before, so its slot takes the next copy.
  __device__ __forceinline__ const Bf16* take() {
    copy_async_wait<Shape::kRing - 2>();
    Team<Shape::kTeam>::sync();
    const Bf16* piece = slots + slot * Shape::kSlot;
    issue(slot == 0 ? Shape::kRing - 1 : slot - 1);
    __syncwarp();  // lanes may have parted, and matrices are multiplied by whole warps
    slot = slot + 1 == Shape::kRing ? 0 : slot + 1;
    return piece;
  }
};

template <class Shape>
__device__ __forceinline__ int team_index() {
  return static_cast<int>(threadIdx.x) / Shape::kTeam;
}
template <class Shape>
__device__ __forceinline__ Bf16* slots_of(int team) {
  return dynamic_shared<Bf16>() + Shape::kRows * kTileStride<Shape::kChannels> +
         team * Shape::kRing * Shape::kSlot;
}
template <class Shape>
__device__ __forceinline__ int first_column() {
  return static_cast<int>(blockIdx.z) * Shape::kColumns;
}

// The ring of the thread's team, for the positions that the block's rows see.
template <class Shape, class Keys>
__device__ __forceinline__ Ring<Shape, Keys> ring_of(const Block& block, const Keys& keys) {
  return {.keys = keys,
          .slots = slots_of<Shape>(team_index<Shape>()),
          .positions = static_cast<int>(block.positions()),
          .channels = block.channels,
          .column = first_column<Shape>()};
}

// Sums up the chunks from `begin` to before `end`, which are in one split. A chunk that none of the
// warp's rows sees would add nothing: the warp takes its pieces with the team, but does not
// multiply them.
template <class Shape, class Keys>
__device__ __forceinline__ void absorb(const WarpRows& rows, Ring<Shape, Keys>& ring, int begin,
                                       int end, SoftmaxTile<Shape::kColumns>& state) {
  for (int chunk = begin; chunk < end; ++chunk) {
    const int first = chunk * kMatrixChunk;
    const bool used = first < rows.seen_by_any;
    float scores[kMatrixChunk / 8][4] = {};
    TANDEM_UNROLL
    for (int p = 0; p < Shape::kPieces; ++p) {
      const Bf16* keys = ring.take();
      if (used) {
        multiply_by_rows<Shape::kChannels, Shape::kPiece>(rows.q, keys,
                                                          scores + p * Shape::kPiece / 8);
      }
    }
    unsigned weights[kMatrixChunk / 16][4] = {};
    if (used) {
      const int visible[2] = {rows.seen[0] - first, rows.seen[1] - first};
      state.weigh(visible, rows.scale, scores);
      round_to_operand<kMatrixChunk>(scores, weights);
    }
    TANDEM_UNROLL
    for (int p = 0; p < Shape::kPieces; ++p) {
      const Bf16* values = ring.take();
      if (used) {
        multiply_by_columns<Shape::kPiece, Shape::kColumns, kTileStride<Shape::kChannels>>(
            weights + p * Shape::kPiece / 16, values, state.out);
      }
    }
  }
  state.total();
}

// Begins to copy the block's rows of q to the tile at the beginning of shared memory.
template <class Shape>
__device__ __forceinline__ Bf16* load_queries(const Heads<Bf16>& q, const Block& block) {
  auto* tile = dynamic_shared<Bf16>();
  const auto row = [&](int r) {
    return q.at(block.row + r / block.heads, block.head + r % block.heads);
  };
  copy_rows<Shape::kThreads, Shape::kRows, Shape::kChannels, kTileStride<Shape::kChannels>>(
      block.rows(), block.channels, q.data, row, tile);
  return tile;
}

// Writes the warp's rows, from `first` on, to out. Where two blocks share the channels, the one
// with the first channels writes lse.
template <int kColumns>
__device__ __forceinline__ void finish(const Block& block, int first,
                                       const SoftmaxTile<kColumns>& state, const Heads<Bf16>& out,
                                       int column, float* lse, std::int64_t heads) {
  TANDEM_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int r = first + matrix_row() + 8 * i;
    if (r < block.rows()) {
      const std::int64_t row = block.row + r / block.heads, head = block.head + r % block.heads;
      store_half_row<kColumns>(state.out, i, 1.0f / state.sums[i], block.channels - column,
                               out.at(row, head) + column);
      if (lse != nullptr && column == 0 && matrix_column() == 0) {
        lse[row * heads + head] = state.maximum[i] + logarithm(state.sums[i]);
      }
    }
  }
}

// Many rows: warps share a ring and walk over all splits, each with rows of its own.
template <class Shape, class Keys>
__device__ __forceinline__ void attend(const Block& block, const Heads<Bf16>& q, const Keys& keys,
                                       const Heads<Bf16>& out, float* lse, std::int64_t heads) {
  const Bf16* queries = load_queries<Shape>(q, block);
  const int chunks = chunks_of(block);
  const int first = static_cast<int>(threadIdx.x) / kWarp * kMatrixRows;
  const WarpRows rows = warp_rows<Shape>(block, first, queries);
  auto ring = ring_of<Shape>(block, keys);
  ring.start(0, chunks);
  SoftmaxTile<Shape::kColumns> state;
  state.clear();
  for (int begin = 0; begin < chunks; begin += kSplitChunks) {
    SoftmaxTile<Shape::kColumns> split;
    split.clear();
    absorb(rows, ring, begin, min(begin + kSplitChunks, chunks), split);
    state.merge(split);
  }
  finish(block, first, state, out, first_column<Shape>(), lse, heads);
}

// Sums of splits in the workspace, which split_kernel writes and paged_kernel joins:
// [T, H, splits, D + 2], with the maximum, the sum of weights and the weighted values. In a batch
// of both kinds they are [S, …], one row for each sequence. By default there are none.
struct SplitSums {
  const SharedPrefix* prefixes = nullptr;  // [S], or null: no prefix is shared
  float* sums = nullptr;
  int splits = 0;  // splits of a sequence that the workspace has room for
  int parts = 0;   // blocks that share a sequence's splits; with more than 1, sequences are spread

  // How many splits of the sequence are summed once for all sequences that share them. They are the
  // first ones, and whole: a split that is partly shared belongs to each sequence.
  __device__ __forceinline__ int shared(std::int64_t sequence) const {
    if (prefixes == nullptr) return 0;
    return min(prefixes[sequence].positions / static_cast<int>(kSplitPositions), splits);
  }

  // How many of the block's splits are in the workspace, the shared ones included. A sequence with
  // no more splits than a block has warps is not spread.
  template <class Shape>
  __device__ __forceinline__ int of(const Block& block, int shared) const {
    const int all = (chunks_of(block) + kSplitChunks - 1) / kSplitChunks;
    return parts > 1 && all > Shape::kInBlock ? min(all, splits) : shared;
  }

  // Calls visit(number in the workspace, number in a register) for all numbers of the split's sums
  // that the lane holds. `first_row` is the row of sums of the block's first query.
  template <int kColumns, class Visit>
  __device__ __forceinline__ void each(const Block& block, std::int64_t first_row,
                                       std::int64_t heads, int split, int column,
                                       SoftmaxTile<kColumns>& state, const Visit& visit) const {
    TANDEM_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int r = matrix_row() + 8 * i;
      if (r < block.rows()) {
        const std::int64_t row =
            (first_row + r / block.heads) * heads + block.head + r % block.heads;
        float* at = sums + (row * splits + split) * (block.channels + 2);
        visit(at[0], state.maximum[i]);
        visit(at[1], state.sums[i]);
        TANDEM_UNROLL
        for (int n = 0; n < kColumns / 8; ++n) {
          const int d = column + n * 8 + matrix_column();
          if (d < block.channels) {
            visit(at[2 + d], state.out[n][2 * i]);
            visit(at[3 + d], state.out[n][2 * i + 1]);
          }
        }
      }
    }
  }
};

// Copies the block's rows of q to shared memory, the same for all warps. The first barrier waits
// until no warp reads the rows before.
template <class Shape>
__device__ __forceinline__ WarpRows load_shared_rows(const Block& block, const Heads<Bf16>& q) {
  __syncthreads();
  const Bf16* queries = load_queries<Shape>(q, block);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  return warp_rows<Shape>(block, 0, queries);
}

// Sums up one split, by a team of one warp. Past the last split there are no chunks to add.
template <class Shape, class Keys>
__device__ __forceinline__ void sum_split(const WarpRows& rows, Ring<Shape, Keys>& ring, int split,
                                          int chunks, SoftmaxTile<Shape::kColumns>& sums) {
  const int begin = min(split * kSplitChunks, chunks), end = min(begin + kSplitChunks, chunks);
  ring.start(begin, end);
  absorb(rows, ring, begin, end, sums);
  __syncwarp();  // all lanes are done with the ring
}

// Few rows: all warps have the same rows. In each round the warps take one split each, which they
// sum up or, for the first `found` splits, read from the workspace. The first warp joins them,
// ascending (AT-1), through the memory of the rings.
template <class Shape>
__device__ __forceinline__ void attend_by_splits(const Block& block, const Paged<Bf16>& op,
                                                 const PagedKeys& keys, const SplitSums& sums,
                                                 std::int64_t sums_row, int found) {
  static_assert(SoftmaxTile<Shape::kColumns>::kFloats * sizeof(float) <=
                Shape::kRing * Shape::kSlot * sizeof(Bf16));
  const auto sums_of = [](int t) { return reinterpret_cast<float*>(slots_of<Shape>(t)); };
  const int chunks = chunks_of(block), column = first_column<Shape>(), team = team_index<Shape>();
  const WarpRows rows = load_shared_rows<Shape>(block, op.q);
  auto ring = ring_of<Shape>(block, keys);
  SoftmaxTile<Shape::kColumns> state;
  state.clear();
  for (int first = 0; first * kSplitChunks < chunks; first += Shape::kInBlock) {
    SoftmaxTile<Shape::kColumns> split;
    split.clear();
    if (first + team < found) {
      sums.each(block, sums_row, op.heads, first + team, column, split,
                [](float there, float& here) { here = there; });
    } else {
      sum_split(rows, ring, first + team, chunks, split);
    }
    split.store(sums_of(team));
    __syncthreads();
    for (int t = 0; team == 0 && t < Shape::kInBlock; ++t) {
      split.load(sums_of(t));
      state.merge(split);
    }
    __syncthreads();
  }
  if (team == 0) finish(block, 0, state, op.out, column, nullptr, 0);
}

// The row of SplitSums for the block's first query.
__device__ __forceinline__ std::int64_t sums_row(const Paged<Bf16>& op, std::int64_t sequence,
                                                 const Block& block) {
  return op.which == Which::kOne ? sequence : block.row;
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) packed_kernel(Packed<Bf16> op) {
  Segment segment;
  Block block;
  if (!find_queries(op, Shape::kRows, segment, block)) return;
  const PackedKeys keys{.k = op.k, .v = op.v, .segment = segment, .group = blockIdx.y};
  attend<Shape>(block, op.q, keys, op.out, op.lse, op.heads);
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) paged_kernel(Paged<Bf16> op, SplitSums sums) {
  std::int64_t sequence = 0;
  Block block;
  if (!find_queries(op, Shape::kRows, sequence, block)) return;
  const PagedKeys keys = keys_of(op, sequence);
  if constexpr (Shape::kTeam == kWarp) {
    const int found = sums.of<Shape>(block, sums.shared(sequence));
    attend_by_splits<Shape>(block, op, keys, sums, sums_row(op, sequence, block), found);
  } else {
    attend<Shape>(block, op.q, keys, op.out, nullptr, 0);
  }
}

// The first sequence from `from` on that does not share the leader's prefix. All lanes of a warp
// call together and get the same.
__device__ __forceinline__ std::int64_t end_of_sharers(const SharedPrefix* prefixes,
                                                       std::int64_t sequences, int leader,
                                                       std::int64_t from) {
  for (;; from += kWarp) {
    const std::int64_t own = from + matrix_lane();
    const bool other = own >= sequences || prefixes[own].leader != leader;
    const unsigned others = __ballot_sync(kAllLanes, other);
    if (others != 0) return from + __ffs(static_cast<int>(others)) - 1;
  }
}

// Sums up splits ahead of paged_kernel. The first op.sequences * parts blocks (if prefixes are
// shared) take the splits of shared prefixes, the others those of each sequence alone. The splits
// of a sequence are dealt to its parts in turn. The queries of all sequences that share a prefix
// are treated as one sequence, whose tiles are dealt to the blocks of those sequences.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) split_kernel(Paged<Bf16> op, SplitSums sums) {
  const int part = static_cast<int>(blockIdx.x) % sums.parts;
  const std::int64_t index = static_cast<int>(blockIdx.x) / sums.parts;
  const bool own = sums.prefixes == nullptr || index >= op.sequences;
  const std::int64_t sequence = index % op.sequences;
  const int shared = sums.shared(sequence);
  if (!own && shared == 0) return;
  std::int64_t leader = sequence, end = sequence + 1;
  Segment all = queries_of(op, sequence);
  if (own && op.which == Which::kOne && all.len != 1) return;
  if (!own) {
    leader = sums.prefixes[sequence].leader;
    end = end_of_sharers(sums.prefixes, op.sequences, sums.prefixes[sequence].leader, sequence);
    all = {.prefix_len = sums.prefixes[sequence].positions,
           .begin = op.query_begin[leader],
           .len = op.query_begin[end] - op.query_begin[leader]};
  }
  const Block shape = shape_of(op);
  const int queries = Shape::kRows / shape.heads;
  const PagedKeys keys = keys_of(op, leader);
  for (std::int64_t query = (sequence - leader) * queries; query < all.len;
       query += (end - leader) * queries) {
    const Block block = block_of(all, query, queries, shape);
    const int first = (own ? shared : 0) + part;
    const int last = own ? sums.of<Shape>(block, shared) : shared;
    if (first >= last) continue;  // the whole block
    const WarpRows rows = load_shared_rows<Shape>(block, op.q);
    auto ring = ring_of<Shape>(block, keys);
    for (int split = first + team_index<Shape>() * sums.parts; split < last;
         split += Shape::kInBlock * sums.parts) {
      SoftmaxTile<Shape::kColumns> state;
      state.clear();
      sum_split(rows, ring, split, chunks_of(block), state);
      sums.each(block, sums_row(op, sequence, block), op.heads, split, first_column<Shape>(), state,
                [](float& there, float here) { there = here; });
    }
  }
}

template <class Shape>
Launch launch_of(std::int64_t rows, std::int64_t sequences, std::int64_t heads, std::int64_t groups,
                 std::int64_t channels) {
  return {.grid = dim3(pieces_max(rows, sequences, Shape::kRows / (heads / groups)),
                       static_cast<unsigned>(groups), blocks_for(channels, Shape::kColumns)),
          .block = Shape::kThreads,
          .shared_bytes = Shape::kSharedBytes};
}

// Room for as many splits as the workspace holds. The splits of a sequence are spread over as many
// parts as the GPU has multiprocessors for each of the `blocks` that join them. Prefixes are shared
// only where there are as many rows as sequences (row_each).
SplitSums split_sums(const AttentionPaged& op, bool row_each, std::int64_t blocks) {
  if (op.workspace.empty() || blocks == 0) return {};
  const std::int64_t positions = op.block_tables.dim(1) * op.k_pages.dim(2);
  const std::int64_t rows = op.first_position.dim(0);  // rows of sums
  const std::int64_t one = attention_paged_workspace(rows, op.q.dim(1), op.q.dim(2), 1);
  const std::int64_t splits =
      std::min<std::int64_t>(op.workspace.elements() / one, blocks_for(positions, kSplitPositions));
  if (splits == 0) return {};
  const std::int64_t parts = std::clamp<std::int64_t>(multiprocessors() / blocks, 1, splits);
  return {.prefixes = row_each ? op.shared_prefixes.data() : nullptr,
          .sums = data<float>(op.workspace),
          .splits = static_cast<int>(splits),
          .parts = static_cast<int>(parts)};
}

// Blocks of split_kernel's grid: 0 if there is nothing to sum up ahead.
unsigned split_blocks(const SplitSums& sums, std::int64_t sequences) {
  const int kinds = (sums.prefixes != nullptr ? 1 : 0) + (sums.parts > 1 ? 1 : 0);
  return static_cast<unsigned>(sequences * sums.parts * kinds);
}

}  // namespace

}  // namespace bf16

void attention_packed_bf16(const Stream& stream, const AttentionPacked& op) {
  CHECK(packs_align({op.q, op.k, op.v, op.out}));
  with_padded(op.q.dim(2), [&](auto padded) {
    using Shape = bf16::Many<padded>;
    launch(stream,
           bf16::launch_of<Shape>(op.q.dim(0), std::ssize(op.segments), op.q.dim(1), op.k.dim(1),
                                  op.q.dim(2)),
           bf16::packed_kernel<Shape>, packed_of<Bf16>(op));
  });
}

void attention_paged_bf16(const Stream& stream, const AttentionPaged& op) {
  CHECK(packs_align({op.q, op.k_pages, op.v_pages, op.out}));
  const std::int64_t rows = op.q.dim(0), heads = op.q.dim(1), groups = op.k_pages.dim(1);
  const std::int64_t sequences = op.first_position.dim(0), channels = op.q.dim(2);
  const auto all = paged_of<Bf16>(op);
  const auto shape = [&]<class Shape>(Shape) {
    return bf16::launch_of<Shape>(rows, sequences, heads, groups, channels);
  };
  // Neither the block that a row is dealt to nor the block that sums up a split changes their bits.
  with_padded(channels, [&](auto padded) {
    using Many = bf16::Many<padded>;
    using Few = bf16::Few<padded>;
    auto one = all, several = all;
    if (heads / groups <= kMatrixRows) {
      // A batch with as many rows as sequences is taken for a decode step, in which each sequence
      // has one query. Should one have none and another several, the kernel for few rows is still
      // right.
      const bool row_each = rows == sequences;
      Launch step = shape(Few{});
      if (!row_each) {
        one.which = Which::kOne;
        several.which = Which::kSeveral;
        step.grid.x = static_cast<unsigned>(sequences);
      }
      const bf16::SplitSums sums =
          bf16::split_sums(op, row_each, sequences * step.grid.y * step.grid.z);
      Launch by_part = step;
      by_part.grid.x = bf16::split_blocks(sums, sequences);
      launch(stream, by_part, bf16::split_kernel<Few>, one, sums);
      launch(stream, step, bf16::paged_kernel<Few>, one, sums);
      if (row_each) return;
    }
    launch(stream, shape(Many{}), bf16::paged_kernel<Many>, several, bf16::SplitSums{});
  });
}

}  // namespace tandem::kernels::cuda
