#include "tests/actors/controller/simulated_broadcast.h"

#include "runtime/base/rng.h"
#include "runtime/collective/nccl_api.h"

namespace tandem::controller {

namespace {

constexpr std::uint64_t kLayoutHash = 7;
constexpr int kNcclVersion = 22809;

Duration draw(actor::Context& cx, Duration max) {
  return Duration(cx.rng().below(static_cast<std::uint64_t>(max.count()) + 1));
}

}  // namespace

std::optional<wire::BroadcastPlace> SimulatedEpochs::next_place() {
  if (!in_use) return std::nullopt;
  return wire::BroadcastPlace{*in_use, ++sequence};
}

void SimulatedEpochs::check(const ActorId& rollout, PolicyVersion version,
                            const wire::BroadcastPlace& place) {
  const std::string what = rollout.name + " is told of version " + std::to_string(version.value) +
                           " in epoch " + std::to_string(place.epoch);
  if (!joined.contains({rollout.incarnation, place.epoch}))
    wrong.push_back(what + ", which it is not in");
  if (!told.insert({rollout.incarnation, version}).second) wrong.push_back(what + " twice");
}

SimulatedBroadcast::SimulatedBroadcast(ActorId self, const SimulatedBroadcasts& faults,
                                       std::shared_ptr<SimulatedEpochs> shared,
                                       actor::Ref<messages::BroadcastEvents> exchange,
                                       std::function<void(std::uint64_t epoch)> wake)
    : self_(std::move(self)),
      faults_(faults),
      shared_(std::move(shared)),
      exchange_(std::move(exchange)),
      wake_(std::move(wake)) {}

bool SimulatedBroadcast::happens(actor::Context& cx, double fraction) const {
  return fraction > 0 && cx.rng().unit() < fraction;
}

void SimulatedBroadcast::expect(bool fine, const std::string& what) {
  if (!fine) shared_->wrong.push_back(self_.name + ": " + what);
}

void SimulatedBroadcast::answer(actor::Context& cx, messages::BroadcastEvents event) {
  if (hung_) return;
  const Duration wait = draw(cx, happens(cx, faults_.late) ? faults_.late_max : faults_.answer_max);
  cx.after(wait, [this, event = std::move(event)](actor::Context&) {
    if (!hung_) (void)exchange_.tell(event);
  });
}

void SimulatedBroadcast::handle(actor::Context&, Begin) {
  (void)exchange_.tell(messages::BroadcastUp{self_, kNcclVersion});
}

// It is out of its epochs at once. What it still says of them comes before, or too late: the
// exchange has to bear both (BC-1).
void SimulatedBroadcast::handle(actor::Context& cx, MeetAgain) {
  if (hung_) return;
  for (const std::uint64_t epoch : std::exchange(inside_, {})) {
    leave(epoch);
    forsaken_.insert(epoch);
  }
  handle(cx, Begin{});
}

void SimulatedBroadcast::leave(std::uint64_t epoch) {
  if (shared_->in_use == epoch) shared_->in_use.reset();
  shared_->epochs.at(epoch).there.erase(self_.name);
}

void SimulatedBroadcast::handle(actor::Context& cx, messages::OpenEpoch open) {
  expect(open.epoch > newest_, "is asked to open an epoch that is not new");
  expect(open.size >= 2, "opens an epoch for nobody");
  newest_ = open.epoch;
  inside_.insert(open.epoch);
  auto& epoch = shared_->epochs[open.epoch];
  epoch.unique_id.assign(collective::kNcclUniqueIdBytes, static_cast<char>('a' + open.epoch % 26));
  epoch.size = open.size;
  if (!hung_)  // in order before what start() may say, and not lost by its delay
    (void)exchange_.tell(messages::EpochOpened{self_, open.epoch, epoch.unique_id, kLayoutHash});
  start(cx, open.epoch);
}

void SimulatedBroadcast::handle(actor::Context& cx, messages::JoinEpoch join) {
  const auto epoch = shared_->epochs.find(join.epoch);
  const bool known = epoch != shared_->epochs.end() && epoch->second.unique_id == join.unique_id &&
                     epoch->second.size == join.size && join.layout_hash == kLayoutHash;
  expect(known && join.rank >= 1 && join.rank < join.size, "is asked into an epoch of nobody");
  expect(join.epoch > newest_, "is asked into an epoch that is not new");
  newest_ = join.epoch;
  inside_.insert(join.epoch);
  start(cx, join.epoch);
}

void SimulatedBroadcast::start(actor::Context& cx, std::uint64_t epoch) {
  if (hung_) return;
  if (happens(cx, faults_.hangs)) {
    hung_ = true;
    ++shared_->hung;
    return;
  }
  if (happens(cx, faults_.dies) && shared_->died.insert(self_.name).second) {
    cx.after(draw(cx, faults_.late_max), [](actor::Context& then) {
      then.fail({ErrorCode::kFailed, "it dies in the midst of an epoch"});
    });
    return;
  }
  if (happens(cx, faults_.fails)) {
    ++shared_->failed;
    return answer(cx, messages::EpochFailed{self_, epoch, "the simulated network is down"});
  }
  auto& shared = shared_->epochs.at(epoch);
  shared.there[self_.name] = [wake = wake_, epoch] { wake(epoch); };
  if (std::ssize(shared.there) != shared.size) return;
  ++shared_->formed;
  for (const auto& [actor, tell] : shared.there) tell();
}

void SimulatedBroadcast::handle(actor::Context& cx, AllThere all) {
  if (hung_ || !inside_.contains(all.epoch)) return;
  shared_->joined.insert({self_.incarnation, all.epoch});
  answer(cx, messages::EpochJoined{self_, all.epoch});
  answer(cx, messages::EpochProgress{self_, all.epoch, {{1, "version 1, bucket 0", 64}}});
}

void SimulatedBroadcast::handle(actor::Context& cx, messages::UseEpoch use) {
  expect(inside_.contains(use.epoch), "is to use an epoch that it is not in");
  expect(shared_->joined.contains({self_.incarnation, use.epoch}), "is to use what is not formed");
  if (hung_) return;
  shared_->in_use = use.epoch;
  shared_->sequence = 0;
  answer(cx, messages::EpochInUse{self_, use.epoch});
}

// Messages about the epoch that this rank still has to send may come after this: the exchange has
// to bear them (BC-1).
void SimulatedBroadcast::handle(actor::Context& cx, messages::LeaveEpoch order) {
  const std::uint64_t epoch = order.epoch;
  expect(inside_.erase(epoch) + forsaken_.erase(epoch) == 1,
         "is told to leave an epoch that it is not in");
  ++shared_->asked_to_leave;
  leave(epoch);
  if (hung_) return;
  cx.after(draw(cx, faults_.answer_max), [this, epoch](actor::Context&) {
    ++shared_->left;
    (void)exchange_.tell(messages::EpochLeft{self_, epoch});
  });
}

}  // namespace tandem::controller
