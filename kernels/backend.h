// The seam between operators and devices. One row per operator; one table per device.
//
// kernels/ops/<op>.cc checks shapes, dtypes and aliasing once and calls through the table, so the
// sources in cpu/ hold arithmetic only. Adding an operator is one row here and one file in each
// folder. The GPU's table lies in the CUDA module. The CPU has tables made of the same sources, one
// per instruction set; they give the same bits, and the best one that the machine has is picked
// once.
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

// Each has all that the ones before it have.
enum class Isa : std::uint8_t { kAvx2, kAvx512, kAvx512Bf16 };

const char* name(Isa isa);  // "avx2", "avx512", "avx512bf16"

// The best instruction set that this machine has; an error where it lacks AVX2 and FMA. Called at
// the start of every process that computes, so that it ends with a message instead of a signal.
Result<Isa> detect_isa();

const Backend& cpu_backend();         // of detect_isa(), which must have succeeded
const Backend& cpu_backend(Isa isa);  // of that one; calling it where the CPU lacks it is a bug

// The table of a device. For a GPU the CUDA module must have been found (runtime::cuda_module).
const Backend& backend(runtime::DeviceKind device);

}  // namespace tandem::kernels
