// A board and players that find it by name. Each player throws a die every tenth of a second of the
// executor's time and tells the board its sum. A player with the argument `stumbles_at` fails once
// when its sum gets there; its next incarnation asks the board where it was and goes on.
#pragma once

#include <tandem/program.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>

namespace scoreboard {

struct Post {
  std::string player;
  std::int64_t sum = 0;
};
TANDEM_WIRE(Post, player, sum)

struct GetSum {
  std::string player;
  using Reply = std::int64_t;
};
TANDEM_WIRE(GetSum, player)

struct Standings {
  std::map<std::string, std::int64_t> sums;
};
TANDEM_WIRE(Standings, sums)
struct GetStandings {
  using Reply = Standings;
};
TANDEM_WIRE_EMPTY(GetStandings)

class Board {
 public:
  using Inbox = std::variant<Post, tandem::Ask<GetSum>, tandem::Ask<GetStandings>>;

  void handle(tandem::Context&, Post post) { standings_.sums[post.player] = post.sum; }
  void handle(tandem::Context&, tandem::Ask<GetSum> ask) {
    const auto found = standings_.sums.find(ask.question.player);
    ask.reply(found == standings_.sums.end() ? 0 : found->second);
  }
  void handle(tandem::Context&, tandem::Ask<GetStandings> ask) { ask.reply(standings_); }

 private:
  Standings standings_;
};

class Player {
 public:
  using Inbox = std::variant<tandem::Ask<GetStandings>>;

  explicit Player(const tandem::ActorStart& start)
      : name_(start.role + "/" + std::to_string(start.index)),
        board_(start.peers.find<Board::Inbox>("board/0")),
        stumbles_at_(start.args.value("stumbles_at", 0)) {}

  // Called before the first message.
  void start(tandem::Context& cx) { resume(cx); }

  void handle(tandem::Context&, tandem::Ask<GetStandings> ask) {
    ask.reply(Standings{{{name_, sum_}}});
  }

 private:
  // Takes up the sum that the board knows. The board may be starting too, so that it is asked until
  // it answers.
  void resume(tandem::Context& cx) {
    cx.ask(board_, GetSum{name_}, std::chrono::seconds(1),
           [this](tandem::Context& then, tandem::Result<std::int64_t> sum) {
             if (!sum) {
               then.after(std::chrono::milliseconds(100),
                          [this](tandem::Context& later) { resume(later); });
               return;
             }
             sum_ = *sum;
             throw_die(then);
           });
  }

  void throw_die(tandem::Context& cx) {
    const std::int64_t before = sum_;
    sum_ += 1 + static_cast<std::int64_t>(cx.rng().below(6));
    // A told message is at most once: the next one has the newer sum.
    (void)board_.tell(Post{name_, sum_});
    if (before < stumbles_at_ && sum_ >= stumbles_at_) {
      // The failure comes after the message has had time to leave.
      cx.after(std::chrono::milliseconds(100),
               [](tandem::Context&) { throw std::runtime_error("stumbled"); });
      return;
    }
    cx.after(std::chrono::milliseconds(100), [this](tandem::Context& later) { throw_die(later); });
  }

  const std::string name_;
  const tandem::Ref<Board::Inbox> board_;
  const std::int64_t stumbles_at_;
  std::int64_t sum_ = 0;
};

inline tandem::Program program() {
  return tandem::Program().actor<Board>("board").actor<Player>("player").actor<Player>("stumbler");
}

}  // namespace scoreboard
