// cuBLASLt speaks of columns: the row-major matrix [R, C] with rows S apart is to it the matrix
// C x R with leading dimension S. So c = a * b by rows is asked for as c' = b' * a'.
//
// Its heuristics take tens of microseconds, so their answer is kept per shape. With
// Rows::kInvariant the number of rows and the strides are not part of the shape: one algorithm is
// chosen at kRowsOfChoice dense rows, must be able to do any number, and may not split its sums.
// NVIDIA promises the same bits for the same call only, not for a row among others; the parity test
// compares rows alone with rows of a batch on the GPU at hand.
//
// A thread has its own handle, answers and workspaces; a workspace belongs to one stream, whose
// products follow each other. All are made when first needed, so a thread that records a stream's
// graph must have run the same products on it before: then nothing here allocates or waits. The
// graph uses the workspace, which goes with the thread.
#include <cublasLt.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "kernels/cuda/gemm.h"
#include "runtime/device/cuda_check.h"

namespace tandem::kernels::cuda {

namespace {

using runtime::DType;

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // NVIDIA's advice for Hopper
constexpr std::size_t kAlgorithmsMax = 4096;  // answers kept; beyond, all are asked for again
constexpr std::int64_t kRowsOfChoice = 256;
constexpr std::int64_t kRowsTried[] = {1, 2, 7, 16, 33, 64, 128, 1000, 4096, 65536};
constexpr int kCandidates = 16;
constexpr std::uint32_t kAlignment = 16;  // bytes, of every row

void check(cublasStatus_t status, const char* expression) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuBLASLt error: %s: %s\n", cublasLtGetStatusName(status), expression);
  std::abort();
}
#define CUBLAS_CHECK(expression) check((expression), #expression)

// A product in our words, without the addresses.
struct Shape {
  DType in = DType::kF32, out = DType::kF32;
  bool a_transposed = false, b_transposed = false;
  Rows promise = Rows::kInvariant;
  std::int64_t rows = 0, columns = 0, steps = 0;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;

  auto operator<=>(const Shape&) const = default;
};

// The same shape with this many rows, each operand dense.
Shape dense(Shape shape, std::int64_t rows) {
  shape.rows = rows;
  shape.a_stride = shape.a_transposed ? rows : shape.steps;
  shape.b_stride = shape.b_transposed ? shape.steps : shape.columns;
  shape.c_stride = shape.columns;
  return shape;
}

// What the library is told; its pointers are made where they are used, so a Problem may be moved.
struct Problem {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
};

cudaDataType_t library_type(DType dtype) {
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

void lay_out(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, std::int64_t rows,
             std::int64_t columns, std::int64_t stride) {
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&layout, library_type(dtype),
                                        static_cast<std::uint64_t>(columns),
                                        static_cast<std::uint64_t>(rows), stride));
}

Problem problem(const Shape& s) {
  Problem p;
  CUBLAS_CHECK(cublasLtMatmulDescInit(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t of_b = s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_a = s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(&p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &of_b,
                                              sizeof of_b));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(&p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &of_a,
                                              sizeof of_a));
  lay_out(p.a, s.in, s.a_transposed ? s.steps : s.rows, s.a_transposed ? s.rows : s.steps,
          s.a_stride);
  lay_out(p.b, s.in, s.b_transposed ? s.columns : s.steps, s.b_transposed ? s.steps : s.columns,
          s.b_stride);
  lay_out(p.c, s.out, s.rows, s.columns, s.c_stride);
  return p;
}

template <class Value>
void prefer(cublasLtMatmulPreferenceOpaque_t& preference,
            cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
}

cublasLtMatmulPreferenceOpaque_t preference() {
  cublasLtMatmulPreferenceOpaque_t preference{};
  CUBLAS_CHECK(cublasLtMatmulPreferenceInit(&preference));
  // No sum is split: MM-2, and split ones are reported to lose the last terms of some lengths.
  prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
  prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(preference, attribute, kAlignment);
  }
  return preference;
}

bool aligned(const TensorView& view) {
  const auto size = static_cast<std::int64_t>(runtime::size_bytes(view.dtype));
  return reinterpret_cast<std::uintptr_t>(view.data) % kAlignment == 0 &&
         view.row_stride * size % kAlignment == 0;
}

