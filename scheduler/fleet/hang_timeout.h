// The rule by which a process at work counts as hung. It serves the controller, which watches every
// rank, and the ranks of a gang, which watch their rank 0.
//
// A kind of work that has been seen a few times has a deadline that follows from it: ten times its
// longest piece, and at least 2.5 s. A hang of quick work is so found after some three seconds. Ten
// times, because pieces of one kind differ: the last batch of a step is smaller than the others, a
// prompt longer, and on a machine that does other work as well each takes several times as long. At
// least 2.5 s, because a garbage collection, a page that is read from a disk or a lazy load of a
// GPU's code takes a second anywhere, and a hang that is found within three is found soon enough.
// Work that waits for a disk or a network has at least 30 s: a disk that others keep busy lets a
// single sync wait for many seconds, and nothing is wrong. Time for which a process was stopped or
// its threads waited for a processor is not counted (runtime/link/progress.h, PS-1). The end of a
// learner's update ("commit": optimizer, publication, checksum) goes over all weights in one long
// piece, and has at least 30 s too. So has a rollout that takes prompts ("submit"): one prompt may
// be ten thousand times as long as the others. A publication of weights ("publish") may wait for a
// free place as long as its own timeout says, and so always has the deadline of a save. In a gang
// of several ranks ("train_gang") the learner's work includes waits for the other ranks, and so it
// always has the generous deadline. What is not known yet has a generous deadline, which is also
// the limit of all others. A handler of a user's actor may do anything, so that quick ones say
// little about the next: it has at least ten minutes, and a day at first. A user's actor in a
// sandbox has its link to the controller through another process; while it has none to that one
// ("connect"), it has as long as any process of an actor has until its link is up. The same rule
// serves a controller and a node's agent, which watch the turns of their own actors ("turn"): these
// write to disks, and the first ones may read all data of a job.
//
//   HT-1  An idle process never counts as hung, however long it waits for others (but HT-4).
//   HT-2  A deadline is never shorter than ten times the longest piece, unless the generous one is.
//   HT-3  Each hang in a kind of work doubles the least deadline of that kind: work that is slow,
//         and was taken for hung, is not ended again and again.
//   HT-4  A process that a signal has stopped (SIGSTOP) for two seconds counts as hung, whatever it
//         did. One that a debugger holds does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/clock.h"

namespace tandem::scheduler {

inline constexpr Duration kHungAfter = std::chrono::seconds(60);
// A checkpoint may be tens of gigabytes and its disk slow.
inline constexpr Duration kHungAfterInSave = std::chrono::minutes(15);
// A model is read once in a process's life, perhaps over a network, and shows no progress.
inline constexpr Duration kHungAfterInLoad = std::chrono::hours(1);
inline constexpr Duration kHungAfterInHandler = std::chrono::hours(24);
inline constexpr Duration kHungAfterInConnect = std::chrono::minutes(2);

inline constexpr int kHungFactor = 10;  // times the longest piece
inline constexpr Duration kHungFloor = std::chrono::milliseconds(2500);
inline constexpr Duration kHungFloorOfDisks = std::chrono::seconds(30);
inline constexpr Duration kHungFloorOfLoads = std::chrono::minutes(5);
inline constexpr Duration kHungFloorOfHandlers = std::chrono::minutes(10);
inline constexpr std::uint64_t kPiecesKnown = 5;  // from so many on a kind of work is known
inline constexpr Duration kHungStopped = std::chrono::seconds(2);  // HT-4

// The kinds of work in which a prompt may make a rollout hang: it takes prompts, it generates.
inline constexpr const char* kSubmitPhase = "submit";
inline constexpr const char* kDecodePhase = "decode";

// A process works in pieces, such as one training step, and each kind of work is a phase. This is
// what the pieces of its present phase have needed so far.
struct PhaseHistory {
  std::uint64_t pieces = 0;  // that have ended
  Duration longest{};        // time that one of them took
  int hangs = 0;             // of this kind of work in this role so far
};

// How long a process may make no progress in a phase of which nothing is known, named as
// link::Progress names it: "idle", "save", "handler" of a user's actor, or another, each of which
// is work. nullopt: without limit.
std::optional<Duration> hang_timeout(std::string_view phase);
// Whether a process goes through the phase once. What it needs is then known from others of its
// role, and from one of them: a load that is as quick as those before is hung after five minutes.
bool happens_once(std::string_view phase);
// The same, from what the phase has needed so far.
std::optional<Duration> hang_deadline(std::string_view phase, const PhaseHistory& history);

// Whether a process in `phase`, whose last progress is `still` ago, is to be ended as hung.
bool is_hung(std::string_view phase, Duration still, const PhaseHistory& history = {});

}  // namespace tandem::scheduler
