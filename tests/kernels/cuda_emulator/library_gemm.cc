// Stands in for kernels/cuda/library_gemm.cc. An emulated GPU has no library, and its products are
// the plain kernel's; but those of Rows::kFastest, which may depend on how many rows there are, do:
// their sums are split in two, at a step that the rows decide.
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/numbers.cuh"

namespace tandem::kernels::cuda {

namespace {

template <class T>
struct Matrix {
  const T* data;
  std::int64_t stride;
  bool transposed;

  float at(std::int64_t i, std::int64_t j) const {
    return to_float(transposed ? data[j * stride + i] : data[i * stride + j]);
  }
};

template <class T, class Out>
void multiply_split(const Gemm& gemm) {
  const Matrix<T> a{data<T>(gemm.a), gemm.a.row_stride, gemm.a_transposed};
  const Matrix<T> b{data<T>(gemm.b), gemm.b.row_stride, gemm.b_transposed};
  const std::int64_t rows = gemm.c.dim(0), split = rows % gemm.steps();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < gemm.c.dim(1); ++j) {
      Out& c = data<Out>(gemm.c)[i * gemm.c.row_stride + j];
      float sums[2] = {0, gemm.accumulate ? to_float(c) : 0};
      for (std::int64_t t = 0; t < gemm.steps(); ++t) sums[t < split] += a.at(i, t) * b.at(t, j);
      c = from_float<Out>(sums[0] + sums[1]);
    }
  }
}

}  // namespace

bool library_gemm(const Stream& stream, const Gemm& gemm) {
  // Gradients of weights are always kFastest; they stay as the tests of operators know them.
  if (gemm.rows == Rows::kInvariant || gemm.a_transposed || gemm.steps() == 0) return false;
  emulator::enqueue_work(static_cast<cudaStream_t>(stream.native), [gemm] {
    with_type(gemm.a.dtype, [&]<class T>(T) {
      if (gemm.c.dtype == gemm.a.dtype) {
        multiply_split<T, T>(gemm);
      } else {
        multiply_split<T, float>(gemm);
      }
    });
  });
  return true;
}

}  // namespace tandem::kernels::cuda
