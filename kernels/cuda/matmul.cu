// Products go to the library (gemm.h); the kernel here computes those that the library refuses. The
// kernel is plain: a block has 64 x 64 outputs, with 16 steps of both operands at a time in shared
// memory, and a thread has 4 x 4 of the outputs. An output is one chain of fused multiply-adds,
// steps ascending, starting from zero or from the output's own value. So in f32 an output of this
// kernel has the CPU's bits if it is written and has at most kChainSteps steps (MM-1), or if it is
// the gradient of a weight. The library gives other bits.
//
// A packed weight is the dense [N, K] matrix at the front of its panels' memory, because the
// library reads the rows of a weight as they are.
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/ops/matmul.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kTile = 64;   // outputs of a block, each way
constexpr int kSteps = 16;  // at a time
constexpr int kSide = 4;    // outputs of a thread, each way
constexpr int kThreadSide = kTile / kSide;
constexpr int kThreads = kThreadSide * kThreadSide;
constexpr int kCopyThreads = 256;

// A matrix by (line, step): lines are a's rows or b's columns.
template <class T>
struct Lines {
  const T* data = nullptr;
  std::int64_t line = 0;  // elements from line i to i + 1
  std::int64_t step = 0;  // elements from step t to t + 1; one of the two is 1
  std::int64_t count = 0;
};

template <class T, class Out>
struct Product {
  Lines<T> a, b;
  Out* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t steps = 0;
  bool accumulate = false;
};

// to[t][i] = line first_line + i at step first_step + t, for a whole tile; zeros beyond the matrix.
// Neighbouring threads read neighbouring elements, along whichever side is contiguous.
template <class T>
__device__ __forceinline__ void load_tile(const Lines<T>& from, std::int64_t first_line,
                                          std::int64_t first_step, std::int64_t steps,
                                          float (*to)[kTile]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kSteps; i += kThreads) {
    const bool by_line = from.step == 1;
    const int line = by_line ? i / kSteps : i % kTile;
    const int step = by_line ? i % kSteps : i / kTile;
    const std::int64_t l = first_line + line, t = first_step + step;
    to[step][line] =
        l < from.count && t < steps ? to_float(from.data[l * from.line + t * from.step]) : 0.0f;
  }
}

template <class T, class Out>
__global__ void gemm_kernel(Product<T, Out> p) {
  __shared__ float a[kSteps][kTile], b[kSteps][kTile];
  const std::int64_t first_row = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * kTile;
  const int i0 = static_cast<int>(threadIdx.x) / kThreadSide * kSide;
  const int j0 = static_cast<int>(threadIdx.x) % kThreadSide * kSide;
  const auto inside = [&](int i, int j) {
    return first_row + i0 + i < p.a.count && first_column + j0 + j < p.b.count;
  };
  Out* c = p.c + (first_row + i0) * p.c_row + first_column + j0;
  float sums[kSide][kSide];
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      sums[i][j] = p.accumulate && inside(i, j) ? to_float(c[i * p.c_row + j]) : 0.0f;
    }
  }
  for (std::int64_t first = 0; first < p.steps; first += kSteps) {
    load_tile(p.a, first_row, first, p.steps, a);
    load_tile(p.b, first_column, first, p.steps, b);
    __syncthreads();
    for (int t = 0; t < kSteps && first + t < p.steps; ++t) {
      for (int i = 0; i < kSide; ++i) {
        for (int j = 0; j < kSide; ++j) {
          sums[i][j] = fmaf(a[t][i0 + i], b[t][j0 + j], sums[i][j]);
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      if (inside(i, j)) c[i * p.c_row + j] = from_float<Out>(sums[i][j]);
    }
  }
}

template <class T>
Lines<T> lines(const TensorView& view, bool by_row) {
  return {.data = data<T>(view),
          .line = by_row ? view.row_stride : 1,
          .step = by_row ? 1 : view.row_stride,
          .count = view.dim(by_row ? 0 : 1)};
}

template <class T, class Out>
void plain_gemm(const Stream& stream, const Gemm& gemm) {
  const Product<T, Out> product{.a = lines<T>(gemm.a, !gemm.a_transposed),
                                .b = lines<T>(gemm.b, gemm.b_transposed),
                                .c = data<Out>(gemm.c),
                                .c_row = gemm.c.row_stride,
                                .steps = gemm.steps(),
                                .accumulate = gemm.accumulate};
  launch(stream,
         {.grid = dim3(blocks_for(product.a.count, kTile), blocks_for(product.b.count, kTile)),
          .block = kThreads},
         gemm_kernel<T, Out>, product);
}

// Whether the library takes a product does not depend on its rows (kInvariant), so neither do the
// bits of a row.
void multiply(const Stream& stream, const Gemm& gemm) {
  if (library_gemm(stream, gemm)) return;
  with_type(gemm.a.dtype, [&]<class T>(T) {
    if (gemm.c.dtype == gemm.a.dtype) {
      plain_gemm<T, T>(stream, gemm);
    } else {
      plain_gemm<T, float>(stream, gemm);
    }
  });
}

template <class T>
__global__ void copy_rows_kernel(const T* from, std::int64_t row_stride, std::int64_t columns,
                                 std::int64_t count, T* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (i < count) to[i] = from[i / columns * row_stride + i % columns];
}

// The dense matrix that a packed weight is on a GPU.
TensorView matrix(const PackedWeight& weight) {
  return device::tensor(weight.panels.data, weight.panels.dtype, {weight.n, weight.k});
}

}  // namespace

void pack_weight(const Stream& stream, const PackWeight& op) {
  const std::int64_t count = op.packed.n * op.packed.k;
  with_type(op.weight.dtype, [&]<class T>(T) {
    launch(stream, {.grid = blocks_for(count, kCopyThreads), .block = kCopyThreads},
           copy_rows_kernel<T>, data<T>(op.weight), op.weight.row_stride, op.packed.k, count,
           data<T>(op.packed.panels));
  });
}

void matmul(const Stream& stream, const Matmul& op) {
  matmul_plain(
      stream,
      {.x = op.x, .weight = matrix(op.weight), .y = op.y, .output = op.output, .rows = op.rows});
}

void matmul_plain(const Stream& stream, const MatmulPlain& op) {
  multiply(stream, {.a = op.x,
                    .b = op.weight,
                    .c = op.y,
                    .b_transposed = true,
                    .accumulate = op.output == Output::kAdd,
                    .rows = op.rows});
}

void matmul_backward_input(const Stream& stream, const MatmulBackwardInput& op) {
  multiply(stream, {.a = op.dy,
                    .b = op.weight,
                    .c = op.dx,
                    .accumulate = op.output == Output::kAdd,
                    .rows = op.rows});
}

void matmul_backward_weight(const Stream& stream, const MatmulBackwardWeight& op) {
  multiply(stream, {.a = op.dy,
                    .b = op.x,
                    .c = op.dweight,
                    .a_transposed = true,
                    .accumulate = true,
                    .rows = Rows::kFastest});
}

}  // namespace tandem::kernels::cuda
