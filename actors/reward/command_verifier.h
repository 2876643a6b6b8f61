// Scores by a program of the user's: one long-running child that reads one JSON object per line,
// {"id", "prompt", "completion", "answer", "data", "data_source", "truncated"}, and writes {"id",
// "score"} or {"id", "error"} for each, in any order. A Python function is such a program with our
// runner (python_program.h), which says by a first line that it is ready.
//
// An attempt at an item fails when the program answers "error" or anything that is no score
// (reward_answer.h), when the program stops while this item is the only one in flight, or when the
// item's time has passed. After `retries` more attempts the item is ScoreFailed.
//
// A program that stops or hangs is started again, after a pause that doubles until the program
// scores something. Once it has answered, its starts have no limit. The actor fails
//   kInvalid  when the program was started Config::starts_max times and never answered, or could
//             not be started that many times in a row; this ends the job (restart_budget.h);
//   kFailed   when this machine had no room for the program kCommandStartsRefused times in a row;
//             this restarts the actor.
//
// Invariants
//   CV-1  At most kCommandItemsInFlight items are in flight: written to the child, not answered.
//   CV-2  An item never pays for another one's crash: when a child stops with several items in
//         flight, none of them is charged, and each is tried again alone. Nor does it pay for a
//         child that exits, with code 0, after other answers, or for want of room on the machine.
//         An answer without an id, which is a mistake of the program's, is charged to the item that
//         has been in flight the longest.
//   CV-3  Lines of a child that was given up are not read.
//   CV-4  Each trouble is told (Verifier::report_to) before an item is charged for it.
//
// Time: the child may work on one item after the other, so the k-th item in flight has k times the
// timeout.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/reward/verifier.h"
#include "runtime/node/line_child.h"

namespace tandem::reward {

inline constexpr std::size_t kCommandItemsInFlight = 64;
inline constexpr int kCommandStartsUnanswered = 10;
inline constexpr int kCommandStartsRefused = 120;  // two minutes at the longest pause
inline constexpr int kCommandStartsOfOneLine = 3;  // in a row, of a program that ends after each

// All members run in the actor's turns; lines of the child arrive as turns of the actor.
class CommandVerifier final : public Verifier {
 public:
  // `timeout` is that of one item when no other is in flight. The pauses are those before a
  // restart.
  struct Config {
    node::ChildProgram program;
    Duration timeout{};
    int retries = 0;
    std::string log;       // the file with the program's stderr, for messages; may be empty
    std::string greeting;  // the first line that a child gets; empty: none
    // A child gets items after its first line, which must come within this time; nullopt: at once.
    std::optional<Duration> start_timeout;
    int starts_max = kCommandStartsUnanswered;  // without any answer
    std::string key = "reward.command";         // of the job, for errors
    Duration restart_pause_min = std::chrono::milliseconds(20);
    Duration restart_pause_max = std::chrono::seconds(1);
  };
  CommandVerifier(Config config, node::LineChildSpawner spawn);

  void score(actor::Context& cx, ScoreItem item, Done done) override;
  void report_to(Told told) override { told_ = std::move(told); }

 private:
  struct Attempt {
    std::string line;  // the JSON object, without its id and opening brace
    Done done;
    int failures = 0;
    bool suspect = false;  // it was in flight when a child stopped: it is tried alone
    Duration allowed{};
    actor::TimerId timer{};
  };
  using ItemId = std::uint64_t;

  void pump(actor::Context& cx);
  bool may_send() const;
  void send(actor::Context& cx);
  void start_child(actor::Context& cx);
  void not_ready(actor::Context& cx);  // the child's first line has not come in time
  Attempt take_first();                // of those that wait
  // The spawner returned an Error: kOutOfMemory charges no item, others charge the first one.
  void not_started(actor::Context& cx, const Error& why);
  void heard(actor::Context& cx, const std::string& bytes);
  // Charges the attempt: the item waits for its next one, or is answered by ScoreFailed.
  void attempt_failed(actor::Context& cx, Attempt attempt, const std::string& why);
  void timed_out(actor::Context& cx, ItemId id);
  void ended(actor::Context& cx, const node::ChildEnd& end);
  // Counts a child that ended without an answer. True: there were too many, and the actor fails
  // with `last` as the reason.
  bool given_up(actor::Context& cx, const messages::RewardTrouble& last);
  // Ends the child. The items that are still in flight wait again, uncharged and suspect.
  void drop_child(actor::Context& cx);
  void pause(actor::Context& cx);
  // Reports a trouble. `attempt` is the number of the attempt that failed, 0 if no item is charged.
  messages::RewardTrouble tell(actor::Context& cx, messages::TroubleKind kind, std::string what,
                               int attempt);

  const Config config_;
  const node::LineChildSpawner spawn_;
  Told told_;  // may be empty
  std::unique_ptr<node::LineChild> child_;
  bool ready_ = false;              // the child may get items
  actor::TimerId start_timer_{};    // runs while the child is not ready
  std::uint64_t child_number_ = 0;  // counts children, given-up ones included (CV-3)
  std::uint64_t starts_ = 0;
  int starts_unanswered_ = 0;
  int starts_failed_ = 0, starts_refused_ = 0;  // in a row
  int starts_of_one_line_ = 0;                  // in a row
  bool ever_answered_ = false;
  int answers_of_child_ = 0;
  std::string garbage_of_child_;  // the last line that answered nothing
  ItemId last_id_ = 0;
  std::deque<Attempt> waiting_;
  std::map<ItemId, Attempt> in_flight_;
  Duration restart_pause_;
  bool pausing_ = false;
};

}  // namespace tandem::reward
