// The one thread of a process that calls NCCL, and the watchdog that notices when a call does not
// return. NCCL's calls may block where they are documented not to, ncclCommAbort included, and a
// thread that hangs in one cannot be freed: then the process must end, with the name of the call in
// its log, so that whoever started the process can start it again.
//
// Not responsible for: which calls are made and what their results mean (nccl_communicator.h).
//
// Invariants
//   NH-1  Only functions that this thread runs have an NcclCalls: calls of NCCL are made on it and
//         nowhere else, one at a time.
//   NH-2  A call that has not returned by its limit is reported once, with its name, within half of
//         the grace; no other thread waits for the hung one any more, the destructor included.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/collective/nccl_api.h"

namespace tandem::collective {

// How much later than its deadline a call of ours may end when NCCL itself holds it up. Generous:
// the first call of NCCL creates CUDA's context.
inline constexpr Duration kNcclGrace = std::chrono::seconds(20);

// A call that has not returned by its limit.
struct StuckNcclCall {
  std::string name;  // "ncclCommAbort of job/weights, epoch 3, rank 1 of 4"
  Time since;
};
using OnStuck = std::function<void(const StuckNcclCall&)>;

// Logs the call and ends the process at once, without destructors, which could hang as well.
[[noreturn]] void end_process(const StuckNcclCall& call);

// Shorter grace and another on_stuck are for tests.
struct NcclThreadOptions {
  Duration grace = kNcclGrace;
  OnStuck on_stuck = end_process;  // on the watchdog's thread or the thread itself
};

class NcclThread;

// The right to call NCCL. Only functions that the thread runs are given one (NH-1).
class NcclCalls {
 public:
  // Makes one call and returns its result. `function` is a literal; `owner` completes its name ("…
  // of OWNER") and must outlive the call. After `limit` the watchdog reports the call (NH-2).
  NcclResult operator()(const char* function, const std::string& owner, Time limit,
                        const std::function<NcclResult()>& call);
  // The same for CUDA's functions on the streams that NCCL uses.
  void run(const char* function, const std::string& owner, Time limit,
           const std::function<void()>& call);
  // Reports something other than a call that does not end: a stream after an abort.
  void report(const std::string& name, Time since);

  Duration grace() const;
  // The limit of a call that NCCL should answer at once.
  Time soon() const { return steady_now() + grace() / 2; }

 private:
  friend class NcclThread;
  struct State;
  explicit NcclCalls(State& state) : state_(state) {}

  State& state_;
};

// The answer of a function that the thread calls repeatedly (poll()).
enum class NcclPolled {
  kWaiting,  // for NCCL: ask again soon
  kIdle,     // for its owner: ask again after something was posted
  kEnded,    // never ask again
};

class NcclThread {
 public:
  explicit NcclThread(NcclThreadOptions options = {});
  // Returns after everything that was posted has run, or once a call that hangs has been reported:
  // its thread is then left behind. Communicators are destroyed first.
  ~NcclThread();
  NcclThread(const NcclThread&) = delete;
  NcclThread& operator=(const NcclThread&) = delete;

  // Any thread may call. Runs `work` once, in the order of the posts.
  void post(std::function<void(NcclCalls&)> work);
  // Any thread may call. Calls `poll` between other work until it answers kEnded.
  void poll(std::function<NcclPolled(NcclCalls&)> poll);

  Duration grace() const;
  // "ncclCommAbort of …, for 12.3 s": the call under way; empty: none.
  std::string under_way() const;

 private:
  std::shared_ptr<NcclCalls::State> state_;
};

}  // namespace tandem::collective
