// A user's program with one actor, as a job file names it.
//
//   {"add": N}    adds N and answers {"total": T}; T begins with the argument `start`
//   {"end": N}    the process ends with code N, without an answer
//   {"hold": {}}  no answer
#include <unistd.h>

#include "actors/program/program.h"

namespace counter {

struct Sum {
  std::int64_t total = 0;
};
TANDEM_WIRE(Sum, total)
struct Add {
  std::int64_t amount = 0;
  using Reply = Sum;
};
TANDEM_WIRE(Add, amount)
struct End {
  std::int64_t code = 0;
  using Reply = Sum;
};
TANDEM_WIRE(End, code)
struct Hold {
  using Reply = Sum;
};
TANDEM_WIRE_EMPTY(Hold)
struct Arguments {
  std::int64_t start = 0;
};
TANDEM_WIRE(Arguments, start)

class Counter {
 public:
  using Inbox = std::variant<tandem::Ask<Add>, tandem::Ask<End>, tandem::Ask<Hold>>;
  explicit Counter(const tandem::ActorStart& start) {
    sum_.total = start.read_args<Arguments>().value().start;
    tandem::log::info("event=counter_up actor={} total={}", start.name, sum_.total);
  }
  void handle(tandem::Context&, tandem::Ask<Add> ask) {
    sum_.total += ask.question.amount;
    ask.reply(sum_);
  }
  void handle(tandem::Context&, tandem::Ask<End> ask) {
    _exit(static_cast<int>(ask.question.code));
  }
  void handle(tandem::Context&, tandem::Ask<Hold> ask) { held_.push_back(ask.reply); }

 private:
  Sum sum_;
  std::vector<tandem::ReplyTo<Sum>> held_;
};

}  // namespace counter

int main() { return tandem::Program().actor<counter::Counter>("counter").run(); }
