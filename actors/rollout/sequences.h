// The sequences that a native engine has started and not finished, with their keys and values:
// which pages each one reads, which of them a plan may move, and what happens when one ends, forks,
// is evicted, or has to be computed anew. Knows nothing of weights, logits or events. One thread.
//
// SQ-1  A page is held by tables of live sequences and by the prefix cache alone; when no sequence
//       lives and nothing is cached, every page is free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actors/rollout/completion.h"
#include "actors/rollout/sequence_times.h"
#include "actors/rollout/work_queue.h"
#include "kernels/ops/kv_cache.h"
#include "scheduler/batch/page_pool.h"
#include "scheduler/batch/prefix_cache.h"
#include "scheduler/batch/step_plan.h"

namespace tandem::rollout {

// A request whose completions are being generated.
struct OpenRequest {
  Request request;
  std::uint64_t arrival = 0;
  std::vector<messages::Trajectory> trajectories;  // [n], each set when its sequence ends
  std::int32_t unfinished = 0;
  bool cancelled = false;
};

// One completion of a request. A request begins with one sequence, its leader, which computes the
// prompt; the others are forked from it and share the pages of the prompt.
//
// Lengths: `tokens` are known to the host; `ahead` more are being drawn on the device; of all of
// them the keys and values of the first `cached` are in pages, and the others are pending.
struct RunningSequence {
  std::shared_ptr<OpenRequest> open;
  std::size_t index = 0;   // the trajectory's index
  std::uint64_t seed = 0;  // the seed of the trajectory's draws
  Completion completion;
  std::vector<std::int32_t> tokens;  // prompt and completion, as far as the host knows them
  std::int32_t ahead = 0;            // tokens beyond these that are being drawn
  std::int32_t draw = 0;             // the place of the last such token among those drawn with it
  std::int32_t cached = 0;           // tokens whose keys and values are, or will be, in `table`
  scheduler::PageTable table;
  PolicyVersion kv_oldest;  // the oldest version that computed a cached key or value
  bool started = false;     // a plan has run it since its keys and values began
  bool leads = false;       // the others of its request fork from it when its prompt is computed
  bool ended = false;
  SequenceTimes times;

  // All tokens of the sequence, those that are being drawn included.
  std::int32_t length() const { return static_cast<std::int32_t>(tokens.size()) + ahead; }
  // Tokens whose keys and values no step has computed.
  std::int32_t pending() const { return length() - cached; }
  std::int32_t prompt_length() const {
    return static_cast<std::int32_t>(open->request.prompt_tokens.size());
  }
};

// Owns the page pool, the prefix cache and all live sequences of an engine. A RunningSequence is
// shared with the engine's draws, so that one that was cancelled meanwhile still exists, with
// `ended` set.
class Sequences {
 public:
  struct Config {
    std::int32_t pages = 0;
    std::int32_t page_tokens = 0;
    std::int32_t sequences_max = 0;  // in one step
    std::int32_t tokens_max = 0;     // computed in one step
    bool prefix_caching = true;
  };
  explicit Sequences(const Config& config);

  // Starts a request with its first sequence; the other sequences follow by fork(). Cached pages of
  // the prompt that `version` computed are used again.
  void open(Request request, PolicyVersion version, Completion completion);
  // The other sequences of the request that `leader` leads. They share the leader's pages and begin
  // with the completion `fresh`. CHECKs that the whole prompt is computed.
  std::vector<std::shared_ptr<RunningSequence>> fork(RunningSequence& leader,
                                                     const Completion& fresh);

  // One sequence of a step, and how many of its pending tokens the step computes.
  struct Part {
    std::shared_ptr<RunningSequence> sequence;
    std::int32_t tokens = 0;
  };
  // A step with every page that it writes already allocated and its victims already evicted. A
  // sequence whose last token is being drawn gives its pages back and is left out.
  struct Work {
    std::vector<Part> parts;
    std::vector<kernels::PageCopy> copies;  // to be done first
  };
  const Work& plan();  // valid until the next call
  // Says that `version` has computed `part`, or that this is queued on the device.
  void computed(const Part& part, PolicyVersion version);

  void end(RunningSequence& sequence);  // frees its pages; drop_ended() removes it
  void drop_ended();
  // Ends the sequences that `which` picks; returns their requests, once each.
  std::vector<std::shared_ptr<OpenRequest>> cancel(
      const std::function<bool(const Request&)>& which);

  enum class Pages : std::uint8_t { kKeep, kRecompute };
  // Forgets cached prefixes that another version computed. kRecompute also frees the pages of
  // running sequences, which are then computed again from their first token.
  void version_changed(PolicyVersion from, PolicyVersion to, Pages pages);

  bool empty() const { return live_.empty(); }
  std::int64_t open_count() const { return open_; }  // unfinished trajectories, unforked included
  std::int64_t started_count() const;
  // Of the groups that are open, the one that is due first, and the tokens of its shortest
  // unfinished completion; none where no group is open.
  std::optional<std::pair<GroupId, std::int32_t>> first_group() const;
  std::uint64_t preemptions() const { return preemptions_; }
  const scheduler::PagePool& pool() const { return pool_; }
  const scheduler::PrefixCache& cache() const { return cache_; }

 private:
  void give_back(RunningSequence& sequence);  // frees its pages: it starts again from token 0
  // Allocates the pages for `tokens` more, and copies a shared last page that they would write to.
  void make_room(RunningSequence& sequence, std::int32_t tokens);

  const Config config_;
  scheduler::PagePool pool_;
  scheduler::PrefixCache cache_;
  std::vector<std::shared_ptr<RunningSequence>> live_;
  std::uint64_t arrivals_ = 0;
  std::int64_t open_ = 0;
  std::uint64_t preemptions_ = 0;
  Work work_;
  std::vector<scheduler::Sequence> running_, waiting_;  // scratch of plan()
};

}  // namespace tandem::rollout
