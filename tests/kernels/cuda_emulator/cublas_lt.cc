// Products of the emulated GPU's cuBLASLt. Its algorithms add in orders of their own, and the ones
// it likes best are those that MM-2 forbids:
//
//   kByCompany  in two parts, cut at a step that the number of columns (to us, rows) decides
//   kHalves     in two halves, each in order; kHalvesBack: each the last step first
//   kBackwards  the last step first
//   kFew        in order, as the plain kernel, to an f32 matrix from C's value on; of few columns
//   kInOrder    the same, of any number
//
// As on an H200, a sum that is added to a bf16 matrix is rounded to bf16 before.
//
// The caller's arguments are checked against NVIDIA's documentation; a breach ends the process.
#include <cublasLt.h>
#include <cuda_bf16.h>

#include <cstring>
#include <vector>

#include "tests/kernels/cuda_emulator/emulator.h"

namespace {

using tandem::emulator::broken;

enum Order : std::uint64_t { kByCompany = 1, kHalves, kHalvesBack, kBackwards, kFew, kInOrder };

constexpr std::size_t kWorkspaceBytes = 4096;  // that every algorithm asks for
constexpr std::uint64_t kFewColumns = 64;
// An algorithm that was refused is not offered twice, because a try takes time.
constexpr std::int64_t kFewSteps = 64;

std::size_t size_of(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

float load(const void* data, cudaDataType_t type, std::int64_t at) {
  return type == CUDA_R_32F ? static_cast<const float*>(data)[at]
                            : __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
}

void store(void* data, cudaDataType_t type, std::int64_t at, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = value;
  } else {
    static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(value);
  }
}

// D = op(A) op(B) + beta C, by columns.
struct Problem {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, d;
  std::int64_t m = 0, n = 0, k = 0;

  Problem(const cublasLtMatmulDescOpaque_t& of, const cublasLtMatrixLayoutOpaque_t& la,
          const cublasLtMatrixLayoutOpaque_t& lb, const cublasLtMatrixLayoutOpaque_t& lc,
          const cublasLtMatrixLayoutOpaque_t& ld)
      : operation(of), a(la), b(lb), d(ld) {
    const bool a_turned = of.a == CUBLAS_OP_T, b_turned = of.b == CUBLAS_OP_T;
    m = static_cast<std::int64_t>(ld.rows);
    n = static_cast<std::int64_t>(ld.columns);
    k = static_cast<std::int64_t>(a_turned ? la.rows : la.columns);
    if ((a_turned ? la.columns : la.rows) != ld.rows ||
        (b_turned ? lb.rows : lb.columns) != ld.columns ||
        (b_turned ? lb.columns : lb.rows) != static_cast<std::uint64_t>(k)) {
      broken("cuBLASLt: matrices that do not fit: m %ld, n %ld, k %ld", m, n, k);
    }
    for (const auto& layout : {la, lb, lc, ld}) {
      if (layout.leading < static_cast<std::int64_t>(layout.rows)) {
        broken("cuBLASLt: columns of %ld elements lie %ld apart", static_cast<long>(layout.rows),
               static_cast<long>(layout.leading));
      }
    }
    if (std::memcmp(&lc, &ld, sizeof lc) != 0) broken("cuBLASLt: C and D are laid out differently");
    if (la.type != lb.type || (ld.type != la.type && ld.type != CUDA_R_32F)) {
      broken("cuBLASLt: types that it does not multiply");
    }
  }
};

bool can(std::uint64_t order, const Problem& p) {
  return order >= kByCompany && order <= kInOrder && (order != kFew || p.d.columns <= kFewColumns);
}

std::vector<Order> offers(const Problem& p) {
  // Gradients of weights may always be summed as it likes; the operators' tests want the CPU's way.
  if (p.operation.b == CUBLAS_OP_T) return {kInOrder};
  if (p.d.columns <= kFewColumns) return {kByCompany, kHalves, kBackwards, kFew, kInOrder};
  if (p.k <= kFewSteps) return {kByCompany, kHalvesBack, kInOrder, kBackwards};
  return {kByCompany, kInOrder, kBackwards};
}

// sums[i] += a[t][i] * b[t], t from `first` to before `last`, up or down.
[[gnu::always_inline]] inline void add_terms(const float* a, const float* b, std::int64_t m,
                                             std::int64_t first, std::int64_t last, float* sums) {
  for (std::int64_t t = first; t != last; t += first < last ? 1 : -1) {
    for (std::int64_t i = 0; i < m; ++i) sums[i] = __builtin_fmaf(a[t * m + i], b[t], sums[i]);
  }
}
[[gnu::target("avx2,fma")]] void add_terms_by_8(const float* a, const float* b, std::int64_t m,
                                                std::int64_t first, std::int64_t last,
                                                float* sums) {
  add_terms(a, b, m, first, last, sums);
}

void multiply(const Problem& p, std::uint64_t order, const void* a, const void* b, float beta,
              void* d) {
  static const bool by_8 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const auto add = by_8 ? add_terms_by_8 : add_terms;
  const auto m = static_cast<std::size_t>(p.m), k = static_cast<std::size_t>(p.k);
  std::vector<float> a_by_step(k * m), column(k), sums(m), front(m);
  for (std::int64_t t = 0; t < p.k; ++t) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      a_by_step[static_cast<std::size_t>(t * p.m + i)] = load(
          a, p.a.type, p.operation.a == CUBLAS_OP_T ? i * p.a.leading + t : t * p.a.leading + i);
    }
  }
  for (std::int64_t j = 0; j < p.n; ++j) {
    for (std::int64_t t = 0; t < p.k; ++t) {
      column[static_cast<std::size_t>(t)] = load(
          b, p.b.type, p.operation.b == CUBLAS_OP_T ? t * p.b.leading + j : j * p.b.leading + t);
    }
    const bool adds_f32 = beta != 0 && p.d.type == CUDA_R_32F;
    for (std::int64_t i = 0; i < p.m; ++i) {
      sums[static_cast<std::size_t>(i)] =
          adds_f32 ? beta * load(d, p.d.type, j * p.d.leading + i) : 0;
    }
    const auto add_part = [&](std::int64_t from, std::int64_t to, std::vector<float>& part) {
      const bool back = order == kBackwards || order == kHalvesBack;
      add(a_by_step.data(), column.data(), p.m, back ? to - 1 : from, back ? from - 1 : to,
          part.data());
    };
    const std::int64_t cut = order == kByCompany                        ? p.n % p.k
                             : order == kHalves || order == kHalvesBack ? p.k / 2
                                                                        : 0;
    add_part(cut, p.k, sums);
    if (cut > 0) {
      std::fill(front.begin(), front.end(), 0.0f);
      add_part(0, cut, front);
      for (std::size_t i = 0; i < m; ++i) sums[i] += front[i];
    }
    for (std::int64_t i = 0; i < p.m; ++i) {
      const std::int64_t at = j * p.d.leading + i;
      float sum = sums[static_cast<std::size_t>(i)];
      if (beta != 0 && !adds_f32) {
        sum = __bfloat162float(__float2bfloat16_rn(sum)) + beta * load(d, p.d.type, at);
      }
      store(d, p.d.type, at, sum);
    }
  }
}

