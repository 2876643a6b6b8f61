// The requests that an engine has not started, in the order of their starts, and the rule for when
// the engine's weights may change. No arithmetic and no model: every engine uses this queue.
//
// A request is *pinned* if one version must generate it whole (evaluations; groups under
// fixed_lag), else *free*.
//
// Invariants
//   WQ-1  A pinned request starts at its version only, and that version stays until it has ended.
//   WQ-2  A free request never starts at a version below the highest that was installed: the
//         staleness budget dates it by that one.
//   WQ-3  Free requests survive an update to a newer version if partial_rollout, and none else.
//   WQ-4  Nothing overtakes the first request whose version is on offer, so each gets its turn,
//         but for WQ-5.
//   WQ-5  Evaluations that run with `evaluation_seqs` completions or more let a group start that
//         the installed version may start. Where there is none, they take what is free.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"
#include "actors/rollout/engine.h"
#include "runtime/base/rng.h"

namespace tandem::rollout {

// Which lease of which group a request belongs to.
struct GroupKey {
  GroupId group;
  std::uint32_t attempt = 0;
  bool operator==(const GroupKey&) const = default;
};

struct EvaluationKey {
  std::uint64_t part = 0;  // the Evaluate message: an evaluation may come in several
  std::int32_t index = 0;
  bool operator==(const EvaluationKey&) const = default;
};

// One prompt and its n completions, of a group or of an evaluation.
struct Request {
  std::variant<GroupKey, EvaluationKey> key;
  StepId due;                           // set for a group
  std::optional<PolicyVersion> pinned;  // nullopt: the request is free
  std::int32_t n = 1;
  std::uint64_t seed = 0;
  std::string prompt;
  std::vector<std::int32_t> prompt_tokens;  // empty where the engine has no tokenizer
  Time submitted;                           // to the engine; decides nothing
  // Set for an evaluation only; a group is sampled as the engine's configuration says.
  messages::EvaluationSampling sampling;

  bool of_evaluation() const { return std::holds_alternative<EvaluationKey>(key); }
  std::uint64_t trajectory_seed(std::size_t index) const { return derive_seed(seed, {index}); }
};

Request request_of(messages::GroupWork work);
// The request for one `prompt` of the message `of`, whose other prompts do not matter.
Request request_of(const messages::Evaluate& of, std::uint64_t part,
                   messages::EvaluationPrompt prompt);

// The engine tells the queue what it starts and ends; the queue answers what may start and when the
// weights may change. One thread.
class WorkQueue {
 public:
  explicit WorkQueue(bool partial_rollout, std::int64_t evaluation_seqs = kNoBound)
      : partial_rollout_(partial_rollout), evaluation_seqs_(evaluation_seqs) {}

  void push(Request request);
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  std::int64_t sequences() const { return sequences_; }  // the sequences of all waiting requests

  // The request that may start now; nullptr if there is none. The pointer is valid until the next
  // call that changes the queue. take() removes this request and counts it as running; it CHECKs
  // that there is one.
  const Request* next() const;
  Request take();
  void ended(const Request& request);  // a taken request is complete or was cancelled

  // Removes the waiting requests that `which` picks, in order.
  std::vector<Request> remove(const std::function<bool(const Request&)>& which);

  // The members below keep the contracts of Engine's members of the same names. finish_update()
  // CHECKs may_finish_update() and returns the version that is installed from then on.
  std::optional<PolicyVersion> version() const { return version_; }
  std::optional<PolicyVersion> wants(const VersionOffer& offer);
  void begin_update(PolicyVersion version) { pending_ = version; }
  bool may_finish_update() const;
  PolicyVersion finish_update();

 private:
  // Orders by (evaluations first, due step, arrival).
  struct Earlier {
    bool operator()(const std::pair<Request, std::uint64_t>& a,
                    const std::pair<Request, std::uint64_t>& b) const;
  };
  using Waiting = std::multiset<std::pair<Request, std::uint64_t>, Earlier>;

  bool on_offer(PolicyVersion version) const { return offered_ && version <= *offered_; }
  // The first request whose version can be had; end() if there is none.
  Waiting::const_iterator first() const;
  // The request that may start now; end() if there is none.
  Waiting::const_iterator startable() const;
  // Whether the installed version may start this request now. CHECKs that one is installed.
  bool may_start(const Request& request) const;
  // Whether running free requests must end before the weights change to `target`.
  bool drains_free(PolicyVersion target) const;

  static constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

  const bool partial_rollout_;
  const std::int64_t evaluation_seqs_;
  Waiting waiting_;
  std::uint64_t arrivals_ = 0;      // requests pushed so far; their numbers break ties
  std::int64_t sequences_ = 0;      // completions of the waiting requests
  bool groups_are_pinned_ = false;  // the group that came last was pinned

  std::int64_t running_pinned_ = 0;  // pinned requests that were taken and have not ended
  std::int64_t running_free_ = 0;
  std::int64_t running_evaluation_seqs_ = 0;  // completions of the evaluations among the pinned
  std::optional<PolicyVersion> version_;
  std::optional<PolicyVersion> version_high_;  // the highest that was installed (WQ-2)
  std::optional<PolicyVersion> pending_;       // the version that begin_update() named
  std::optional<PolicyVersion> offered_;       // the newest that wants() heard of
};

// Collects the completions of each Evaluate message until all of its prompts are answered. One
// thread.
class OpenEvaluations {
 public:
  // Calls `submit` with a request for each prompt. A message without prompts is done at once.
  void open(messages::Evaluate evaluation, const std::function<void(Request)>& submit);
  // Each prompt is answered once, by completed() or unservable(); both CHECK that the key is open.
  void completed(const EvaluationKey& key, std::vector<messages::Trajectory> trajectories);
  void unservable(const EvaluationKey& key);
  void clear() { open_.clear(); }
  std::vector<EvaluationDone> take_done() { return std::exchange(done_, {}); }

 private:
  struct Open {
    std::size_t prompts_left = 0;
    EvaluationDone done;
  };
  void answered(std::map<std::uint64_t, Open>::iterator open);  // counts one answered prompt

  std::map<std::uint64_t, Open> open_;  // by part
  std::uint64_t part_last_ = 0;
  std::vector<EvaluationDone> done_;
};

}  // namespace tandem::rollout
