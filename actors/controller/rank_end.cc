#include "actors/controller/rank_end.h"

#include <csignal>

#include "scheduler/fleet/hang_timeout.h"

namespace tandem::controller {

using scheduler::Reason;

namespace {

template <class... Kinds>
bool is_one_of(const Reason& reason) {
  return (std::holds_alternative<Kinds>(reason) || ...);
}

}  // namespace

Reason reason_of(const node::RankExited& exited, std::int64_t room_bytes) {
  if (exited.out_of_memory == node::MemoryKill::kProven)
    return scheduler::OOMKilled{exited.memory_peak_bytes, exited.memory_last_bytes, room_bytes};
  // A kill without proof from the cgroup may still be for want of memory: the reason only hints at
  // it.
  if (exited.signal)
    return scheduler::ExitSignal{*exited.signal, exited.out_of_memory == node::MemoryKill::kHinted};
  if (!exited.code) return scheduler::RankError{exited.description};
  return scheduler::ExitCode{*exited.code};
}

bool explains(const Reason& why, const Reason& ending) {
  return is_one_of<scheduler::OOMKilled>(why) &&
         is_one_of<scheduler::RankError, scheduler::ExitCode, scheduler::ExitSignal>(ending);
}

bool is_crash(const Reason& reason) {
  const auto* const by_signal = std::get_if<scheduler::ExitSignal>(&reason);
  if (!by_signal || by_signal->memory_hint) return false;
  switch (by_signal->signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
      return true;
    default:
      return false;
  }
}

bool may_be_of_a_prompt(const Reason& reason) {
  const auto* const hung = std::get_if<scheduler::Hung>(&reason);
  if (!hung) return is_crash(reason);
  return hung->phase == scheduler::kSubmitPhase || hung->phase == scheduler::kDecodePhase;
}

bool is_of_disk(const Reason& reason) {
  if (const auto* spawn = std::get_if<scheduler::SpawnFailed>(&reason)) return spawn->disk;
  const auto* const error = std::get_if<scheduler::RankError>(&reason);
  return error && error->disk;
}

messages::EventLevel level_of(const Reason& reason) {
  using namespace scheduler;
  if (is_one_of<RestartsExhausted, JobFailed>(reason)) return messages::EventLevel::kError;
  const bool trouble =
      is_one_of<InfeasibleShape, Backoff, WaitingForDisk, SpawnFailed, ExitSignal, OOMKilled,
                RankError, OutOfMemory, ExitCode, Hung, NodeLost, GangMemberDied>(reason);
  return trouble ? messages::EventLevel::kWarning : messages::EventLevel::kInfo;
}

std::string memory_advice(const messages::Role& role) {
  if (role == messages::Role::kLearner)
    return "lower learner.max_token_len, set learner.enable_gradient_checkpointing, take a "
           "smaller model or a machine with more memory";
  if (role == messages::Role::kRollout)
    return "lower rollout.gpu_memory_utilization, rollout.max_num_seqs or rollout.replicas, or "
           "take a machine with more memory";
  const std::string key = (trains(role) ? "" : "actors.") + name(role);
  return "let the " + name(role) + " program hold less, lower " + key +
         ".replicas, or take a machine with more memory";
}

}  // namespace tandem::controller
