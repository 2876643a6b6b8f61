#include "runtime/weights/shared_pins.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::weights {

Result<SharedPins> SharedPins::open(const WeightsConfig& config) {
  auto opened = ShmSegment::open(config, ShmSegment::Access::kReadSlots);
  if (!opened) return opened.error();
  if (!*opened) {
    return Error{.message = "cannot serve " + config.name + ": its shared memory has gone",
                 .where = ShmSegment::path_of(config.name).string()};
  }
  auto segment = std::make_unique<ShmSegment>(std::move(**opened));
  std::vector<Pin> pins;
  for (int i = 0; i < config.slots; ++i) {
    const Result<ShmReader> reader =
        ShmReader::enter(*segment, config, pins.empty() ? nullptr : &pins.back().reader);
    if (!reader) return reader.error();
    pins.push_back({.reader = *reader});
  }
  return SharedPins(std::move(segment), std::move(pins));
}

SharedPins::Pin* SharedPins::pin_of(std::size_t slot) {
  const auto found = std::ranges::find(pins_, std::optional(slot), &Pin::slot);
  return found == pins_.end() ? nullptr : &*found;
}

std::optional<std::size_t> SharedPins::acquire(const WeightOffer& wanted) {
  const std::vector<WeightOffer> there = offers();
  if (std::ranges::find(there, wanted) == there.end()) return std::nullopt;
  // A slot that an entry has pinned already needs no second entry.
  for (Pin& pin : pins_) {
    if (!pin.slot || !offered(*pin.slot) || content(*pin.slot) != wanted) continue;
    ++pin.copies;
    return pin.slot;
  }
  const auto free = std::ranges::find_if(pins_, [](const Pin& pin) { return !pin.slot; });
  if (free == pins_.end()) return std::nullopt;
  const std::optional<std::size_t> slot = free->reader.pin(wanted.version);
  if (!slot) return std::nullopt;
  // pin() compares the version alone; other content may have been published under it meanwhile.
  if (content(*slot) != wanted) {
    free->reader.unpin();
    return std::nullopt;
  }
  free->slot = slot;
  free->copies = 1;
  return slot;
}

void SharedPins::release(std::size_t slot) {
  Pin* const pin = pin_of(slot);
  CHECK(pin != nullptr && pin->copies > 0);
  if (--pin->copies > 0) return;
  pin->slot.reset();
  pin->reader.unpin();
}

WeightOffer SharedPins::content(std::size_t pinned) const {
  const SegmentSlot& slot = segment_->header().slot[pinned];
  return {.version = {slot.version.load()}, .checksum = slot.checksum.load()};
}

// offer_of() would not do: while a publisher takes a claim back the sequence is odd for a moment,
// although the pinned slot is still offered.
bool SharedPins::offered(std::size_t slot) const {
  return segment_->header().slot[slot].offered == 1;
}

std::vector<WeightOffer> SharedPins::offers() const {
  std::vector<WeightOffer> all;
  for (std::size_t i = 0; i < pins_.size(); ++i) {
    const bool pinned = std::ranges::find(pins_, std::optional(i), &Pin::slot) != pins_.end();
    if (pinned && offered(i)) all.push_back(content(i));
    if (pinned) continue;
    if (const auto offer = offer_of(segment_->header().slot[i])) all.push_back(*offer);
  }
  return all;
}

}  // namespace tandem::weights
