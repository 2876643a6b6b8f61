// Scores by a program of the user's: one long-lived child that reads one JSON object per line,
// {"id", "prompt", "completion", "answer", "data", "truncated"}, and writes {"id", "score"} or
// {"id", "error"} for each, in any order.
//
// An attempt fails when the program says "error" or something that is no score, when it stops while
// this item alone was in its hands, or when the item's time has passed. After `retries` more
// attempts the item is ScoreFailed. A program that stops or hangs is started again after a pause
// that grows until it scores something. The actor fails (kInvalid) when the program has never
// answered anything in kCommandLivesUnanswered lives, or could not be started so many times in a
// row; where this machine had no room for it kCommandStartsRefused times in a row, by kFailed.
//
// Invariants
//   CV-1  At most kCommandItemsInFlight items are in the child's hands.
//   CV-2  An item never pays for another one's crash: when a child stops with several items in its
//         hands, none of them is charged, and each is tried again alone. Nor does it pay for a
//         child that exits, with code 0, after other answers, or for want of room on the machine.
//   CV-3  What a child says after it was given up is not heard.
//   CV-4  Each trouble is told (Verifier::report_to) before an item is charged for it.
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
inline constexpr int kCommandStartsRefused = 120;  // two minutes at the longest pause
inline constexpr int kCommandLivesOfOneLine = 3;   // in a row, of a program that ends after each

class CommandVerifier final : public Verifier {
 public:
  struct Config {
    ChildProgram program;
    Duration timeout{};
    int retries = 0;
    std::string log;  // for messages; may be empty
    Duration restart_pause_min = std::chrono::milliseconds(20);
    Duration restart_pause_max = std::chrono::seconds(1);
  };
  CommandVerifier(Config config, LineChildSpawner spawn);

  void score(runtime::Context& cx, ScoreItem item, Done done) override;
  void report_to(Told told) override { told_ = std::move(told); }

 private:
  struct Attempt {
    std::string line;  // the JSON object, without its id and opening brace
    Done done;
    int failures = 0;
    bool suspect = false;  // it was in the hands of a child that stopped: tried alone
    Duration allowed{};
    runtime::TimerId timer{};
  };
  using ItemId = std::uint64_t;

  void pump(runtime::Context& cx);
  bool may_send() const;
  void send(runtime::Context& cx);
  void start_child(runtime::Context& cx);
  void not_started(runtime::Context& cx, const Error& why);
  void heard(runtime::Context& cx, const std::string& bytes);
  void attempt_failed(runtime::Context& cx, Attempt attempt, const std::string& why);
  void timed_out(runtime::Context& cx, ItemId id);
  void ended(runtime::Context& cx, const ChildEnd& end);
  // The child is gone or given up: its items are tried again, after a pause. True: the actor fails,
  // for the program has never answered.
  bool given_up(runtime::Context& cx, const RewardTrouble& last);
  void drop_child(runtime::Context& cx);
  void pause(runtime::Context& cx);
  // Tells the trouble; `attempt` is the one that failed, 0 where none is charged.
  RewardTrouble tell(runtime::Context& cx, TroubleKind kind, std::string what, int attempt);

  const Config config_;
  const LineChildSpawner spawn_;
  Told told_;  // may be empty
  std::unique_ptr<LineChild> child_;
  std::uint64_t life_ = 0;  // of the child (CV-3)
  std::uint64_t starts_ = 0;
  int lives_unanswered_ = 0;
  int starts_failed_ = 0, starts_refused_ = 0;  // in a row
  int lives_of_one_line_ = 0;                   // in a row
  bool ever_answered_ = false;
  int answers_of_life_ = 0;
  std::string garbage_of_life_;  // the last line that answered nothing
  ItemId last_id_ = 0;
  std::deque<Attempt> waiting_;
  std::map<ItemId, Attempt> in_flight_;
  Duration restart_pause_;
  bool pausing_ = false;
};

}  // namespace tandem::actors
