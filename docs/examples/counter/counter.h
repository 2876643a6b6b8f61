// An actor that counts. Its messages are plain structs; TANDEM_WIRE lists their fields.
#pragma once

#include <tandem/program.h>

struct Add {
  std::int64_t amount = 0;
  using Reply = std::int64_t;  // the new total
};
TANDEM_WIRE(Add, amount)

struct GetTotal {
  using Reply = std::int64_t;
};
TANDEM_WIRE_EMPTY(GetTotal)

class Counter {
 public:
  using Inbox = std::variant<tandem::Ask<Add>, tandem::Ask<GetTotal>>;

  explicit Counter(const tandem::ActorStart& start) : total_(start.args.value("from", 0)) {}

  void handle(tandem::Context&, tandem::Ask<Add> ask) {
    total_ += ask.question.amount;
    ask.reply(total_);
  }
  void handle(tandem::Context&, tandem::Ask<GetTotal> ask) { ask.reply(total_); }

 private:
  std::int64_t total_;
};
