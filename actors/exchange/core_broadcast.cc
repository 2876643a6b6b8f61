// Published versions, as far as the exchange knows them, and its conversation with the ranks that
// broadcast them. Nothing here waits for a broadcast: a rollout whose NewVersion names no broadcast
// fetches the version.
#include <utility>

#include "actors/exchange/exchange_core.h"

namespace tandem::actors {

namespace {

// A rollout may end its copy of a version that is no longer retained: the checksums of so many
// versions are kept in any case.
constexpr std::size_t kPublicationsKept = 64;

}  // namespace

void ExchangeCore::take(BroadcastEvents event) {
  const Sender from = std::visit([](const auto& message) { return message.from; }, event);
  if (has_ended(from) || stage_ == Stage::kEnded) return;
  if (!versions_.broadcasts) return refuse(from, "the weights of this job are not broadcast");
  if (const auto why = versions_.broadcasts->take(event, now_)) return refuse(from, *why);
  wake();
}

void ExchangeCore::order_broadcasts(Time now) {
  if (!versions_.broadcasts) return;
  for (Broadcasts::Message& order : versions_.broadcasts->decide(now))
    effects_.push_back(ToBroadcast{order.to, std::move(order.what)});
  for (std::string& line : versions_.broadcasts->take_news())
    notify(ExchangeEvent{config_.job, config_.job, std::move(line)});
}

void ExchangeCore::take_publication(const Publication& publication) {
  versions_.oldest_retained = publication.oldest_retained;
  statistics_.add_publication(publication);
  versions_.publications[publication.version] = publication;
  if (publication.broadcast) ++versions_.broadcasts_started;
  while (versions_.publications.size() > kPublicationsKept &&
         versions_.publications.begin()->first < versions_.oldest_retained)
    versions_.publications.erase(versions_.publications.begin());
}

// The learner's epochs ended with the learner. The versions that it had published stay published,
// with the same content.
void ExchangeCore::end_broadcasts_of_learner() {
  for (auto& [version, publication] : versions_.publications) publication.broadcast.reset();
}

void ExchangeCore::announce(Worker& rollout, PolicyVersion version) {
  NewVersion offer{
      .version = version, .oldest_retained = versions_.oldest_retained, .source = versions_.source};
  const bool first = rollout.announced < version;
  rollout.announced = version;
  if (const auto known = versions_.publications.find(version);
      known != versions_.publications.end()) {
    const Publication& publication = known->second;
    offer.checksum = publication.checksum;
    if (first && version == versions_.published && publication.broadcast && versions_.broadcasts &&
        versions_.broadcasts->takes_part(rollout.address, publication.broadcast->epoch))
      offer.broadcast = publication.broadcast;  // EX-P
  }
  tell_rollout(rollout.address, std::move(offer));
}

// Ends a rollout that installed wrong weights (EX-I): its groups are leased again, its later
// messages are ignored, and its link is cut.
void ExchangeCore::condemn(const Sender& rollout, const std::string& why) {
  notify(ExchangeEvent{config_.job, rollout.actor, why});
  const auto worker = workers_.rollouts.find(rollout.actor);
  forget_worker(worker->second, now_);
  workers_.rollouts.erase(worker);
  end_incarnation(rollout.actor, rollout.incarnation);
  refuse(rollout, why);
}

}  // namespace tandem::actors
