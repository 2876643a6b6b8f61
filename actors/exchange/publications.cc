#include "actors/exchange/publications.h"

#include <utility>

#include "actors/exchange/checks.h"
#include "actors/exchange/workers.h"

namespace tandem::actors {

void take(Turn& turn, const BroadcastEvents& event) {
  const Sender from = std::visit([](const auto& message) { return message.from; }, event);
  if (has_ended(turn.facts, from)) return;
  auto& groups = turn.seen.broadcasts.groups;
  if (!groups) return refuse(turn, from, "the weights of this job are not broadcast");
  if (const auto why = groups->take(event, turn.now)) return refuse(turn, from, *why);
  turn.wake();
}

void order_broadcasts(Turn& turn) {
  auto& groups = turn.seen.broadcasts.groups;
  if (!groups) return;
  for (Broadcasts::Message& order : groups->decide(turn.now))
    turn.send(ToBroadcast{order.to, std::move(order.what)});
  for (std::string& line : groups->take_news()) turn.say(std::move(line));
}

void note_publication(Turn& turn, const Publication& publication) {
  turn.seen.statistics.add_publication(publication);
  BroadcastsSeen& broadcasts = turn.seen.broadcasts;
  broadcasts.places.erase(broadcasts.places.begin(),
                          broadcasts.places.lower_bound(publication.oldest_retained));
  if (!publication.broadcast) {
    broadcasts.places.erase(publication.version);
    return;
  }
  broadcasts.places[publication.version] = *publication.broadcast;
  ++broadcasts.started;
}

void end_broadcasts_of_learner(Turn& turn) { turn.seen.broadcasts.places.clear(); }

void announce(Turn& turn, const Sender& rollout, PolicyVersion version) {
  const VersionFacts& versions = turn.facts.versions;
  NewVersion offer{.version = version,
                   .oldest_retained = versions.oldest_retained,
                   .source = turn.seen.learner.source};
  WorkerSeen& worker = turn.seen.workers.by_actor[rollout.actor];
  const bool first = worker.announced < version;
  worker.announced = version;
  if (const auto known = versions.checksums.find(version); known != versions.checksums.end())
    offer.checksum = known->second;
  const BroadcastsSeen& broadcasts = turn.seen.broadcasts;
  const auto place = broadcasts.places.find(version);
  if (first && version == versions.published && place != broadcasts.places.end() &&
      broadcasts.groups &&
      broadcasts.groups->takes_part(Turn::address(rollout), place->second.epoch))
    offer.broadcast = place->second;  // EX-P
  turn.tell_rollout(rollout, std::move(offer));
}

}  // namespace tandem::actors
