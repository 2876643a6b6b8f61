#include "actors/main/kept_prompts.h"

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

std::shared_ptr<KeptPrompts::Owner> KeptPrompts::owner_of(const Owners& owners,
                                                          const controller::JobShape& shape) {
  for (const std::weak_ptr<Owner>& one : owners)
    if (auto owner = one.lock(); owner && owner->prompts && owner->job == shape.spec) return owner;
  return nullptr;
}

std::shared_ptr<void> KeptPrompts::turn_to_read() {
  return reader_.with([](std::weak_ptr<void>& reader) -> std::shared_ptr<void> {
    if (!reader.expired()) return nullptr;
    auto turn = std::make_shared<char>();
    reader = turn;
    return turn;
  });
}

void KeptPrompts::keep(JobPrompts prompts, controller::JobShape& shape) {
  const std::uint64_t bytes = bytes_of(prompts);
  const auto owner = std::make_shared<Owner>(
      Owner{.job = shape.spec, .bytes = bytes, .accepted = false, .prompts = std::move(prompts)});
  shape.spec = std::shared_ptr<const job::JobSpec>(owner, owner->job.get());
  owners_.with([&](Owners& owners) {
    std::erase_if(owners, [](const std::weak_ptr<Owner>& one) {
      const auto before = one.lock();
      return !before || !before->prompts;
    });
    owners.push_back(owner);
  });
}

void KeptPrompts::accept(const controller::JobShape& shape) {
  owners_.with([&](Owners& owners) {
    const auto accepted = owner_of(owners, shape);
    if (!accepted) return;
    accepted->accepted = true;
    std::erase_if(owners, [&](const auto& one) { return one.lock() == accepted; });
    std::uint64_t all = accepted->bytes;
    for (auto one = owners.rbegin(); one != owners.rend(); ++one) {
      const auto before = one->lock();
      if (!before || !before->prompts || !before->accepted) continue;
      all += before->bytes;
      if (all > bytes_max_) before->prompts.reset();
    }
    owners.push_back(accepted);
  });
}

std::optional<JobPrompts> KeptPrompts::take(const controller::JobShape& shape) {
  return owners_.with([&](const Owners& owners) -> std::optional<JobPrompts> {
    const auto owner = owner_of(owners, shape);
    return owner ? std::exchange(owner->prompts, std::nullopt) : std::nullopt;
  });
}

}  // namespace tandem::app
