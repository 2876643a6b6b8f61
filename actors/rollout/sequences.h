// The sequences that a native engine has started and not finished, with their keys and values:
// which pages each reads, which a plan may move, and what happens to them when one ends, forks, is
// evicted, or has to be computed anew. Knows nothing of weights, logits or events.
//
// SQ-1  A page is held by tables of live sequences and by the prefix cache alone; when none lives
//       and nothing is cached every page is free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/rollout/completion.h"
#include "actors/rollout/sequence_times.h"
#include "actors/rollout/work_queue.h"
#include "kernels/ops/kv_cache.h"
#include "scheduler/batch/page_pool.h"
#include "scheduler/batch/prefix_cache.h"
#include "scheduler/batch/step_plan.h"

namespace tandem::actors {

// A request whose completions are being generated.
struct OpenRequest {
  Request request;
  std::uint64_t arrival = 0;
  std::vector<Trajectory> trajectories;  // [n], each set when its sequence ends
  std::int32_t unfinished = 0;
  bool cancelled = false;
};

struct RunningSequence {
  std::shared_ptr<OpenRequest> open;
  std::size_t index = 0;   // of the trajectory
  std::uint64_t seed = 0;  // of its draws
  Completion completion;
  std::vector<std::int32_t> tokens;  // prompt and completion, as far as the host knows them
  std::int32_t ahead = 0;            // tokens beyond these that are being drawn
  std::int32_t draw = 0;             // of the last of these: its place among what is drawn with it
  std::int32_t cached = 0;           // tokens whose keys and values are, or will be, in `table`
  scheduler::PageTable table;
  PolicyVersion kv_oldest;  // of what is cached
  bool started = false;     // a plan has run it since its keys and values began
  bool leads = false;       // the others of its request fork from it when its prompt is computed
  bool ended = false;
  SequenceTimes times;

  std::int32_t length() const { return static_cast<std::int32_t>(tokens.size()) + ahead; }
  std::int32_t pending() const { return length() - cached; }
  std::int32_t prompt_length() const {
    return static_cast<std::int32_t>(open->request.prompt_tokens.size());
  }
};

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

  // The first sequence of a request; the others follow by fork().
  void open(Request request, PolicyVersion version, Completion completion);
  // The others of the request that `leader` leads, with the leader's pages and no completion yet.
  std::vector<std::shared_ptr<RunningSequence>> fork(RunningSequence& leader,
                                                     const Completion& fresh);

  // What the next step computes, with every page it writes allocated and its victims evicted. A
  // sequence whose last token is being drawn gives its pages back and is left out.
  struct Part {
    std::shared_ptr<RunningSequence> sequence;
    std::int32_t tokens = 0;  // of the pending ones
  };
  struct Work {
    std::vector<Part> parts;
    std::vector<kernels::PageCopy> copies;  // to be done first
  };
  const Work& plan();  // valid until the next call
  // `part` has been computed by `version`.
  void computed(const Part& part, PolicyVersion version);

  void end(RunningSequence& sequence);  // gives its pages back; it leaves with drop_ended()
  void drop_ended();
  // Ends the sequences that `which` picks; returns their requests, once each.
  std::vector<std::shared_ptr<OpenRequest>> cancel(
      const std::function<bool(const Request&)>& which);

  enum class Pages : std::uint8_t { kKeep, kRecompute };
  void version_changed(PolicyVersion from, PolicyVersion to, Pages pages);

  bool empty() const { return live_.empty(); }
  std::int64_t open_count() const { return open_; }  // unfinished trajectories, unforked included
  std::int64_t started_count() const;
  std::uint64_t preemptions() const { return preemptions_; }
  const scheduler::PagePool& pool() const { return pool_; }
  const scheduler::PrefixCache& cache() const { return cache_; }

 private:
  void give_back(RunningSequence& sequence);  // to be computed from its first token
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

}  // namespace tandem::actors