class Library {
 public:
  Library() { CUBLAS_CHECK(cublasLtCreate(&handle_)); }
  // Errors are those of a process that is ending, whose context is gone already.
  ~Library() {
    for (const auto& [stream, memory] : workspaces_) static_cast<void>(cudaFree(memory));
    static_cast<void>(cublasLtDestroy(handle_));
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool multiply(const Stream& stream, const Gemm& gemm, const Shape& shape) {
    const auto& algorithm =
        algorithm_of(shape.promise == Rows::kInvariant ? dense(shape, kRowsOfChoice) : shape);
    if (!algorithm) return false;
    Problem p = problem(shape);
    const float one = 1.0f, before = gemm.accumulate ? 1.0f : 0.0f;
    CUBLAS_CHECK(cublasLtMatmul(handle_, &p.operation, &one, gemm.b.data, &p.b, gemm.a.data, &p.a,
                                &before, gemm.c.data, &p.c, gemm.c.data, &p.c, &*algorithm,
                                workspace(stream), kWorkspaceBytes,
                                static_cast<cudaStream_t>(stream.native)));
    return true;
  }

 private:
  using Algorithm = std::optional<cublasLtMatmulAlgo_t>;  // none: the library has no way

  const Algorithm& algorithm_of(const Shape& shape) {
    const auto found = algorithms_.find(shape);
    if (found != algorithms_.end()) return found->second;
    if (algorithms_.size() >= kAlgorithmsMax) algorithms_.clear();
    return algorithms_[shape] = choose(shape);
  }

  Algorithm choose(const Shape& shape) {
    Problem p = problem(shape);
    cublasLtMatmulPreferenceOpaque_t wish = preference();
    cublasLtMatmulHeuristicResult_t candidates[kCandidates];
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, &p.operation, &p.b, &p.a, &p.c, &p.c, &wish, kCandidates, candidates, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    CUBLAS_CHECK(status);
    for (int i = 0; i < count; ++i) {
      if (candidates[i].state != CUBLAS_STATUS_SUCCESS) continue;
      if (shape.promise == Rows::kFastest || does_any_rows(candidates[i].algo, shape)) {
        return candidates[i].algo;
      }
    }
    std::fprintf(stderr,
                 "cuBLASLt has no way to multiply %lld x %lld x %lld: the slow kernel does\n",
                 static_cast<long long>(shape.rows), static_cast<long long>(shape.columns),
                 static_cast<long long>(shape.steps));
    return {};
  }

  bool does_any_rows(const cublasLtMatmulAlgo_t& algorithm, const Shape& shape) {
    for (const std::int64_t rows : kRowsTried) {
      if (rows * std::max(shape.columns, shape.steps) > INT32_MAX) break;  // nobody computes that
      Problem p = problem(dense(shape, rows));
      cublasLtMatmulHeuristicResult_t result{};
      const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle_, &p.operation, &p.b, &p.a, &p.c,
                                                            &p.c, &algorithm, &result);
      if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kWorkspaceBytes) return false;
    }
    return true;
  }

  void* workspace(const Stream& stream) {
    void*& memory = workspaces_[stream.native];
    if (memory == nullptr) CUDA_CHECK(cudaMalloc(&memory, kWorkspaceBytes));
    return memory;
  }

  cublasLtHandle_t handle_ = nullptr;
  std::map<Shape, Algorithm> algorithms_;
  std::map<void*, void*> workspaces_;  // by stream
};

}  // namespace

bool library_gemm(const Stream& stream, const Gemm& gemm) {
  const Shape shape{.in = gemm.a.dtype,
                    .out = gemm.c.dtype,
                    .a_transposed = gemm.a_transposed,
                    .b_transposed = gemm.b_transposed,
                    .promise = gemm.rows,
                    .rows = gemm.c.dim(0),
                    .columns = gemm.c.dim(1),
                    .steps = gemm.steps(),
                    .a_stride = gemm.a.row_stride,
                    .b_stride = gemm.b.row_stride,
                    .c_stride = gemm.c.row_stride};
  if (shape.rows == 0 || shape.columns == 0 || shape.steps == 0) return false;
  if (!aligned(gemm.a) || !aligned(gemm.b) || !aligned(gemm.c)) return false;
  thread_local Library library;
  return library.multiply(stream, gemm, shape);
}

}  // namespace tandem::kernels::cuda
