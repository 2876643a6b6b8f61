#include "actors/main/read_prompts.h"

#include <algorithm>
#include <utility>

namespace tandem::app {
namespace {

std::uint64_t bytes_of(const JobPrompts& prompts) {
  std::uint64_t bytes = prompts.training.records.memory_bytes();
  for (const job::Record& record : prompts.validation)
    bytes += sizeof record + record.prompt.size() + record.json.size();
  return bytes;
}

}  // namespace

void ReadPrompts::keep(JobPrompts prompts, controller::JobShape& shape) {
  const std::uint64_t bytes = bytes_of(prompts);
  const auto owner = std::make_shared<Owner>(Owner{shape.spec, bytes, std::move(prompts)});
  shape.spec = std::shared_ptr<const job::JobSpec>(owner, owner->job.get());
  kept_.with([&](std::vector<std::weak_ptr<Owner>>& kept) {
    std::uint64_t all = bytes;
    for (auto one = kept.rbegin(); one != kept.rend(); ++one) {
      const auto before = one->lock();
      if (!before || !before->prompts) continue;
      all += before->bytes;
      if (all > bytes_max_) before->prompts.reset();
    }
    std::erase_if(kept, [](const std::weak_ptr<Owner>& one) {
      const auto before = one.lock();
      return !before || !before->prompts;
    });
    kept.push_back(owner);
  });
}

std::optional<JobPrompts> ReadPrompts::take(const controller::JobShape& shape) {
  return kept_.with([&](std::vector<std::weak_ptr<Owner>>& kept) -> std::optional<JobPrompts> {
    for (const std::weak_ptr<Owner>& one : kept)
      if (const auto owner = one.lock(); owner && owner->job == shape.spec)
        return std::exchange(owner->prompts, std::nullopt);
    return {};
  });
}

}  // namespace tandem::app
