// A user's program without the library for such programs: it speaks the conversation of
// actors/messages/program.h over a link, so that the controller's side is tested by itself.
//
//   {"add": N}    adds N and answers {"total": T}; T begins with the argument `start`
//   {"end": N}    the process ends with code N, without an answer
//   {"hold": 0}   no answer
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "actors/messages/program.h"
#include "actors/messages/rank.h"
#include "actors/messages/wire_build.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/net/link.h"
#include "runtime/net/remote.h"
#include "runtime/node/process_host.h"

namespace tandem {
namespace {

class Counter {
 public:
  using Inbox = actors::ProgramInbox;
  explicit Counter(runtime::Ref<actors::RankEvents> controller)
      : controller_(std::move(controller)) {}

  void handle(runtime::Context&, actors::StartActor start) {
    total_ = parse_json(start.args_json).value("start", 0);
    log::info("event=counter_up actor={} replicas={} args={}", start.actor, start.replicas,
              start.args_json);
    CHECK(controller_.tell(actors::RankReady{start.actor, start.incarnation, 0}) ==
          runtime::Delivery::kAccepted);
  }
  void handle(runtime::Context&, runtime::Ask<actors::AskJson> ask) {
    const nlohmann::json question = parse_json(ask.question.body);
    if (question.contains("hold")) return void(held_.push_back(ask.reply));
    if (question.contains("end")) _exit(question["end"].get<int>());
    if (!question.contains("add"))
      return ask.reply(Error{ErrorCode::kInvalid, "a counter only adds", "question", "ask add"});
    total_ += question["add"].get<int>();
    ask.reply(actors::AskedJson{nlohmann::json{{"total", total_}}.dump()});
  }
  void handle(runtime::Context&, actors::DrainProgram) {
    log::info("event=drained total={}", total_);
    ::kill(getpid(), SIGTERM);
  }

 private:
  const runtime::Ref<actors::RankEvents> controller_;
  int total_ = 0;
  std::vector<runtime::ReplyTo<actors::AskedJson>> held_;
};

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words(1);
  for (const char* c = text; *c; ++c)
    *c == runtime::kActorWordSeparator ? void(words.emplace_back()) : words.back().push_back(*c);
  return words;
}

int serve(const std::vector<std::string>& words) {
  const std::string& actor = words.at(0);
  const auto at = runtime::parse_endpoint(words.at(3));
  if (!at || !runtime::arm_parent_death_signal(std::atoi(words.at(6).c_str()))) return 2;
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
  init_logging(actor, LogLevel::kInfo);

  runtime::Directory directory;
  runtime::IoThread io("link");
  runtime::ThreadedExecutor executor(1, 1);
  runtime::LinkClient* link_pointer = nullptr;
  const runtime::ParcelSender to_controller = [&](std::string frame) {
    return link_pointer->send(std::move(frame));
  };
  runtime::System system(executor, [](const runtime::Address&, const Error&) { std::_Exit(1); });
  const auto counter = system.spawn<Counter>("counter", [&] {
    return std::make_unique<Counter>(
        directory.remote<actors::RankEvents>({"controller/ranks", {}}, to_controller));
  });
  directory.expose("rank", counter);
  runtime::LinkCallbacks callbacks;
  callbacks.on_parcel = [&](const runtime::PeerId&, std::string& frame) {
    return directory.deliver(frame, to_controller);
  };
  callbacks.on_up = [](const runtime::PeerId&, const runtime::Hello&) {};
  callbacks.on_down = [](const runtime::PeerId&, const runtime::Down&) { std::_Exit(1); };
  runtime::LinkClient link(
      io, {*at, std::nullopt},
      {.name = actor,
       .incarnation = Incarnation{std::strtoull(words.at(1).c_str(), nullptr, 10)},
       .build = actors::wire_build(),
       .opaque = actor},
      {}, callbacks);
  link_pointer = &link;
  link.start();
  int signal = 0;
  sigwait(&terminate, &signal);
  executor.stop();
  link.close(std::chrono::milliseconds(200));
  return 0;
}

}  // namespace
}  // namespace tandem

int main() {
  const char* const words = std::getenv(tandem::runtime::kActorVariable);
  return words ? tandem::serve(tandem::words_of(words)) : 64;
}
