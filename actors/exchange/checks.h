// Whether a message fits the facts. The doors (doors.h) have checked who speaks and that the
// numbers make sense by themselves; here a message meets the leases, versions and steps that it
// names. A late answer is no misfit: its lease is over, and the ledger refuses it. A misfit is a
// message that no honest peer can send, however late; taken at its word it would touch another
// actor's group, or break an invariant that the ledger CHECKs.
#pragma once

#include <optional>
#include <string>

#include "actors/exchange/group_history.h"
#include "actors/exchange/turn.h"

namespace tandem::exchange {

using Misfit = std::optional<std::string>;  // why not; empty: the message fits

// The worker has outlived the exchange before, and has not said what it holds (follow.h).
bool is_away(const RunView& view, const ActorId& worker);
// The worker may be given work: it is neither away nor silent.
bool is_here(const RunView& view, const ActorId& worker);
// The message is of an actor that is away, and will be told again.
bool comes_too_early(const Turn& turn, const ActorId& from);

// Ends the sender, whose message did not fit.
void refuse(Turn& turn, const ActorId& from, const std::string& why);

// A group that the worker `from` answers for, under the lease `attempt`.
Misfit misfit(const RunView& view, const ActorId& from, GroupId group, std::uint32_t attempt);
Misfit misfit(const RunView& view, const ActorId& from, const messages::GroupHeader& header);
Misfit misfit(const RunView& view, const messages::Installed& installed);
Misfit misfit(const RunView& view, const messages::Published& published);
Misfit misfit(const RunView& view, const messages::WarmStarted& started);
Misfit misfit(const RunView& view, const messages::StepCommitted& committed);
Misfit misfit(const RunView& view, const messages::CheckpointSaved& saved);
// Whether these groups are those of a run of this job at `checkpoint`.
Misfit misfit(const RunView& view, const GroupHistory& history, StepId checkpoint);

}  // namespace tandem::exchange
