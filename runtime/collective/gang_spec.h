// The facts that the ranks of a socket gang (socket.h) share before they meet: their number, their
// secret, the sum, and how they notice that rank 0 hangs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/collective/collective.h"
#include "runtime/link/progress.h"

namespace tandem::collective {

// CO-5: how rank 0 shows that it runs, and when the other ranks take it for hung. All ranks need
// the same heartbeat_every.
struct GangLiveness {
  Duration heartbeat_every = std::chrono::seconds(1);
  Duration silence_max = std::chrono::seconds(10);  // several heartbeats
  // Used by rank 0: reports the progress of its process. It is called on a thread of the
  // collective. A wait of rank 0 in a call of the gang counts as progress too, because that call
  // has its own timeout. Empty: only the number of such waits is told, in the phase "idle".
  std::function<link::ProgressReport()> progress = {};
  // Used by rank 0: called on the thread that makes the calls, at least once per heartbeat_every
  // while a call waits: such a wait is no hang of this process.
  std::function<void()> beat = {};
  // Used by the other ranks: how long rank 0 may make no progress in this phase; nullopt: for ever.
  // Empty: rank 0 is never taken for stuck.
  std::function<std::optional<Duration>(std::string_view phase)> stuck_max = {};
};

// Whether what ranks say to each other over TCP is encrypted and cannot be changed on its way
// (stream.h), or travels as it is. A Unix socket needs no encryption.
enum class Privacy { kSealed, kPlain };

struct GangSpec {
  int size = 1;
  // A secret that only this gang's ranks know: random, and new for each incarnation. Both sides
  // prove that they know it before anything else is said. A dialler that does not, or that claims
  // another size of the gang, is refused and does not disturb the others.
  std::string secret;
  AddFloats add = add_floats;
  GangLiveness liveness = {};
  Privacy privacy = Privacy::kSealed;  // all ranks need the same
};

}  // namespace tandem::collective
