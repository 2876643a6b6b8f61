// A question from any thread to NCCL's thread, with a deadline of the asker's own: a thread that
// hangs holds no asker up. Internal to runtime/collective.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/collective/nccl_process.h"

namespace tandem::collective {

// The same moment as the standard library's waits take it.
inline std::chrono::steady_clock::time_point steady_point(Time time) {
  return std::chrono::steady_clock::time_point(Duration(time.ns));
}

// Runs `question` on NCCL's thread and returns its answer. kTimedOut if none comes within `timeout`
// and the thread's grace; the error names `function` and the call under way. An answer that comes
// later is destroyed. NCCL's thread must not call it: it would wait for itself.
template <class Answer>
Result<Answer> ask_nccl(const NcclProcess& process, const char* function, Duration timeout,
                        std::function<Result<Answer>(NcclCalls& calls, Time deadline)> question) {
  // Shared, because the question may run after its asker has given up.
  struct Shared {
    std::mutex mutex;
    std::condition_variable given;
    std::optional<Result<Answer>> answer;
  };
  const auto shared = std::make_shared<Shared>();
  const Time deadline = steady_now() + timeout;
  process.thread->post([shared, deadline, question = std::move(question)](NcclCalls& calls) {
    Result<Answer> answer = question(calls, deadline);
    const std::lock_guard lock(shared->mutex);
    shared->answer = std::move(answer);
    shared->given.notify_all();
  });
  std::unique_lock lock(shared->mutex);
  if (shared->given.wait_until(lock, steady_point(deadline + process.thread->grace()),
                               [&] { return shared->answer.has_value(); }))
    return *std::exchange(shared->answer, std::nullopt);
  return Error{.code = ErrorCode::kTimedOut,
               .message = std::string("timed out in ") + function +
                          "; under way: " + process.thread->under_way(),
               .where = {},
               .help = {}};
}

}  // namespace tandem::collective
