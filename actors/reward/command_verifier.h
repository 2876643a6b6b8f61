// Scores by a program of the user's: one long-lived child that reads one JSON object per line,
// {"id", "prompt", "completion", "answer", "data", "truncated"}, and writes {"id", "score"} or
// {"id", "error"} for each, in any order.
//
// An attempt fails when the program says "error" or something that is no score, when it stops while
// this item alone was in its hands, or when the item's time has passed. After `retries` more
// attempts the item is ScoreFailed. A program that stops or hangs is started again after a pause
// that grows until it scores something; one that has never answered anything is given up after
// kCommandLivesUnanswered lives, and the actor fails (kInvalid).
//
// Invariants
//   CV-1  At most kCommandItemsInFlight items are in the child's hands.
//   CV-2  An item never pays for another one's crash: when a child stops with several items in its
//         hands, none of them is charged, and each is tried again alone.
//   CV-3  What a child says after it was given up is not heard.
//
// Time: the child may work on one item after the other, so the k-th in its hands has k times the
// timeout.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/reward/line_child.h"
#include "actors/reward/verifier.h"

namespace tandem::actors {

inline constexpr std::size_t kCommandItemsInFlight = 64;
inline constexpr int kCommandLivesUnanswered = 10;

class CommandVerifier final : public Verifier {
 public:
  struct Config {
    std::vector<std::string> argv;
    Duration timeout{};
    int retries = 0;
    Duration restart_pause_min = std::chrono::milliseconds(20);
    Duration restart_pause_max = std::chrono::seconds(1);
  };
  CommandVerifier(Config config, LineChildSpawner spawn);

  void score(runtime::Context& cx, ScoreItem item, Done done) override;

 private:
  struct Attempt {
    std::string line;  // the JSON object, without its id and opening brace
    Done done;
    int failures = 0;
    bool suspect = false;  // it was in the hands of a child that stopped: tried alone
    runtime::TimerId timer{};
  };
  using ItemId = std::uint64_t;

  void pump(runtime::Context& cx);
  bool may_send() const;
  void send(runtime::Context& cx);
  void start_child(runtime::Context& cx);
  void heard(runtime::Context& cx, const std::string& line);
  void settle(runtime::Context& cx, std::map<ItemId, Attempt>::iterator item,
              TrajectoryScore score);
  void attempt_failed(runtime::Context& cx, Attempt attempt, const std::string& why);
  void timed_out(runtime::Context& cx, ItemId id);
  // The child is gone or given up: its items are tried again, after a pause.
  void child_stopped(runtime::Context& cx, const std::string& why);

  const Config config_;
  const LineChildSpawner spawn_;
  std::unique_ptr<LineChild> child_;
  std::uint64_t life_ = 0;  // of the child (CV-3)
  int lives_unanswered_ = 0;
  bool ever_answered_ = false;
  ItemId last_id_ = 0;
  std::deque<Attempt> waiting_;
  std::map<ItemId, Attempt> in_flight_;
  Duration restart_pause_;
  bool pausing_ = false;
};

}  // namespace tandem::actors
