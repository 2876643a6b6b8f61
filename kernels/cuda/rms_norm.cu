// A team of threads takes a row: a warp for up to kNormNarrowChannels channels (q/k-norm: many
// short rows, several per block), a whole block for more. The team's size depends on C alone, so a
// row's bits do not depend on the other rows. Both passes over a row read memory; the second finds
// the row in the cache.
//
// In backward a block adds up the weight gradient of its rows in shared memory, and a second kernel
// adds up the blocks. All orders are fixed, without atomic additions.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/primitives.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/rms_norm.cuh"
#include "kernels/ops/rms_norm.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kSumColumns = 32;  // columns of dweight, per block of the last sum
constexpr int kSumLanes = 32;

// A [R, C] or [T, H, C] view as rows of C channels.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t outer_stride = 0;
  std::int64_t heads = 1;
  std::int64_t channels = 0;

  __device__ __forceinline__ T* row(std::int64_t r) const {
    return data + r / heads * outer_stride + r % heads * channels;
  }
};

template <class T>
Rows<T> rows_of(const TensorView& view) {
  if (view.empty()) return {};
  return {.data = data<T>(view),
          .outer_stride = view.row_stride,
          .heads = view.rank == 3 ? view.dim(1) : 1,
          .channels = view.dim(view.rank - 1)};
}

template <class T>
struct Forward {
  Rows<T> x, add, y;
  const T* weight;
  float* inv_rms;
  float eps;
  std::int64_t count;
};

template <class T, int kTeam, bool kVector>
__global__ void rms_norm_kernel(Forward<T> op) {
  __shared__ float scratch[kWarps];
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (kThreads / kTeam) + static_cast<int>(threadIdx.x) / kTeam;
  if (row >= op.count) return;  // the whole team returns
  const std::int64_t channels = op.x.channels;
  const std::int64_t first = static_cast<int>(threadIdx.x) % kTeam * kPack<T>;
  T* x = op.x.row(row);
  float squares = 0;
  for (std::int64_t c = first; c < channels; c += kTeam * kPack<T>) {
    Pack<T> pack = load_pack<kVector>(x + c, channels - c);
    if (op.add.data != nullptr) {
      const Pack<T> more = load_pack<kVector>(op.add.row(row) + c, channels - c);
      for (int i = 0; i < kPack<T>; ++i) pack.at[i] = rounded<T>(pack.at[i] + more.at[i]);
      store_pack<kVector>(x + c, pack, channels - c);
    }
    squares = add_squares(squares, pack);
  }
  const float inverse = inverse_rms(team_sum<kTeam>(squares, scratch), channels, op.eps);
  T* y = op.y.row(row);
  for (std::int64_t c = first; c < channels; c += kTeam * kPack<T>) {
    Pack<T> pack = load_pack<kVector>(x + c, channels - c);
    normalise(pack, inverse, load_pack<kVector>(op.weight + c, channels - c));
    store_pack<kVector>(y + c, pack, channels - c);
  }
  if (op.inv_rms != nullptr && first == 0) op.inv_rms[row] = inverse;
}

template <class T>
struct Backward {
  Rows<T> dy, x, dx;
  const T* weight;
  const float* inv_rms;
  float* blocks;  // [blocks, C]: dweight of each block's rows
  std::int64_t count;
  std::int64_t rows_per_block;
  bool accumulate;
};

// With n = x * inverse:  dx = inverse * (dy * w - n * mean(dy * w * n)),  dweight += dy * n.
// `dweight` is the team's own, in shared memory, and a thread meets only its own channels of it, so
// no barrier is needed between rows.
template <class T, int kTeam, bool kVector>
__device__ __forceinline__ void row_gradient(const Backward<T>& op, std::int64_t row,
                                             float* dweight, float* scratch) {
  const std::int64_t channels = op.x.channels;
  const std::int64_t first = static_cast<int>(threadIdx.x) % kTeam * kPack<T>;
  const float inverse = op.inv_rms[row];
  const T* dy_row = op.dy.row(row);
  const T* x_row = op.x.row(row);
  float dots = 0;
  for (std::int64_t c = first; c < channels; c += kTeam * kPack<T>) {
    const Pack<T> dy = load_pack<kVector>(dy_row + c, channels - c);
    const Pack<T> x = load_pack<kVector>(x_row + c, channels - c);
    const Pack<T> weight = load_pack<kVector>(op.weight + c, channels - c);
    for (int i = 0; i < kPack<T> && c + i < channels; ++i) {
      const float normal = x.at[i] * inverse;
      dots = fmaf(dy.at[i] * weight.at[i], normal, dots);
      dweight[c + i] = fmaf(dy.at[i], normal, dweight[c + i]);
    }
  }
  const float mean = team_sum<kTeam>(dots, scratch) / static_cast<float>(channels);
  T* dx_row = op.dx.row(row);
  for (std::int64_t c = first; c < channels; c += kTeam * kPack<T>) {
    const Pack<T> dy = load_pack<kVector>(dy_row + c, channels - c);
    const Pack<T> x = load_pack<kVector>(x_row + c, channels - c);
    const Pack<T> weight = load_pack<kVector>(op.weight + c, channels - c);
    Pack<T> dx;
    for (int i = 0; i < kPack<T>; ++i) {
      dx.at[i] = inverse * fmaf(-(x.at[i] * inverse), mean, dy.at[i] * weight.at[i]);
    }
    if (op.accumulate) {
      const Pack<T> before = load_pack<kVector>(dx_row + c, channels - c);
      for (int i = 0; i < kPack<T>; ++i) dx.at[i] = before.at[i] + dx.at[i];
    }
    store_pack<kVector>(dx_row + c, dx, channels - c);
  }
}

