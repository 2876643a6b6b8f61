// Continuous batching: chooses the tokens that one forward pass computes.
//
// Pure: the same inputs give the same plan. No clock, no lock, no GPU, no allocation of pages; the
// caller (actors/rollout) applies the plan. Priority is the due step, earliest first, then arrival.
// Decoding comes first, so that running sequences never stall behind a long prompt; prompts fill
// the rest of the pass, in priority order, in chunks.
//
// A group's prompt is one waiting sequence. Once it is prefilled the caller forks its page table
// into n sequences, each with its first sampled token pending, and puts those that follow the first
// into `waiting` with the group's due and arrival: they hold the shared pages and enter as slots
// and pages allow.
//
// SP-1  A plan keeps the limits.
// SP-2  Progress: where any sequence is unfinished, a plan runs or evicts at least one, and the
//       running sequence of highest priority is never evicted.
// SP-3  No overtaking: a waiting sequence starts only if all of higher priority have started.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.h"

namespace tandem::scheduler {

using SequenceId = Id<struct SequenceTag>;

struct StepLimits {
  std::int32_t tokens_max;     // tokens one forward pass may compute
  std::int32_t sequences_max;  // sequences one forward pass may hold
  std::int32_t pages_free;     // KV pages that allocation can give: PagePool::available()
  std::int32_t page_tokens;    // tokens one KV page holds
};

// A sequence with `tokens_cached` tokens in the KV cache and `tokens_pending` still to compute.
// A decoding sequence has exactly one pending token: the one sampled last.
struct Sequence {
  SequenceId id;
  StepId due;                 // when its group is due
  std::uint64_t arrival = 0;  // its group's place in the order of arrival at this engine
  std::int32_t tokens_cached = 0;
  std::int32_t tokens_pending = 1;
  std::int32_t pages_alone = 0;  // pages freed if it is evicted: pages_alone()
  bool tail_shared = false;      // its next token needs a copy of its last page: tail_shared()
};

struct Slice {
  SequenceId id;
  std::int32_t tokens;     // how many pending tokens to compute in this step, >= 1
  std::int32_t pages_new;  // pages it needs first, a copied one included; at most, since siblings
                           // that leave a shared page spare the last one its copy
};

struct StepPlan {
  std::vector<SequenceId> evict;  // give back their pages before anything else; they start again
                                  // from their first token (recompute), in `waiting`
  std::vector<Slice> run;         // decodes first, then prompt chunks
};

// `running`: started and unfinished, in any order; `waiting`: the others, in any order. When pages
// run out, the sequence of lowest priority is evicted for a decode: first of those that wait and
// hold pages, then of those that run. A sequence that finds no room, and none below it to evict,
// stands still for the step. Precondition: no sequence can outgrow the whole pool; admission
// rejects those.
StepPlan plan_step(std::span<const Sequence> running, std::span<const Sequence> waiting,
                   const StepLimits& limits);

}  // namespace tandem::scheduler
