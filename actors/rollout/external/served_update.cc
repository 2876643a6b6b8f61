#include "actors/rollout/external/served_update.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/log.h"

namespace tandem::rollout {

ServedUpdate::ServedUpdate(Parts parts, PushFacts facts, std::span<const std::byte> arena)
    : parts_(std::move(parts)),
      push_(parts_.dialect->phases(facts.transfer), parts_.weights->connected()),
      facts_(std::move(facts)) {
  parts_.weights->offer(arena, parts_.versions->label(), [offer = offer_](auto offered) {
    offer->with([&](auto& there) { there = std::move(offered); });
  });
}

ServedUpdate::~ServedUpdate() { parts_.weights->withdraw(); }

void ServedUpdate::take(Result<http::HttpResponse> answer) { answer_ = std::move(answer); }

std::optional<Error> ServedUpdate::failure() const {
  return not_offered_ ? not_offered_ : push_.failure();
}

ServedUpdate::Step ServedUpdate::step() {
  if (failure() || !is_offered()) return {};
  Step step;
  // A phase is over once the server has answered and this side's part has ended.
  if (answer_) {
    const Result<void> answer = outcome(*answer_);
    const auto ours = parts_.weights->outcome(facts_.from);
    if (answer && (!ours || *ours) && ask_for_more()) return {.heard = true};
    if (!ours) {
      if (!answer && !std::exchange(cut_, true)) parts_.weights->cut(answer.error().message);
      return {};
    }
    answer_.reset();
    step = phase_over(both(answer, *ours));
  }
  // The caller first aborts what runs there, which a server that is paused may not hear.
  if (!step.refuted) start_phase();
  return step;
}

// Of two errors the server's leads; this side's says more unless it was cut for the server's.
Result<void> ServedUpdate::both(Result<void> answer, const Result<void>& ours) const {
  if (ours) return answer;
  if (answer) return at_work(ours.error());
  Error error = answer.error();
  if (!cut_) error.message += "; on this side: " + ours.error().message;
  return error;
}

bool ServedUpdate::is_offered() {
  if (offered_) return true;
  auto from = offer_->with([](auto& there) { return std::exchange(there, {}); });
  if (!from) return false;
  offered_ = from->has_value();
  if (offered_)
    facts_.from = **std::move(from);
  else
    not_offered_ = from->error();
  return offered_;
}

void ServedUpdate::start_phase() {
  const auto phase = push_.next();
  if (!phase) return;
  phase_ = *phase;
  facts_.tensors = {};
  cut_ = false;
  parts_.weights->begin(phase_, facts_.ranks);
  ask();
}

// Asks for the phase, or for the tensors of it that are next.
void ServedUpdate::ask() {
  const std::size_t first = facts_.tensors.behind;
  const bool all = !parts_.dialect->sends_by_parts || facts_.transfer != WeightTransfer::kNccl;
  facts_.tensors = all ? TensorRange{0, facts_.manifest->parameters.size()}
                       : tensors_within(*facts_.manifest, first, parts_.call_bytes);
  call_ = parts_.dialect->push(phase_, facts_);
  if (call_.target.empty())
    answer_ = http::HttpResponse{};
  else
    parts_.ask(call_);
}

// This side sends all tensors, whatever calls the server takes them by.
bool ServedUpdate::ask_for_more() {
  if (phase_ != PushPhase::kSend || facts_.tensors.behind == facts_.manifest->parameters.size())
    return false;
  answer_.reset();
  ask();
  return true;
}

Result<void> ServedUpdate::outcome(const Result<http::HttpResponse>& answer) {
  if (!answer) return answer.error();
  if (auto fine = succeeded(call_, *answer); !fine) return fine;
  if (phase_ == PushPhase::kProbe) {
    auto scores = parts_.dialect->read_scores(answer->body, facts_.probe);
    return scores ? parts_.versions->prove(*std::move(scores))
                  : Result<void>(at_work(scores.error()));
  }
  if (phase_ == PushPhase::kRanks) {
    const auto ranks = parts_.dialect->read_ranks(answer->body);
    if (!ranks) return at_work(ranks.error());
    facts_.ranks = *ranks;
  }
  return {};
}

ServedUpdate::Step ServedUpdate::phase_over(const Result<void>& fine) {
  if (fine) {
    push_.succeeded();
    return {.heard = true};
  }
  log::warn("event=push_failed phase={} route={} error=\"{}\"", spelling(phase_), call_.target,
            fine.error().message);
  const bool refuted = phase_ == PushPhase::kProbe;
  // Tokens of these weights may have been sampled meanwhile: their label becomes unknown.
  if (refuted) facts_.label = parts_.versions->refuted();
  push_.failed(fine.error());
  return {.refuted = refuted};
}

}  // namespace tandem::rollout
