#include "scheduler/fleet/wait_end.h"

#include <type_traits>
#include <variant>

namespace tandem::scheduler {
namespace {

template <class R, class... Rs>
constexpr bool kOneOf = (std::is_same_v<R, Rs> || ...);

template <class R>
constexpr bool kHasDeadline = requires(R r) {
  r.give_up;
}
|| requires(R r) { r.deadline; }
|| requires(R r) { r.until; };

template <class R>
constexpr EndedBy ender_of() {
  using enum EndedBy;
  if constexpr (kOneOf<R, WaitingForCapacity, InfeasibleShape>) return kRoom;
  if constexpr (kOneOf<R, WaitingForJobs>) return kQueue;
  if constexpr (kOneOf<R, Submitted, NodeDrained, Preempted>) return kController;
  if constexpr (kOneOf<R, FormerEnding>) return kProcess;
  if constexpr (kOneOf<R, WaitingForJournal>) return kDisk;
  if constexpr (kOneOf<R, WaitingForActors>) return kBehind;
  if constexpr (kOneOf<R, WaitingForGang, WaitingForSpawn, LoadingModel, WaitingForProgram,
                       StartingVerifier>)
    return kHang;
  if constexpr (kOneOf<R, Working>) return kWork;
  if constexpr (kOneOf<R, NodeLost>) return kNode;
  if constexpr (kOneOf<R, SpawnFailed, ExitSignal, OOMKilled, RankError, OutOfMemory, ExitCode,
                       Hung, GangMemberDied, RestartsExhausted, ScaleDown, Completed, Finished,
                       CancelledByUser, JobEnded, JobFailed>)
    return kOver;
  // A reason that is named nowhere above ends here, without a value: that does not compile (WE-1).
}

}  // namespace

const char* words(EndedBy ended_by) {
  switch (ended_by) {
    case EndedBy::kBehind:
      return "by what it waits for";
    case EndedBy::kHang:
      return "when it hangs";
    case EndedBy::kWork:
      return "while it works";
    case EndedBy::kRoom:
      return "until there is room";
    case EndedBy::kQueue:
      return "when those ahead end";
    case EndedBy::kController:
      return "when it is looked at";
    case EndedBy::kProcess:
      return "when that one ends";
    case EndedBy::kNode:
      return "when its node is heard";
    case EndedBy::kDisk:
      return "when the disk has room";
    case EndedBy::kFree:
      return "until one is free";
    case EndedBy::kMended:
      return "until it works";
    case EndedBy::kSteps:
      return "by a count of steps";
    case EndedBy::kNotHeld:
      return "it goes on meanwhile";
    case EndedBy::kOver:
      return "it is over";
  }
  return "";
}

std::optional<EndedBy> ended_by(const Reason& reason) {
  return std::visit(
      []<class R>(const R&) -> std::optional<EndedBy> {
        if constexpr (kHasDeadline<R>)
          return std::nullopt;
        else
          return std::integral_constant<EndedBy, ender_of<R>()>::value;
      },
      reason);
}

}  // namespace tandem::scheduler
