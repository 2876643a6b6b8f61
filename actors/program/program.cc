#include "actors/program/program.h"

#include <iostream>

#include "actors/program/program_host.h"
#include "actors/rank/caged_program.h"
#include "actors/rank/rank_session.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/link/progress.h"
#include "runtime/node/cpu_wait.h"

namespace tandem {
namespace {

// SIGTERM has a grace of its own, after which the agent kills.
constexpr std::int64_t kDrainAtSignalMs = 3'600'000;

int complain(const Error& error) {
  std::cerr << render(error) << "\n";
  return exit_code(error.code);
}

}  // namespace

int Program::run() {
  auto words = rank::words_of_variable();
  if (!words) return complain(words.error());
  link::Progress progress;
  link::Stillness stillness([] { return node::cpu_wait(); });
  auto begun = rank::RankSession::begin(
      std::move(*words), [&] { return stillness.look(progress.report(), steady_now()); });
  if (!begun) return complain(begun.error());
  rank::RankSession& session = **begun;
  // One thread for the user's actor, so that the host answers while a handler computes.
  actor::ThreadedExecutor executor(2, session.words().id.incarnation.value);
  actor::System system(executor,
                       [&](const ActorId& who, const Error& why) { session.failed(who, why); });
  const auto host = system.spawn<program::ProgramHost>("rank", [&] {
    return std::make_unique<program::ProgramHost>(program::ProgramHost::Process{
        .system = system,
        .directory = session.directory(),
        .out = session.to_controller(),
        .classes = classes_,
        .controller = session.controller(),
        .end = [&session](int exit_status) { session.end(exit_status); },
        .sandbox = rank::sandbox_of_this_process(),
        .enter = [&progress](const char* phase, Time now) { progress.enter(phase, now); }});
  });
  session.directory().expose(rank::kRankInboxPort, host);
  session.start();
  session.wait();
  // The first signal from outside drains the actor; the second one ends it at once.
  if (!session.ending() &&
      host.tell(messages::DrainProgram{kDrainAtSignalMs}) == actor::Delivery::kAccepted)
    session.wait();
  log::info("event=program_ending exit_status={}", session.exit_status());
  executor.stop();
  session.close();
  return session.exit_status();
}

}  // namespace tandem
