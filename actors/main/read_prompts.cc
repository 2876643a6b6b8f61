#include "actors/main/read_prompts.h"

#include <utility>

namespace tandem::app {

void ReadPrompts::keep(JobPrompts prompts, controller::JobShape& shape) {
  const auto owner = std::make_shared<Owner>(Owner{shape.spec, std::move(prompts)});
  shape.spec = std::shared_ptr<const job::JobSpec>(owner, owner->job.get());
  last_.with([&](std::weak_ptr<Owner>& last) {
    if (const auto before = last.lock()) before->prompts.reset();
    last = owner;
  });
}

std::optional<JobPrompts> ReadPrompts::take(const controller::JobShape& shape) {
  return last_.with([&](std::weak_ptr<Owner>& last) -> std::optional<JobPrompts> {
    const auto owner = last.lock();
    if (!owner || owner->job != shape.spec) return {};
    return std::exchange(owner->prompts, std::nullopt);
  });
}

}  // namespace tandem::app
