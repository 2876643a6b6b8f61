// The decoder: one forward pass for generation, and one forward and backward for training.
//
//   x = embed[token]
//   per layer:  h = norm(x);  q|k|v = h Wqkv^T + bias;  q, k = rope(norm(q)), rope(norm(k))
//               x += attention(q, k, v) Wo^T
//               g|u = norm(x) Wgu^T;  x += (silu(g) * u) Wd^T
//   logits = norm(x) E^T                    E is lm_head, or embed_tokens when tied
//
// Which families have the bias, and which the norms of q and k, is in model_config.h.
// (transformers' modeling_qwen3.py, modeling_qwen2.py and modeling_llama.py are the reference;
// tests/golden holds their numbers.)
//
// Letters as in model_config.h; T rows (tokens) of one call, M log-probabilities, R rows of logits.
//
// Invariants
//   DE-1  A row's numbers depend on its own sequence up to itself and on the weights, bit for bit:
//         not on the other rows, the chunking of its prompt, the pages, or prefix sharing.
//   DE-2  TrainDecoder's log-probabilities equal, bit for bit, those that kernels/ops/log_prob.h
//         makes of PagedDecoder's logits for the same tokens, weights and temperature.
//         (DE-1 and DE-2 hold up to roundings on a GPU where the limits ask for Rows::kFastest.)
//   DE-3  forward and backward allocate nothing: all memory is sized in make(). (The exception is
//         the graph of a decode step, when it is recorded.)
//   DE-4  Once backward has announced gradients as finished (GradientsFinished), it gives the
//         stream no more work that touches them.
//   DE-5  Forward reads no weight, on the host or by work that it gives the stream, before it has
//         announced that it needs this weight (WeightsNeeded).
//
// Each object is used by one thread at a time; inside a call the threads of the stream's pool work.
// A call that exceeds a limit is a bug of the caller (CHECK): schedulers know the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/model/kv_cache.h"
#include "actors/model/model_config.h"
#include "actors/model/weights.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/matmul.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::model {

// The largest call of PagedDecoder::forward. Memory is allocated for exactly this size.
struct PagedLimits {
  std::int64_t rows_max;        // tokens computed, over all slices (max_num_batched_tokens)
  std::int64_t slices_max;      // sequences
  std::int64_t logit_rows_max;  // rows whose logits are wanted
  std::int64_t positions_max;   // in one sequence: prompt and response
  // Sizes of decode steps that a GPU records as CUDA graphs, ascending. A smaller step is padded to
  // the next size; a step larger than the last size is not recorded.
  std::vector<std::int32_t> capture_sizes = {};
  kernels::Rows products = kernels::Rows::kInvariant;  // the promise of a GPU's products (MM-2)
};

// The tokens of one sequence that a call computes: a chunk of a prompt, or the one token that was
// sampled last. `pages` covers positions 0 … position + tokens.size() - 1 of the sequence; entry
// p / page_positions is the page of position p. Keys and values of the positions before `position`
// are in the cache already. Sequences may share pages that no slice of the call writes.
struct PagedSlice {
  std::span<const std::int32_t> tokens;  // >= 1; one below 0 is `drawn[~token]` of the call
  std::int32_t position;                 // where tokens[0] stands
  std::span<const std::int32_t> pages;
  std::int32_t logits_last;  // logits of that many last rows are wanted: 1 to sample, 0 mid-prompt
};

class PagedDecoder {
 public:
  // The error means too little memory. positions_max <= config.max_position_embeddings.
  static Result<PagedDecoder> make(const ModelConfig& config, const PagedLimits& limits,
                                   device::DeviceKind device);
  // Bytes that make() allocates on the device. Its memory on the host is small beside them.
  static std::size_t workspace_bytes(const ModelConfig& config, const PagedLimits& limits,
                                     device::DeviceKind device);
  ~PagedDecoder();
  PagedDecoder(PagedDecoder&&) noexcept;
  PagedDecoder& operator=(PagedDecoder&&) noexcept;

  // Computes every slice, writes its keys and values to `cache`, and returns the wanted logits [R,
  // V] (f32, on the device, temperature not applied) in the order of slices and rows. The view is
  // valid until the next call. The call waits only in two cases: for the tables of the call before
  // the last one, which may still be on their way to the device, and for the stream when recorded
  // graphs are dropped.
  //
  // `drawn` [D] i32 on the device: tokens that work on the stream draws and the host does not know
  // yet. It may be missing where no slice refers to a drawn token.
  //
  // A call in which each slice has one token and wants its logits is a decode step. A GPU pads it
  // to the next of capture_sizes, records it when that size is first seen, and replays the
  // recording from then on, with the same bits (DE-1). A recording refers to `stream`, `weights`,
  // `cache` and `drawn` by their addresses; when one of them is another object, all recordings are
  // dropped and made anew. A caller that changes the stream has waited for the work of the former
  // stream. Where the GPU has no memory for a recording, the step is computed without one.
  device::TensorView forward(const device::Stream& stream, const Weights& weights, KvCache& cache,
                             std::span<const PagedSlice> slices,
                             const device::TensorView& drawn = {});

