// The watch of the ranks of a socket gang over rank 0. Rank 0 sends each of them a heartbeat frame
// at an even pace, from a thread of its own, with the progress of its process. Ranks 1 and up
// judge: a rank 0 that is silent is cut off or has ended, one that sends heartbeats and makes no
// progress is stuck. Internal to runtime/collective.
//
// Not here: the other direction. Each wait of rank 0 for another rank has its call's timeout.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/frame_writer.h"
#include "runtime/collective/gang_spec.h"

namespace tandem::collective {

// The thread of rank 0 that sends heartbeats. The destructor joins it; it never waits for a socket.
class HeartbeatSender {
 public:
  // `report` is called on the thread, once for all writers; the writers outlive this.
  HeartbeatSender(Duration every, std::function<Heartbeat()> report,
                  std::vector<FrameWriter*> writers);
  ~HeartbeatSender();
  HeartbeatSender(const HeartbeatSender&) = delete;
  HeartbeatSender& operator=(const HeartbeatSender&) = delete;

 private:
  void run(Duration every);

  const std::function<Heartbeat()> report_;
  const std::vector<FrameWriter*> writers_;
  std::mutex mutex_;
  std::condition_variable ending_changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;   // last: it uses all of the above
};

// The silence of rank 0, as one other rank measures it in the call under way. Only the time counts
// that this rank has spent listening, in pieces of at most one heartbeat's pace: a process or a
// machine that was itself stopped for a minute has not listened for a minute, and must not accuse
// rank 0. One thread.
class RankZeroWatch {
 public:
  explicit RankZeroWatch(GangLiveness limits) : limits_(std::move(limits)) {}

  void begin_call();              // between two calls this rank does not listen
  void heard() { silent_ = {}; }  // any bytes of rank 0
  void heard(const Heartbeat& heartbeat);
  // This rank has waited so long; bytes that came meanwhile are reported by heard() afterwards.
  void listened(Duration time);

  // An Error once rank 0 has been silent, or without progress, for too long. `awaited` completes
  // "while rank 2 waited for …".
  std::optional<Error> verdict(int rank, const std::string& awaited) const;

  Duration pace() const { return limits_.heartbeat_every; }

 private:
  const GangLiveness limits_;
  std::optional<Heartbeat> newest_;
  Duration silent_{};
  Duration unmoved_{};  // listened since the last heartbeat that differed from the one before it
};

}  // namespace tandem::collective
