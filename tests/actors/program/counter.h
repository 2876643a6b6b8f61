// The actor of the tests of users' programs: it counts, fails on demand, and adds to its peers.
#pragma once

#include "actors/program/program.h"

namespace counter_example {

struct Add {
  std::int64_t amount = 0;
  using Reply = std::int64_t;
};
TANDEM_WIRE(Add, amount)
struct GetTotal {
  using Reply = std::int64_t;
};
TANDEM_WIRE_EMPTY(GetTotal)
struct Scores {
  std::map<std::string, double> by_name;
  std::optional<std::string> note;
};
TANDEM_WIRE(Scores, by_name, note)
struct Describe {
  std::string title;
  std::vector<std::int8_t> limits;
  std::optional<std::string> note;
  using Reply = Scores;
};
TANDEM_WIRE(Describe, title, limits, note)
struct AddToPeer {  // asks the peer, and answers with its total
  std::string peer;
  std::int64_t amount = 0;
  using Reply = std::int64_t;
};
TANDEM_WIRE(AddToPeer, peer, amount)
struct Reset {};
TANDEM_WIRE_EMPTY(Reset)
struct Fail {
  std::string why;
};
TANDEM_WIRE(Fail, why)
struct Finish {};
TANDEM_WIRE_EMPTY(Finish)

struct CounterArgs {
  std::int64_t from = 0;
};
TANDEM_WIRE(CounterArgs, from)

class Counter {
 public:
  using Inbox = std::variant<tandem::Ask<Add>, tandem::Ask<GetTotal>, tandem::Ask<Describe>,
                             tandem::Ask<AddToPeer>, Reset, Fail, Finish>;
  explicit Counter(const tandem::ActorStart& start) : peers_(start.peers) {
    if (start.args.empty()) return;
    const auto args = start.read_args<CounterArgs>();
    if (!args) throw std::runtime_error(args.error().message);
    total_ = args->from;
  }

  void handle(tandem::Context&, const tandem::Ask<Add>& ask) {
    total_ += ask.question.amount;
    ask.reply(total_);
  }
  void handle(tandem::Context&, const tandem::Ask<GetTotal>& ask) { ask.reply(total_); }
  void handle(tandem::Context&, const tandem::Ask<Describe>& ask) {
    ask.reply(Scores{{{ask.question.title, 0.5}}, ask.question.note});
  }
  void handle(tandem::Context& cx, tandem::Ask<AddToPeer> ask) {
    cx.ask(peers_.find<Inbox>(ask.question.peer), Add{ask.question.amount}, std::chrono::seconds(5),
           [reply = ask.reply](tandem::Context&, tandem::Result<std::int64_t> total) {
             reply(std::move(total));
           });
  }
  void handle(tandem::Context&, Reset) { total_ = 0; }
  void handle(tandem::Context&, const Fail& fail) { throw std::runtime_error(fail.why); }
  void handle(tandem::Context& cx, Finish) { cx.stop(); }

 private:
  const tandem::Peers peers_;
  std::int64_t total_ = 0;
};
static_assert(tandem::actor::Actor<Counter>);

}  // namespace counter_example