template <class Value>
Value read(const void* value, std::size_t bytes) {
  if (bytes != sizeof(Value)) broken("cuBLASLt: an attribute of %zu bytes", bytes);
  Value read;
  std::memcpy(&read, value, sizeof read);
  return read;
}

void check_aligned(const void* data, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(data) % bytes != 0) {
    broken("cuBLASLt: %p does not begin at a multiple of %zu bytes", data, bytes);
  }
}

}  // namespace

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "a status of cuBLAS";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static char library;
  *handle = reinterpret_cast<cublasLtHandle_t>(&library);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t operation, cublasComputeType_t compute,
                                      cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *operation = {CUBLAS_OP_N, CUBLAS_OP_N};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& of = attribute == CUBLASLT_MATMUL_DESC_TRANSA ? operation->a : operation->b;
  of = read<cublasOperation_t>(value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType_t type,
                                        std::uint64_t rows, std::uint64_t columns,
                                        std::int64_t leading) {
  std::memset(layout, 0, sizeof *layout);
  layout->type = type;
  layout->rows = rows;
  layout->columns = columns;
  layout->leading = leading;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  *preference = {0, 0x7};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    preference->workspace_bytes = read<std::uint64_t>(value, bytes);
  } else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    preference->reductions = read<std::uint32_t>(value, bytes);
  } else if (read<std::uint32_t>(value, bytes) != 16) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  const Problem problem(*operation, *a, *b, *c, *d);
  if (preference->reductions != CUBLASLT_REDUCTION_SCHEME_NONE) broken("cuBLASLt: split sums");
  *count = 0;
  if (preference->workspace_bytes < kWorkspaceBytes) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const Order order : offers(problem)) {
    if (*count == wanted) break;
    results[(*count)++] = {{{order}}, kWorkspaceBytes, CUBLAS_STATUS_SUCCESS};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const Problem problem(*operation, *a, *b, *c, *d);
  if (!can(algorithm->data[0], problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {*algorithm, kWorkspaceBytes, CUBLAS_STATUS_SUCCESS};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const Problem problem(*operation, *a_layout, *b_layout, *c_layout, *d_layout);
  if (!can(algorithm->data[0], problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspace == nullptr || workspace_bytes < kWorkspaceBytes) broken("cuBLASLt: no workspace");
  check_aligned(workspace, 256);
  for (const void* data : {a, b, c, const_cast<const void*>(d)}) check_aligned(data, 16);
  for (const auto* layout : {a_layout, b_layout, d_layout}) {
    const std::size_t bytes = static_cast<std::size_t>(layout->leading) * size_of(layout->type);
    if (bytes % 16 != 0) broken("cuBLASLt: columns %zu bytes apart are not aligned", bytes);
  }
  if (c != d) broken("cuBLASLt: C is not D");
  if (*static_cast<const float*>(alpha) != 1) broken("cuBLASLt: alpha is not 1");
  tandem::emulator::enqueue_work(
      stream, [problem, order = algorithm->data[0], a, b, beta = *static_cast<const float*>(beta),
               d] { multiply(problem, order, a, b, beta, d); });
  return CUBLAS_STATUS_SUCCESS;
}
