// One kernel updates all values. The list of changed values takes four steps, none of which depends
// on the order in which blocks run, so the list is the same in every run:
//   1. the update sets one flag per value whose rounded copy got other bits
//   2. each block counts the flags of kChangesPerBlock values
//   3. one block adds up the counts, ascending
//   4. each block writes the indices of its changes, from the sum of the counts before it on
#include <cmath>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/reduce.cuh"
#include "kernels/ops/adamw.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kLanesPerWord = static_cast<int>(kChangesPerWord) / kPack<float>;
static_assert(kChangesPerBlock == kThreads * kChangesPerWord);  // a thread has a word of flags

double power(double base, std::int64_t exponent) {  // by squaring, as for a CPU: the same bits
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

struct Update {
  float* parameters;
  const float* gradients;
  float *m, *v;
  Bf16* rounded;
  unsigned* flags;  // null: no list of changes is wanted
  std::int64_t count;
  float grad_scale, blend1, keep2, blend2, root2, eps, keep, step;
  bool moves;
};

// Writes the rounded values to `to`. Bit i of the result says whether to[i] got other bits; without
// `compare` it is 0.
template <bool kVector>
__device__ __forceinline__ unsigned round_pack(Bf16* to, const Pack<float>& values,
                                               std::int64_t left, bool compare) {
  unsigned changed = 0;
  for (int i = 0; compare && i < kPack<float> && i < left; ++i) {
    const bool same = bits_of(to[i]) == bits_of(from_float<Bf16>(values.at[i]));
    changed |= same ? 0u : 1u << i;
  }
  store_pack<kVector>(to, values, left);
  return changed;
}

// Updates the pack at `at`, which has at least one element of the range, and returns its flags.
template <bool kVector>
__device__ __forceinline__ unsigned update_pack(const Update& op, std::int64_t at) {
  const std::int64_t left = op.count - at;
  const Pack<float> gradients = load_pack<kVector>(op.gradients + at, left);
  Pack<float> m = load_pack<kVector>(op.m + at, left), v = load_pack<kVector>(op.v + at, left);
  Pack<float> parameters = load_pack<kVector>(op.parameters + at, left);
  for (int i = 0; i < kPack<float>; ++i) {
    const float g = gradients.at[i] * op.grad_scale;
    m.at[i] = fmaf(op.blend1, g - m.at[i], m.at[i]);
    v.at[i] = fmaf(op.blend2 * g, g, op.keep2 * v.at[i]);
    if (!op.moves) continue;
    const float update = m.at[i] / (sqrtf(v.at[i]) / op.root2 + op.eps);
    parameters.at[i] = fmaf(-op.step, update, parameters.at[i] * op.keep);
  }
  store_pack<kVector>(op.m + at, m, left);
  store_pack<kVector>(op.v + at, v, left);
  if (op.moves) store_pack<kVector>(op.parameters + at, parameters, left);
  if (op.rounded == nullptr) return 0;
  return round_pack<kVector>(op.rounded + at, parameters, left, op.flags != nullptr);
}

template <bool kVector>
__global__ void adamw_kernel(Update op) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPack<float>;
  unsigned word = at < op.count ? update_pack<kVector>(op, at) : 0;
  if (op.flags == nullptr) return;  // all threads return or none
  // kLanesPerWord neighbouring lanes join their flags into one word. Threads past the end take
  // part with none, because all lanes of a warp must call.
  word <<= at % kChangesPerWord;
  for (int step = kLanesPerWord / 2; step > 0; step /= 2) {
    word |= __shfl_xor_sync(kAllLanes, word, step);
  }
  if (at < op.count && at % kChangesPerWord == 0) op.flags[at / kChangesPerWord] = word;
}

// The list of changes; see steps 2 to 4 above.
struct Changes {
  const unsigned* flags;
  std::int32_t* counts;  // [blocks] changes of a block; after step 3, changes before the block
  std::int32_t *indices, *count;
  std::int64_t words, blocks;
};

