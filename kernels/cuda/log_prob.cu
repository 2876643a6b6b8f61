// Forward: a block takes one row and reduces it as the sampler does (soft_max.cuh), for LP-1; its
// first thread writes the results. Backward needs no sum over the row, because forward wrote lse.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/soft_max.cuh"
#include "kernels/ops/log_prob.h"

namespace tandem::kernels::cuda {

namespace {

template <class T>
struct Forward {
  const T* logits;
  const std::int32_t* targets;
  float *log_prob, *entropy, *lse;
  std::int64_t stride, vocabulary;
  float factor;
};

template <class T, bool kVector>
__global__ void log_prob_kernel(Forward<T> op) {
  __shared__ SoftMaxSums scratch[kSoftMaxWarps];
  const std::int64_t r = blockIdx.x;
  const T* logits = op.logits + r * op.stride;
  const SoftMaxSums sums = soft_max_sums<kVector>(logits, op.vocabulary, op.factor, scratch);
  if (threadIdx.x != 0) return;
  const float log_sum = logarithm(sums.sum);
  op.log_prob[r] = (to_float(logits[op.targets[r]]) * op.factor - sums.maximum) - log_sum;
  if (op.entropy != nullptr) op.entropy[r] = log_sum - sums.weighted / sums.sum;
  if (op.lse != nullptr) op.lse[r] = sums.maximum + log_sum;
}

template <class T, class Out>
struct Backward {
  const T* logits;
  Out* dlogits;
  const std::int32_t* targets;
  const float *lse, *entropy, *dlog_prob, *dentropy;
  std::int64_t logits_stride, dlogits_stride, vocabulary;
  float factor;
};

// Elementwise, given lse: several blocks share a row, a thread takes one pack of it. A pack is read
// before it is written, so dlogits may be the logits.
template <class T, class Out, bool kVector>
__global__ void log_prob_backward_kernel(Backward<T, Out> op) {
  const std::int64_t r = blockIdx.x;
  const std::int64_t at = (std::int64_t{blockIdx.y} * kSoftMaxThreads + threadIdx.x) * kPack<T>;
  if (at >= op.vocabulary) return;
  const std::int64_t left = op.vocabulary - at;
  const bool flat = op.dentropy == nullptr;
  const float lse = op.lse[r], dlog_prob = op.dlog_prob[r] * op.factor;
  const float entropy = flat ? 0.0f : op.entropy[r];
  const float dentropy = flat ? 0.0f : op.dentropy[r] * op.factor;
  const std::int64_t target = op.targets[r] - at;
  Pack<T> pack = load_pack<kVector>(op.logits + r * op.logits_stride + at, left);
  for (int i = 0; i < kPack<T>; ++i) {
    const float log_p = pack.at[i] * op.factor - lse;
    const float p = exponential(log_p);
    float gradient = 0.0f - p * dlog_prob;
    // Where p is 0, log p may be minus infinity, and their product NaN: the term is left out.
    if (!flat && p > 0.0f) gradient = fmaf(-(p * dentropy), log_p + entropy, gradient);
    pack.at[i] = i == target ? gradient + dlog_prob : gradient;
  }
  store_pack<kVector>(op.dlogits + r * op.dlogits_stride + at, pack, left);
}

template <class T, class Out>
void launch_backward(const Stream& stream, const LogProbBackward& op) {
  const Backward<T, Out> backward{.logits = data<T>(op.logits),
                                  .dlogits = data<Out>(op.dlogits),
                                  .targets = data<std::int32_t>(op.targets),
                                  .lse = data<float>(op.lse),
                                  .entropy = data<float>(op.entropy),
                                  .dlog_prob = data<float>(op.dlog_prob),
                                  .dentropy = data<float>(op.dentropy),
                                  .logits_stride = op.logits.row_stride,
                                  .dlogits_stride = op.dlogits.row_stride,
                                  .vocabulary = op.logits.dim(1),
                                  .factor = 1.0f / op.temperature};
  const unsigned tiles = blocks_for(backward.vocabulary, kSoftMaxThreads * kPack<T>);
  with_flag(packs_align({op.logits, op.dlogits}), [&](auto vector) {
    launch(stream, {.grid = dim3(blocks_for(op.logits.dim(0), 1), tiles), .block = kSoftMaxThreads},
           log_prob_backward_kernel<T, Out, vector>, backward);
  });
}

}  // namespace

void log_prob(const Stream& stream, const LogProb& op) {
  with_type(op.logits.dtype, [&]<class T>(T) {
    const Forward<T> forward{.logits = data<T>(op.logits),
                             .targets = data<std::int32_t>(op.targets),
                             .log_prob = data<float>(op.log_prob),
                             .entropy = data<float>(op.entropy),
                             .lse = data<float>(op.lse),
                             .stride = op.logits.row_stride,
                             .vocabulary = op.logits.dim(1),
                             .factor = 1.0f / op.temperature};
    with_flag(packs_align({op.logits}), [&](auto vector) {
      launch(stream, {.grid = blocks_for(op.logits.dim(0), 1), .block = kSoftMaxThreads},
             log_prob_kernel<T, vector>, forward);
    });
  });
}

void log_prob_backward(const Stream& stream, const LogProbBackward& op) {
  if (op.dlogits.dtype != op.logits.dtype) return launch_backward<float, Bf16>(stream, op);
  with_type(op.logits.dtype, [&]<class T>(T) { launch_backward<T, T>(stream, op); });
}

}  // namespace tandem::kernels::cuda
