// Events change the two epochs and queue orders; decide() adds what time brings (a deadline, a next
// try) and hands the orders out. Times are known in decide() and failed() alone, so what an event
// begins is dated by the next decide(), which follows every event.
#include "scheduler/fleet/broadcast_group.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

std::string seconds_text(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

std::string version_text(int nccl) {
  return std::to_string(nccl / 10000) + "." + std::to_string(nccl / 100 % 100) + "." +
         std::to_string(nccl % 100);
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string epoch_text(std::uint64_t epoch) { return "epoch " + std::to_string(epoch); }

}  // namespace

BroadcastGroup::Rank* BroadcastGroup::find(const BroadcastPeer& peer) {
  if (learner_ && learner_->peer == peer) return &*learner_;
  const auto found = members_.find(peer.actor);
  return found != members_.end() && found->second.peer == peer ? &found->second : nullptr;
}

// The epoch of that number, if the rank is of it.
BroadcastGroup::Epoch* BroadcastGroup::find(std::uint64_t epoch, const BroadcastPeer& rank) {
  for (std::optional<Epoch>* one : {&forming_, &in_use_})
    if (*one && (*one)->number == epoch && std::ranges::count((*one)->ranks, rank) > 0)
      return &**one;
  return nullptr;
}

void BroadcastGroup::learner_up(const BroadcastPeer& learner, int nccl_version) {
  if (learner_ && learner_->peer == learner) return;
  if (learner_) gone(learner_->peer.actor);
  learner_ = Rank{.peer = learner, .nccl_version = nccl_version, .left_out = {}, .owes = {}};
}

void BroadcastGroup::member_up(const BroadcastPeer& member, int nccl_version) {
  const auto known = members_.find(member.actor);
  if (known != members_.end() && known->second.peer == member) return;
  gone(member.actor);
  members_[member.actor] =
      Rank{.peer = member, .nccl_version = nccl_version, .left_out = {}, .owes = {}};
}

// A broadcast with a rank that is gone can only time out, so its epochs end at once.
void BroadcastGroup::gone(const std::string& actor) {
  const bool leads = learner_ && learner_->peer.actor == actor;
  const auto member = members_.find(actor);
  if (!leads && member == members_.end()) return;
  const BroadcastPeer peer = leads ? learner_->peer : member->second.peer;
  std::erase_if(orders_, [&](const BroadcastOrder& order) {  // BG-5
    return std::visit([&](const auto& one) { return one.to == peer; }, order);
  });
  if (leads) {
    learner_.reset();
    failures_ = 0;
    next_try_.reset();
    trying_ = false;
    for (auto& [name, rank] : members_) {
      rank.tried = false;
      rank.left_out.clear();
    }
  } else {
    members_.erase(member);
  }
  for (std::optional<Epoch>* epoch : {&forming_, &in_use_})
    if (*epoch && std::ranges::count((*epoch)->ranks, peer) > 0) end(*epoch, actor + " ended");
}

void BroadcastGroup::leaves(const std::string& actor) {
  if (const auto member = members_.find(actor); member != members_.end())
    member->second.leaves = true;
}

void BroadcastGroup::opened(const BroadcastPeer& from, std::uint64_t epoch) {
  if (!forming_ || forming_->number != epoch || forming_->phase != Phase::kOpening ||
      forming_->ranks.front() != from)
    return;
  forming_->phase = Phase::kJoining;
  const int size = static_cast<int>(forming_->ranks.size());
  for (int rank = 1; rank < size; ++rank)
    orders_.push_back(JoinOrder{.to = forming_->ranks[static_cast<std::size_t>(rank)],
                                .epoch = epoch,
                                .rank = rank,
                                .size = size});
}

void BroadcastGroup::joined(const BroadcastPeer& from, std::uint64_t epoch) {
  Epoch* const joining = find(epoch, from);
  if (joining == nullptr || joining->phase != Phase::kJoining) return;
  joining->joined.insert(from);
  if (joining->joined.size() < joining->ranks.size()) return;
  if (joining->trial) {
    find(joining->ranks.back())->tried = true;
    return end(forming_, "it was to show that its ranks can meet, and they can");
  }
  joining->phase = Phase::kSwitching;
  orders_.push_back(UseOrder{.to = joining->ranks.front(), .epoch = epoch});
}

void BroadcastGroup::in_use(const BroadcastPeer& from, std::uint64_t epoch) {
  if (!forming_ || forming_->number != epoch || forming_->phase != Phase::kSwitching ||
      forming_->ranks.front() != from)
    return;
  end(in_use_, epoch_text(epoch) + " took its place");
  in_use_ = std::exchange(forming_, std::nullopt);
  in_use_->phase = Phase::kInUse;
  in_use_->since = in_use_->deadline = {};
}

void BroadcastGroup::failed(const BroadcastPeer& from, std::uint64_t epoch, const std::string& why,
                            Time now) {
  const Epoch* const broken = find(epoch, from);
  if (broken == nullptr) return;
  const std::string reason = "it failed at " + from.actor + ": " + why;
  note_failure(*broken, reason, now);
  end(forming_ && broken == &*forming_ ? forming_ : in_use_, reason);
}

void BroadcastGroup::left(const BroadcastPeer& from, std::uint64_t epoch) {
  if (Rank* const rank = find(from)) rank->owes.erase(epoch);
}

void BroadcastGroup::note_failure(const Epoch& epoch, const std::string& why, Time now) {
  if (epoch.trial) {
    if (Rank* const member = find(epoch.ranks.back())) member->left_out = why;
    return;
  }
  const bool lasted = epoch.phase == Phase::kInUse && epoch.since != Time{} &&
                      now - epoch.since >= limits_.backoff_max;
  failures_ = lasted ? 1 : failures_ + 1;
  failure_last_ = why;
  Duration backoff = limits_.backoff;
  for (int i = 1; i < failures_ && backoff < limits_.backoff_max; ++i) backoff *= 2;
  next_try_ = now + std::min(backoff, limits_.backoff_max);
  if (failures_ % limits_.failures_max != 0) return;
  trying_ = true;
  for (auto& [name, rank] : members_) rank.tried = false;
}

// Tells the ranks that are left to leave it. They owe an answer.
void BroadcastGroup::end(std::optional<Epoch>& epoch, const std::string& why) {
  if (!epoch) return;
  const bool invited = epoch->phase != Phase::kOpening;
  for (const BroadcastPeer& peer : epoch->ranks) {
    Rank* const rank = find(peer);
    if (rank == nullptr || (!invited && rank != (learner_ ? &*learner_ : nullptr))) continue;
    orders_.push_back(LeaveOrder{.to = peer, .epoch = epoch->number, .why = why});
    rank->owes[epoch->number] = {};
  }
  epoch.reset();
  settle_begins_ = true;
  // Its members owe an answer now, so they are not to be asked into the one that was to follow.
  if (forming_ && forming_->phase == Phase::kOpening) end(forming_, "the epoch before it ended");
}

std::vector<BroadcastPeer> BroadcastGroup::wanted() const {
  std::vector<BroadcastPeer> peers;
  if (!learner_) return peers;
  for (const auto& [name, rank] : members_)
    if (!rank.leaves && rank.left_out.empty() && rank.owes.empty() &&
        rank.nccl_version == learner_->nccl_version)
      peers.push_back(rank.peer);
  return peers;
}

bool BroadcastGroup::owed() const {
  return std::ranges::any_of(members_, [](const auto& one) { return !one.second.owes.empty(); });
}

// The next epoch, where there is one to be had: of everybody who is wanted, or of the next member
// that is to be tried alone.
void BroadcastGroup::open(Time now) {
  std::vector<BroadcastPeer> ranks = wanted();
  if (ranks.empty()) return;
  std::optional<BroadcastPeer> alone;
  if (trying_ && ranks.size() > 1) {
    const auto next = std::ranges::find_if(
        ranks, [this](const BroadcastPeer& peer) { return !find(peer)->tried; });
    if (next != ranks.end()) alone = *next;
  }
  trying_ = alone.has_value();
  if (alone) ranks = {*alone};
  ranks.insert(ranks.begin(), learner_->peer);
  if (!alone && in_use_ && in_use_->ranks == ranks) return;
  forming_ = Epoch{.number = ++epoch_last_,
                   .ranks = std::move(ranks),
                   .joined = {},
                   .trial = alone.has_value(),
                   .since = now,
                   .deadline = now + limits_.forming_max};
  orders_.push_back(OpenOrder{.to = learner_->peer,
                              .epoch = forming_->number,
                              .size = static_cast<int>(forming_->ranks.size())});
}

std::string BroadcastGroup::late(const Epoch& epoch) const {
  if (epoch.phase == Phase::kOpening) return epoch.ranks.front().actor + " did not open it";
  if (epoch.phase == Phase::kSwitching) return epoch.ranks.front().actor + " did not take it up";
  std::vector<std::string> names;
  for (const BroadcastPeer& peer : epoch.ranks)
    if (!epoch.joined.contains(peer)) names.push_back(peer.actor);
  return list_text(names) + " did not join";
}

std::vector<BroadcastOrder> BroadcastGroup::decide(Time now) {
  if (in_use_ && in_use_->since == Time{}) in_use_->since = now;
  if (forming_ && now >= forming_->deadline) {
    const std::string why = late(*forming_) + " within " + seconds_text(limits_.forming_max);
    note_failure(*forming_, why, now);
    end(forming_, why);
  }
  if (std::exchange(settle_begins_, false)) settled_ = now + limits_.settle;
  const auto date = [now](Rank& rank) {
    for (auto& [epoch, since] : rank.owes)
      if (since == Time{}) since = now;
  };
  for (auto& [name, rank] : members_) date(rank);
  if (learner_) date(*learner_);
  const bool may_open = !forming_ && learner_ && learner_->owes.empty() &&
                        (!next_try_ || now >= *next_try_) &&
                        (!owed() || !settled_ || now >= *settled_);
  if (may_open) open(now);
  return std::exchange(orders_, {});
}

std::optional<Time> BroadcastGroup::next_deadline() const {
  if (forming_) return forming_->deadline;
  if (!learner_ || !learner_->owes.empty()) return std::nullopt;
  std::optional<Time> next = next_try_;
  if (owed() && settled_) next = std::max(next.value_or(*settled_), *settled_);
  // Without a member that is wanted, or with those that have it already, nothing is to be done.
  std::vector<BroadcastPeer> ranks = wanted();
  if (ranks.empty()) return std::nullopt;
  ranks.insert(ranks.begin(), learner_->peer);
  if (in_use_ && in_use_->ranks == ranks && !trying_) return std::nullopt;
  return next;
}

bool BroadcastGroup::takes_part(const BroadcastPeer& member, std::uint64_t epoch) const {
  const auto holds = [&](const std::optional<Epoch>& one) {
    return one && one->number == epoch && std::ranges::count(one->ranks, member) > 0;
  };
  return holds(in_use_) || (holds(forming_) && forming_->phase == Phase::kSwitching);
}

std::optional<std::uint64_t> BroadcastGroup::epoch_in_use() const {
  return in_use_ ? std::optional(in_use_->number) : std::nullopt;
}

std::vector<std::string> BroadcastGroup::explain(Time now) const {
  std::vector<std::string> lines;
  if (in_use_) {
    std::vector<std::string> names;
    for (const BroadcastPeer& peer : in_use_->ranks) names.push_back(peer.actor);
    lines.push_back(list_text(names) + " broadcast weights in " + epoch_text(in_use_->number) +
                    ".");
  }
  if (forming_)
    lines.push_back(epoch_text(forming_->number) + " forms since " +
                    seconds_text(now - forming_->since) + ": " + late(*forming_) + " yet.");
  else if (next_try_ && *next_try_ > now)
    lines.push_back("The next epoch is tried in " + seconds_text(*next_try_ - now) +
                    "; of the last one " + failure_last_ + ".");
  for (const auto& [name, rank] : members_) {
    if (!rank.left_out.empty())
      lines.push_back(name + " takes part in no broadcast, because alone with the learner " +
                      rank.left_out + ".");
    else if (learner_ && rank.nccl_version != learner_->nccl_version)
      lines.push_back(name + " takes part in no broadcast: it has NCCL " +
                      version_text(rank.nccl_version) + ", and " + learner_->peer.actor + " has " +
                      version_text(learner_->nccl_version) + ".");
    else if (rank.leaves)
      lines.push_back(name + " takes part in no further epoch, because it drains.");
  }
  const auto owing = [&](const Rank& rank) {
    for (const auto& [epoch, since] : rank.owes)
      if (since != Time{} && now - since >= limits_.settle)
        return lines.push_back(rank.peer.actor + " has not left " + epoch_text(epoch) + " since " +
                               seconds_text(now - since) + ", so it is asked into no other.");
  };
  for (const auto& [name, rank] : members_) owing(rank);
  if (learner_) owing(*learner_);
  return lines;
}

}  // namespace tandem::scheduler
