// The seam between operators and devices: one row per operator, one table per device.
//
// Callers use the functions of kernels/ops/<op>.h. kernels/ops/<op>.cc checks shapes, dtypes and
// aliasing once and calls through the table, so the sources in cpu/ and cuda/ hold arithmetic only.
// A wrong operand is a bug of the caller and aborts (CHECK); no operator returns an error. A new
// operator is one row here and one file in each folder.
//
// The GPU's table is in the CUDA module (runtime/device/cuda_module.h). The CPU has three tables,
// compiled from the same sources, one per instruction set. They give the same bits, so the choice
// among them is one of speed alone; a process takes the best one that its machine supports.
#pragma once

#include "kernels/ops/adamw.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/attention_input.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/global_norm.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/policy_loss.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/sample.h"
#include "kernels/ops/sum_pieces.h"
#include "kernels/ops/swiglu.h"
#include "runtime/base/result.h"

namespace tandem::kernels {

// Operands borrow memory: on a CPU until the function returns, on a GPU until the stream's work is
// done. Several threads may call at the same time, each with a stream of its own.
//
// The headers overload one name for an operator and its gradient, such as rms_norm; the table has a
// row for each, such as rms_norm and rms_norm_backward.
struct Backend {
  void (*adamw)(const Stream&, const AdamW&);
  void (*attention_input)(const Stream&, const AttentionInput&);
  void (*attention_packed)(const Stream&, const AttentionPacked&);
  void (*attention_backward)(const Stream&, const AttentionBackward&);
  void (*attention_paged)(const Stream&, const AttentionPaged&);
  void (*add)(const Stream&, const Add&);
  void (*scale)(const Stream&, const Scale&);
  void (*convert)(const Stream&, const Convert&);
  void (*embedding)(const Stream&, const Embedding&);
  void (*embedding_backward)(const Stream&, const EmbeddingBackward&);
  void (*sum_of_squares)(const Stream&, const SumOfSquares&);
  void (*sum_pieces)(const Stream&, const SumPieces&);
  void (*kv_write)(const Stream&, const KvWrite&);
  void (*kv_copy)(const Stream&, const KvCopy&);
  void (*log_prob)(const Stream&, const LogProb&);
  void (*log_prob_backward)(const Stream&, const LogProbBackward&);
  void (*pack_weight)(const Stream&, const PackWeight&);
  void (*matmul)(const Stream&, const Matmul&);
  void (*matmul_plain)(const Stream&, const MatmulPlain&);
  void (*matmul_backward_input)(const Stream&, const MatmulBackwardInput&);
  void (*matmul_backward_weight)(const Stream&, const MatmulBackwardWeight&);
  void (*policy_loss)(const Stream&, const PolicyLoss&);
  void (*importance_weights)(const Stream&, const ImportanceWeights&);
  void (*rms_norm)(const Stream&, const RmsNorm&);
  void (*rms_norm_backward)(const Stream&, const RmsNormBackward&);
  void (*rope)(const Stream&, const Rope&);
  void (*sample)(const Stream&, const Sample&);
  void (*swiglu)(const Stream&, const Swiglu&);
  void (*swiglu_backward)(const Stream&, const SwigluBackward&);
};

// Instruction sets of CPUs. Each one includes all instructions of the ones before it.
enum class Isa : std::uint8_t { kAvx2, kAvx512, kAvx512Bf16 };

const char* name(Isa isa);  // "avx2", "avx512", "avx512bf16"

// The best instruction set that this machine has; an error where it lacks AVX2 or FMA. Every
// process that computes calls this at its start, and so ends with a message instead of a signal.
Result<Isa> detect_isa();

// The table for detect_isa(), which must have succeeded.
const Backend& cpu_backend();
// The table for `isa`. Calling this where the CPU lacks `isa` is a bug: operators of the table
// would end the process with a signal.
const Backend& cpu_backend(Isa isa);

// The table of a device. For a GPU the CUDA module must have been found (runtime::cuda_module).
const Backend& backend(runtime::DeviceKind device);

}  // namespace tandem::kernels