template <class T, int kTeam, bool kVector>
__global__ void rms_norm_backward_kernel(Backward<T> op) {
  __shared__ float scratch[kWarps];
  constexpr int kTeams = kThreads / kTeam;
  float* dweight = dynamic_shared<float>();  // [teams, C]
  const std::int64_t channels = op.x.channels;
  const int team = static_cast<int>(threadIdx.x) / kTeam;
  for (std::int64_t c = threadIdx.x; c < kTeams * channels; c += kThreads) dweight[c] = 0.0f;
  __syncthreads();
  const std::int64_t begin = std::int64_t{blockIdx.x} * op.rows_per_block;
  for (std::int64_t i = team; i < op.rows_per_block && begin + i < op.count; i += kTeams) {
    row_gradient<T, kTeam, kVector>(op, begin + i, dweight + team * channels, scratch);
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < channels; c += kThreads) {
    float sum = dweight[c];
    for (int t = 1; t < kTeams; ++t) sum += dweight[t * channels + c];
    op.blocks[blockIdx.x * channels + c] = sum;
  }
}

// dweight[c] += sum_b blocks[b, c]: lane l (threadIdx.y) adds up the blocks l, l + kSumLanes, …,
// and then the lanes are added, ascending.
__global__ void sum_blocks_kernel(const float* blocks, std::int64_t count, std::int64_t channels,
                                  float* dweight) {
  __shared__ float lanes[kSumLanes][kSumColumns];
  const std::int64_t c = std::int64_t{blockIdx.x} * kSumColumns + threadIdx.x;
  float sum = 0;
  if (c < channels) {
    for (std::int64_t b = threadIdx.y; b < count; b += kSumLanes) sum += blocks[b * channels + c];
  }
  lanes[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= channels) return;
  for (int lane = 1; lane < kSumLanes; ++lane) sum += lanes[lane][threadIdx.x];
  dweight[c] += sum;
}

// Calls body with the team's size and whether rows are read in whole packs, as constants.
template <class Body>
void with_team(std::int64_t channels, bool vector, const Body& body) {
  with_flag(vector, [&](auto whole) {
    if (channels <= kNormNarrowChannels) {
      body(std::integral_constant<int, kWarp>{}, whole);
    } else {
      body(std::integral_constant<int, kThreads>{}, whole);
    }
  });
}

}  // namespace

void rms_norm(const Stream& stream, const RmsNorm& op) {
  const std::int64_t channels = op.weight.dim(0);
  with_type(op.x.dtype, [&]<class T>(T) {
    const Forward<T> forward{.x = rows_of<T>(op.x),
                             .add = rows_of<T>(op.add),
                             .y = rows_of<T>(op.y),
                             .weight = data<T>(op.weight),
                             .inv_rms = data<float>(op.inv_rms),
                             .eps = op.eps,
                             .count = channels == 0 ? 0 : op.x.elements() / channels};
    with_team(channels, packs_align({op.x, op.add, op.y, op.weight}), [&](auto team, auto vector) {
      launch(stream, {.grid = blocks_for(forward.count, kThreads / team), .block = kThreads},
             rms_norm_kernel<T, team, vector>, forward);
    });
  });
}

void rms_norm_backward(const Stream& stream, const RmsNormBackward& op) {
  const std::int64_t channels = op.weight.dim(0);
  const std::int64_t count = channels == 0 ? 0 : op.x.elements() / channels;
  const std::int64_t rows_per_block = norm_rows_on_gpu(channels);
  const unsigned blocks = blocks_for(count, rows_per_block);
  with_type(op.x.dtype, [&]<class T>(T) {
    const Backward<T> backward{.dy = rows_of<T>(op.dy),
                               .x = rows_of<T>(op.x),
                               .dx = rows_of<T>(op.dx),
                               .weight = data<T>(op.weight),
                               .inv_rms = data<float>(op.inv_rms),
                               .blocks = data<float>(op.workspace),
                               .count = count,
                               .rows_per_block = rows_per_block,
                               .accumulate = op.output == Output::kAdd};
    with_team(channels, packs_align({op.dy, op.x, op.dx, op.weight}), [&](auto team, auto vector) {
      const auto teams = static_cast<std::size_t>(kThreads / team);
      launch(stream,
             {.grid = blocks,
              .block = kThreads,
              .shared_bytes = teams * static_cast<std::size_t>(channels) * sizeof(float)},
             rms_norm_backward_kernel<T, team, vector>, backward);
    });
  });
  launch(stream,
         {.grid = blocks_for(blocks == 0 ? 0 : channels, kSumColumns),
          .block = dim3(kSumColumns, kSumLanes)},
         sum_blocks_kernel, data<float>(op.workspace), std::int64_t{blocks}, channels,
         data<float>(op.dweight));
}

}  // namespace tandem::kernels::cuda
