#include "tests/actors/controller/simulated_server.h"

#include <utility>

namespace tandem::controller {

namespace {

Error died() { return {ErrorCode::kFailed, "the process has died"}; }

// `function` as an effect; `otherwise` is what a dead process sees.
template <class R, class... A, class Otherwise>
std::function<R(A...)> effect(std::function<R(A...)> function, const SharedLife& life,
                              Otherwise otherwise) {
  return [function = std::move(function), life, otherwise](A... arguments) -> R {
    if (life->acts()) return function(std::forward<A>(arguments)...);
    return otherwise();
  };
}

}  // namespace

bool ServerLife::acts() {
  if (!dead_ && before_effect_) before_effect_();
  return !dead_;
}

void ServerLife::stall(actor::SimulatedExecutor& simulation, Duration time) {
  executor.stop();
  simulation.at(simulation.now() + time, [weak = weak_from_this()] {
    if (const auto life = weak.lock()) life->executor.go_on();
  });
}

// Messages are effects of their links, not of the functions that make their Refs.
ControllerActions mortal(ControllerActions actions, const SharedLife& life) {
  const auto nothing = [] {};
  actions.expect = effect(std::move(actions.expect), life, nothing);
  actions.cut_link = effect(std::move(actions.cut_link), life, nothing);
  actions.make_run_directory = effect(std::move(actions.make_run_directory), life,
                                      []() -> Result<RunDirectory> { return died(); });
  actions.open_exchange = effect(std::move(actions.open_exchange), life,
                                 []() -> Result<actor::Ref<ExchangeControl>> { return died(); });
  actions.close_exchange = effect(std::move(actions.close_exchange), life, nothing);
  const auto failed = []() -> Result<void> { return died(); };
  actions.write_result = effect(std::move(actions.write_result), life, failed);
  actions.journal = effect(std::move(actions.journal), life, failed);
  actions.remember = effect(std::move(actions.remember), life, failed);
  return actions;
}

Result<void> MortalRecord::journal(std::span<const exchange::JournalEvent> events,
                                   sqlite::Durability durability) {
  if (!life_->acts()) return died();
  before_write_();
  return record_.journal(events, durability);
}

void MortalRecord::keep_image(const exchange::RunImage& image) {
  if (life_->acts()) record_.keep_image(image);
}

Result<bool> MortalRecord::metrics(const std::string& json_line) {
  return life_->acts() ? record_.metrics(json_line) : Result<bool>(died());
}

Result<void> MortalRecord::take_up(const std::string& yaml) {
  return life_->acts() ? record_.take_up(yaml) : Result<void>(died());
}

Result<void> MortalRecord::rewind_metrics(StepId checkpoint) {
  return life_->acts() ? record_.rewind_metrics(checkpoint) : Result<void>(died());
}

Result<bool> MortalRecord::sample(const std::string& json_line) {
  return life_->acts() ? record_.sample(json_line) : Result<bool>(died());
}

std::vector<std::string> MortalRecord::take_warnings() {
  return life_->acts() ? record_.take_warnings() : std::vector<std::string>();
}

Result<void> MortalRecord::name_best(StepId step) {
  return life_->acts() ? record_.name_best(step) : Result<void>(died());
}

Result<void> MortalRecord::result(const std::string& text) {
  return life_->acts() ? record_.result(text) : Result<void>(died());
}

Result<exchange::GroupHistory> MortalRecord::history() { return record_.history(); }

void MortalPayloads::settle() {
  if (life_->acts()) store_.settle();
}

void MortalPayloads::release(const wire::PayloadRef& payload) {
  if (life_->acts()) store_.release(payload);
}

}  // namespace tandem::controller