__global__ void count_changes_kernel(Changes op) {
  __shared__ std::int32_t scratch[kWarps];
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int32_t own = at < op.words ? __popc(op.flags[at]) : 0;
  const std::int32_t all = team_sum<kThreads>(own, scratch);
  if (threadIdx.x == 0) op.counts[blockIdx.x] = all;
}

__global__ void add_counts_kernel(Changes op) {
  __shared__ std::int32_t scratch[kWarps];
  std::int32_t before = 0;
  for (std::int64_t begin = 0; begin < op.blocks; begin += kThreads) {
    const std::int64_t at = begin + threadIdx.x;
    const auto prefix = team_prefix<kThreads>(at < op.blocks ? op.counts[at] : 0, scratch);
    if (at < op.blocks) op.counts[at] = before + prefix.before;
    before += prefix.all;
  }
  if (threadIdx.x == 0) *op.count = before;
}

__global__ void list_changes_kernel(Changes op) {
  __shared__ std::int32_t scratch[kWarps];
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const unsigned word = at < op.words ? op.flags[at] : 0;
  const auto prefix = team_prefix<kThreads>(static_cast<std::int32_t>(__popc(word)), scratch);
  std::int32_t* to = op.indices + op.counts[blockIdx.x] + prefix.before;
  for (unsigned left = word; left != 0; left &= left - 1) {
    *to++ = static_cast<std::int32_t>(at * kChangesPerWord) + __ffs(static_cast<int>(left)) - 1;
  }
}

void list_changes(const Stream& stream, const AdamW& op) {
  const std::int64_t count = op.parameters.dim(0);
  const Changes changes{
      .flags = data<unsigned>(op.workspace),
      .counts = data<std::int32_t>(op.workspace) + blocks_for(count, kChangesPerWord),
      .indices = data<std::int32_t>(op.changed),
      .count = data<std::int32_t>(op.changed_count),
      .words = blocks_for(count, kChangesPerWord),
      .blocks = blocks_for(count, kChangesPerBlock)};
  const Launch over_blocks{.grid = blocks_for(count, kChangesPerBlock), .block = kThreads};
  launch(stream, over_blocks, count_changes_kernel, changes);
  launch(stream, {.grid = 1, .block = kThreads}, add_counts_kernel, changes);
  launch(stream, over_blocks, list_changes_kernel, changes);
}

}  // namespace

void adamw(const Stream& stream, const AdamW& op) {
  const double correction1 = 1.0 - power(op.beta1, op.step);
  const double correction2 = 1.0 - power(op.beta2, op.step);
  const Update update{.parameters = data<float>(op.parameters),
                      .gradients = data<float>(op.gradients),
                      .m = data<float>(op.m),
                      .v = data<float>(op.v),
                      .rounded = data<Bf16>(op.rounded),
                      .flags = data<unsigned>(op.workspace),
                      .count = op.parameters.dim(0),
                      .grad_scale = op.grad_scale,
                      .blend1 = static_cast<float>(1.0 - op.beta1),
                      .keep2 = static_cast<float>(op.beta2),
                      .blend2 = static_cast<float>(1.0 - op.beta2),
                      .root2 = static_cast<float>(std::sqrt(correction2)),
                      .eps = static_cast<float>(op.eps),
                      .keep = static_cast<float>(1.0 - op.lr * op.weight_decay),
                      .step = static_cast<float>(op.lr / correction1),
                      .moves = op.lr != 0};
  with_flag(packs_align({op.parameters, op.gradients, op.m, op.v, op.rounded}), [&](auto vector) {
    launch(stream, {.grid = blocks_for(update.count, kThreads * kPack<float>), .block = kThreads},
           adamw_kernel<vector>, update);
  });
  if (!op.changed_count.empty()) list_changes(stream, op);
}

}  // namespace tandem::kernels::cuda