  // How many sizes of decode steps are recorded at the moment; tests ask this.
  std::int64_t graphs_recorded() const;

 private:
  struct Workspace;
  explicit PagedDecoder(std::unique_ptr<Workspace> workspace);
  std::unique_ptr<Workspace> work_;
};

// Asks for the log-probability of `target` under softmax(logits of `row` / temperature). Several
// items may ask about the same row: a prompt's last row predicts every trajectory's first token.
struct LogprobItem {
  std::int32_t row;
  std::int32_t target;
};

// One forward pass of training. Borrows all arrays for the calls that it is given to.
struct PackedBatch {
  std::span<const std::int32_t> tokens;  // [T]
  std::span<const kernels::Segment>
      segments;                        // kernels/ops/attention.h; they tile the rows in order
  std::span<const LogprobItem> items;  // [M]
  float temperature = 1.0f;            // > 0
};

struct TrainLimits {
  std::int64_t rows_max;       // T (learner.max_token_len)
  std::int64_t items_max;      // M; several per row are possible
  std::int64_t positions_max;  // in one sequence
  bool checkpointing = false;  // forward keeps only each layer's input; backward repeats the layer
  kernels::Rows products = kernels::Rows::kInvariant;  // as in PagedLimits
};

// Backward calls this function when more gradients are finished: those of the arena's floats from
// `begin` to the arena's end, as soon as the stream has done the work that it holds at that moment.
// Backward goes from the last layer to the first, so `begin` descends: first come the final norm
// and an untied head, then layer by layer, and last 0, when all gradients are finished. The call is
// made on backward's thread; DE-3 does not cover what the function itself allocates.
using GradientsFinished = std::function<void(std::int64_t begin)>;

// Forward calls this function before it gives the stream work that reads more weights: those of the
// master arena's floats before `end`. The weights before the former call's `end` are there already.
// Forward goes from the first layer to the last, so `end` ascends: first comes the beginning of the
// first layer (only the embedding lies before it), then the end of each layer, and last the arena's
// end. Work that the function gives the stream comes before forward's own work. The call is made on
// forward's thread; DE-3 does not cover what the function itself allocates.
using WeightsNeeded = std::function<void(std::int64_t end)>;

// Forward and backward of a packed batch. The decoder knows no loss: the caller computes a loss
// from the log-probabilities and gives backward its derivatives. Cross-entropy over N targets, for
// example, is sum_m logprob[m] * -1/N, so every dlogprob is -1/N.
//
// Weights, gradients and streams are those of the decoder's device; every span is host memory.
class TrainDecoder {
 public:
  // The error means too little memory. positions_max <= config.max_position_embeddings.
  static Result<TrainDecoder> make(const ModelConfig& config, const TrainLimits& limits,
                                   device::DeviceKind device);
  // Bytes that make() allocates on the device. Its memory on the host is small beside them.
  static std::size_t workspace_bytes(const ModelConfig& config, const TrainLimits& limits,
                                     device::DeviceKind device);
  ~TrainDecoder();
  TrainDecoder(TrainDecoder&&) noexcept;
  TrainDecoder& operator=(TrainDecoder&&) noexcept;

  // Writes (=) logprob[M] and entropy[M], in nats, of the distribution softmax(logits /
  // temperature). Both are complete on return: a call begins and ends by waiting for the stream. An
  // empty `entropy` is not computed. `needed` may be empty if all weights are there.
  void forward(const device::Stream& stream, const Weights& weights, const PackedBatch& batch,
               std::span<float> logprob, std::span<float> entropy,
               const WeightsNeeded& needed = {});

  // For the batch that forward() computed last, with the same weights: adds (+=) to `gradients`,
  // which has the layout of the master weights, the gradient of
  //   sum_m logprob[m] dlogprob[m] + entropy[m] dentropy[m]
  // An empty `dentropy` stands for zeros. Backward may follow a forward at most once, because it
  // overwrites the activations. `weights` must not have been made with WeightsUse::kInference. On a
  // GPU the call may return before the gradients are complete; `dlogprob` and `dentropy` have then
  // been read. `finished` may be empty.
  void backward(const device::Stream& stream, const Weights& weights, const PackedBatch& batch,
                std::span<const float> dlogprob, std::span<const float> dentropy,
                const device::Arena& gradients, const GradientsFinished& finished = {});

 private:
  struct Workspace;
  explicit TrainDecoder(std::unique_ptr<Workspace> workspace);
  std::unique_ptr<Workspace> work_;
};

}  // namespace tandem::model
