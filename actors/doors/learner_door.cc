// The door of the learner at an exchange.
#include <algorithm>
#include <cmath>

#include "actors/doors/message_checks.h"
#include "runtime/link/endpoint.h"

namespace tandem::doors {

namespace {

Result<void> check_offered(const std::vector<PolicyVersion>& offered) {
  if (offered.size() > messages::kOfferedMax)
    return wrong("a publisher of " + std::to_string(offered.size()) + " versions");
  for (const PolicyVersion version : offered)
    if (!is_version(version)) return wrong("offers version " + std::to_string(version.value));
  return {};
}

// `version`: the only version that this message can be about.
Result<void> check(const messages::Publication& publication, PolicyVersion version) {
  if (auto fits = check_offered(publication.offered); !fits) return fits;
  if (std::ranges::find(publication.offered, version) == publication.offered.end())
    return wrong("publishes version " + std::to_string(version.value) + " and does not offer it");
  if (const auto& place = publication.broadcast; place && (place->epoch < 1 || place->sequence < 1))
    return wrong("broadcasts a version as number " + std::to_string(place->sequence) +
                 " of epoch " + std::to_string(place->epoch));
  if (publication.version == version && is_version(version) &&
      publication.oldest_retained >= kInitialWeights && publication.oldest_retained <= version &&
      is_amount(publication.seconds))
    return {};
  return wrong("publishes version " + std::to_string(publication.version.value) + " and retains " +
               std::to_string(publication.oldest_retained.value));
}

Result<void> check_probe(const std::vector<float>& probe) {
  if (probe.size() > messages::kProbeMax ||
      !std::ranges::all_of(probe, [](float logprob) { return std::isfinite(logprob); }))
    return wrong("a probe of " + std::to_string(probe.size()) + " log-probabilities");
  return {};
}

// Without an endpoint the source names its host alone; with one all fields are set.
Result<void> check(const wire::WeightSource& source) {
  const bool serves = !source.endpoint.empty();
  for (const std::string* text :
       {&source.host, &source.endpoint, &source.server_key, &source.client_key})
    if (text->empty() == (serves || text == &source.host) || text->size() > wire::kSourceTextMax)
      return wrong("LearnerUp: a source of weights with a field of " +
                   std::to_string(text->size()) + " bytes");
  if (!serves) return {};
  if (const auto at = link::parse_endpoint(source.endpoint); at && !at->is_local()) return {};
  return wrong("LearnerUp: a source of weights at no TCP address");
}

Result<void> check(const messages::LearnerUp& up) {
  if (up.checkpoint && !is_step(up.checkpoint->value))
    return wrong("LearnerUp: checkpoint " + std::to_string(up.checkpoint->value));
  if (auto fits = check_offered(up.offered); !fits) return fits;
  return up.source ? check(*up.source) : Result<void>();
}

Result<void> check(const messages::LearnerBack& back) {
  if (!is_step(back.step.value) || (back.training && *back.training != back.step))
    return wrong("LearnerBack: at step " + std::to_string(back.step.value));
  return back.source ? check(*back.source) : Result<void>();
}

Result<void> check(const messages::Published& published) {
  if (auto fits = check_probe(published.probe); !fits) return fits;
  return check(published.publication, published.publication.version);
}

Result<void> check(const messages::WarmStartProgress& progress) {
  if (progress.step < 0 || progress.steps_max < 0)
    return wrong("WarmStartProgress: step " + std::to_string(progress.step));
  return {};
}

// The warm start makes version 0.
Result<void> check(const messages::WarmStarted& started) {
  if (started.steps < 0) return wrong("WarmStarted: " + std::to_string(started.steps) + " steps");
  if (auto fits = check_probe(started.probe); !fits) return fits;
  return check(started.publication, PolicyVersion{0});
}

// Step s makes version s + 1, so a publication with it can be of no other version.
Result<void> check(const messages::StepCommitted& committed) {
  if (!is_step(committed.step.value))
    return wrong("StepCommitted: step " + std::to_string(committed.step.value));
  const auto& recorded_from = committed.report.recorded_from;
  if (recorded_from && !is_step(recorded_from->value))
    return wrong("StepCommitted: recorded from step " + std::to_string(recorded_from->value));
  if (auto fits = check_probe(committed.probe); !fits) return fits;
  if (!committed.publication) return {};
  return check(*committed.publication, PolicyVersion{committed.step.value + 1});
}

Result<void> check(const messages::CheckpointSaved& saved) {
  // Lower-case hexadecimal, at most the 64 digits of a SHA-256; empty is allowed.
  const bool digest = std::ranges::all_of(saved.weights_sha256, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (is_step(saved.step.value) && digest && saved.weights_sha256.size() <= 64) return {};
  return wrong("CheckpointSaved: step " + std::to_string(saved.step.value) +
               ", or a digest that is none");
}

Result<void> check(const messages::LearnerFailed&) { return {}; }
Result<void> check(const messages::LearnerWaits&) { return {}; }

}  // namespace

template <>
struct Checks<messages::LearnerPeer> {
  Result<void> operator()(const auto& message) const { return check(message); }
};
template link::Door<messages::LearnerPeer::Events> exchange_door<messages::LearnerPeer>(
    const std::string&);

}  // namespace tandem::doors
