// The writing side of one of rank 0's connections, shared by the thread that makes the gang's calls
// and the one that sends heartbeats. Internal to runtime/collective.
//
// FW-1  The other side reads whole frames, whichever thread wrote them: none begins within another.
// FW-2  beat() and abort() never wait for the socket, and beat() never for the other thread.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "runtime/base/result.h"
#include "runtime/collective/connection.h"

namespace tandem::collective {

class FrameWriter {
 public:
  explicit FrameWriter(Stream& stream) : stream_(stream) {}

  // Writes the whole frame, or says kClosed. `until_writable` is called where the socket takes no
  // more; its Error is returned, and then the frame stays half written and nothing can follow it.
  Result<Transfer> write(const FrameHeader& header, std::span<const std::byte> payload,
                         const std::function<Result<void>()>& until_writable);

  // Sends a heartbeat, or leaves it out: while a frame is under way, whose bytes show as well that
  // rank 0 runs, and where the socket has no room, because the other side does not read.
  void beat(const Heartbeat& heartbeat);

  // Sends the last frame, which says why rank 0 gives up. Behind a half-written frame it would not
  // be understood: then the connection just ends.
  void abort(const Error& error);

 private:
  Stream& stream_;
  std::mutex mutex_;  // write() holds it while it waits; beat() only tries
  // Guarded by mutex_.
  bool closed_ = false;  // a data frame is half written for good, or the last frame is
  std::string beat_;     // the newest heartbeat's frame …
  std::span<const std::byte> beat_rest_;  // … and the part of it that the next writer owes
};

}  // namespace tandem::collective
