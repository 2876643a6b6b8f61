// Matrix products with a weight in HF layout (output features first), forward and backward.
//
//   forward          y[m,n]  = sum_k x[m,k] * w[n,k]      k ascending
//   backward, input  dx[m,k] = sum_n dy[m,n] * w[n,k]     n ascending
//   backward, weight dw[n,k] += sum_m dy[m,n] * x[m,k]    m ascending, starting from dw[n,k]
//
// M rows (tokens), N output features, K input features. All operands share one dtype, f32 or bf16,
// except that y may be f32 beside bf16 operands (as logits are) and dw always is f32. All sums are
// f32. With Output::kAdd the sum is added to the output's own value, and an output in bf16 is
// rounded once, after that; on a GPU cuBLASLt rounds the sum to bf16 before it adds as well, as
// PyTorch does.
//
// MM-1  On a CPU the terms of an output of forward and of backward-input are cut, in the stated
//       order, into chains of kChainSteps terms; the last chain may be shorter. Each chain starts
//       from zero and is computed by fused multiply-adds, one after the other. The output is the
//       sum of the chains, added from the first to the last: ((chain 0 + chain 1) + chain 2) + ...
//       With Output::kAdd it is ((output + chain 0) + chain 1) + ... An output of backward-weight
//       is one chain over all M terms, which starts from dw's own value. So a row of y or dx does
//       not depend on M, on the other rows, on threads or on the instruction set; dw of f32
//       operands does not depend on how M rows are cut into consecutive calls; packed or not gives
//       the same bits. With bf16 operands a chain takes its terms in pairs, t = 0 and 1, then 2 and
//       3, and so on; in a pair it takes the odd term first. An odd number of terms is filled with
//       a term 0 * 0. In every operation of the sums, those between chains included, operands and
//       results that are denormal count as zeros of their sign. dw of bf16 operands does not depend
//       on how M rows are cut into consecutive calls of which all but the last have an even number
//       of rows.
// MM-2  On a GPU the same operands give the same bits in every run; dw depends on how M rows are
//       cut into calls. With Rows::kInvariant a row of y or dx does not depend on M or on the other
//       rows, and packed or not gives the same bits. This holds among calls whose operands' rows
//       all begin at multiples of 16 bytes, and among calls that each have an operand whose rows do
//       not.
//
// A weight that is used often is packed once. A packed weight is panels of kPanelColumns output
// features, each [K][kPanelColumns], the last one filled up with zeros; in bf16
// [ceil(K/2)][kPanelColumns][2], an odd K filled up with a zero. On a GPU the same memory holds the
// layout that the device reads best (cuda/matmul.cu).
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr std::int64_t kPanelColumns = 32;

// Terms of a chain (MM-1). The rounding error of a chain grows with the number of terms that have
// been summed, because each addition rounds at the size of the sum so far.
inline constexpr std::int64_t kChainSteps = 256;

// The promise of a GPU about the rows of y and dx (MM-2).
enum class Rows : std::uint8_t {
  kInvariant,  // one order of sums for a weight's shape, whatever M is
  kFastest,    // the algorithm, and so the order of sums, may depend on M
};

// A packed weight, in memory that it borrows.
struct PackedWeight {
  TensorView panels;  // [ceil(N / 32), K, 32], in bf16 with K rounded up to even; dense, aligned to
                      // 64 bytes
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// Elements that a packed [N, K] weight takes.
std::int64_t packed_elements(device::DType dtype, std::int64_t n, std::int64_t k);
// A PackedWeight on memory of the caller: packed_elements(dtype, n, k) elements, aligned to 64
// bytes. The memory is neither read nor written.
PackedWeight packed_weight(void* memory, device::DType dtype, std::int64_t n, std::int64_t k);

// Fills a packed weight from the dense one.
struct PackWeight {
  TensorView weight;    // [N, K]
  PackedWeight packed;  // its panels are written
};

// Forward.
struct Matmul {
  TensorView x;         // [M, K]
  PackedWeight weight;  // made from [N, K]
  TensorView y;         // [M, N] written, or added to; of x's dtype or f32
  Output output = Output::kWrite;
  Rows rows = Rows::kInvariant;
};

// Forward with a weight that is not packed. A CPU packs it panel by panel during the product, which
// pays off only where many rows use each panel.
struct MatmulPlain {
  TensorView x;       // [M, K]
  TensorView weight;  // [N, K]
  TensorView y;       // [M, N]
  Output output = Output::kWrite;
  Rows rows = Rows::kInvariant;
};

struct MatmulBackwardInput {
  TensorView dy;      // [M, N]
  TensorView weight;  // [N, K]
  TensorView dx;      // [M, K]
  Output output = Output::kWrite;
  Rows rows = Rows::kInvariant;
};

struct MatmulBackwardWeight {
  TensorView dy;       // [M, N]
  TensorView x;        // [M, K]
  TensorView dweight;  // [N, K] f32, accumulated (+=)
};

void pack_weight(const Stream& stream, const PackWeight& op);
void matmul(const Stream& stream, const Matmul& op);
void matmul(const Stream& stream, const MatmulPlain& op);
void matmul(const Stream& stream, const MatmulBackwardInput& op);
void matmul(const Stream& stream, const MatmulBackwardWeight& op);

}  // namespace tandem::kernels
