// The parts that the doors share (doors.h): limits, the check of a sender, and the door of a port
// of an exchange, which is made from a check() per type of message. The limits are far above
// anything an honest peer sends: they keep later arithmetic from overflowing and texts from filling
// the memory, and are no policy. Where a check is empty, no value of the message can do harm.
//
// A message that fails a check is no honest peer's, and the Error ends the link.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "actors/doors/exchange_door.h"
#include "runtime/link/link.h"

namespace tandem::doors {

inline constexpr std::int64_t kStepsMax = std::int64_t{1} << 40;    // steps of a run
inline constexpr std::uint64_t kCountMax = std::uint64_t{1} << 53;  // a double keeps it exact

inline Error wrong(const std::string& what) { return {ErrorCode::kInvalid, what}; }

inline bool is_amount(double value) { return std::isfinite(value) && value >= 0; }
inline bool is_step(std::int64_t step) { return step >= 0 && step <= kStepsMax; }
// kInitialWeights is the version before any training; nothing is below it.
inline bool is_version(PolicyVersion version) {
  return version >= kInitialWeights && version.value <= kStepsMax;
}

// The link's ActorId was checked when the link was opened; the message must repeat it.
inline Result<void> speaks_for_itself(const ActorId& from, const ActorId& actor,
                                      std::int32_t rank) {
  const ActorId claimed{messages::rank_name(actor.name, rank), actor.incarnation};
  if (rank >= 0 && claimed == from) return {};
  return wrong("speaks for " + to_string(claimed));
}

// The checks of a peer's messages: Result<void> operator()(message) for each of Peer::Events. The
// peer's source defines it.
template <class Peer>
struct Checks;

template <class Peer>
link::Door<typename Peer::Events> exchange_door(const std::string& job) {
  std::vector<std::string> prefixes;
  for (const messages::Role& role : Peer::roles()) prefixes.push_back(job + "/" + name(role) + "/");
  return [prefixes](const ActorId& from, const typename Peer::Events& events) {
    return std::visit(
        [&](const auto& message) -> Result<void> {
          if (std::ranges::none_of(prefixes,
                                   [&](const auto& p) { return from.name.starts_with(p); }))
            return wrong("is none of " + prefixes.front() + "*");
          if (auto own = speaks_for_itself(from, message.from, 0); !own) return own;
          return Checks<Peer>()(message);
        },
        events);
  };
}

}  // namespace tandem::doors
