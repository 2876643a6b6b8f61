// A user's program with one actor, as a job file names it.
//
//   {"add": N}    adds N and answers {"total": T}; T begins with the argument `start`
//   {"end": N}    the process ends with code N, without an answer
//   {"hold": {}}  no answer
//   {"look": F}   answers how many entries the folder F has
//   {"call": {}}  answers 1 if a socket to other hosts can be made
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

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
struct Look {
  std::string folder;
  using Reply = Sum;
};
TANDEM_WIRE(Look, folder)
struct Call {
  using Reply = Sum;
};
TANDEM_WIRE_EMPTY(Call)
struct Arguments {
  std::int64_t start = 0;
};
TANDEM_WIRE(Arguments, start)

class Counter {
 public:
  using Inbox = std::variant<tandem::Ask<Add>, tandem::Ask<End>, tandem::Ask<Hold>,
                             tandem::Ask<Look>, tandem::Ask<Call>>;
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
  void handle(tandem::Context&, tandem::Ask<Look> ask) {
    std::error_code failed;
    Sum entries;
    for (const auto& entry : std::filesystem::directory_iterator(ask.question.folder, failed))
      entries.total += entry.path().empty() ? 0 : 1;
    ask.reply(entries);
  }
  void handle(tandem::Context&, tandem::Ask<Call> ask) {
    const int socket_made = socket(AF_INET, SOCK_STREAM, 0);
    if (socket_made >= 0) close(socket_made);
    ask.reply(Sum{socket_made >= 0 ? 1 : 0});
  }

 private:
  Sum sum_;
  std::vector<tandem::ReplyTo<Sum>> held_;
};

}  // namespace counter

int main() {
  return tandem::Program().actor<counter::Counter>("counter").actor<counter::Counter>("open").run();
}
