#include "actors/translate/foreign_config.h"

#include <algorithm>

namespace tandem::translate {
namespace {

constexpr std::size_t kNotesMax = 1000;

bool is_below(std::string_view key, std::string_view section) {
  return key.size() > section.size() && key.starts_with(section) && key[section.size()] == '.';
}

}  // namespace

void ForeignConfig::set(ForeignValue value) {
  if (const auto at = places_.find(value.key); at != places_.end()) {
    values_[at->second] = std::move(value);
    return;
  }
  if (values_.size() == kValuesMax) {
    full_ = true;
    return;
  }
  places_.emplace(value.key, values_.size());
  values_.push_back(std::move(value));
}

void ForeignConfig::remove(std::string_view key) {
  std::erase_if(values_, [key](const ForeignValue& value) {
    return value.key == key || is_below(value.key, key);
  });
  places_.clear();
  for (std::size_t i = 0; i < values_.size(); ++i) places_.emplace(values_[i].key, i);
}

void ForeignConfig::note(Note note) {
  if (notes_.size() < kNotesMax) notes_.push_back(std::move(note));
}

void ForeignConfig::add(const ForeignConfig& other) {
  for (const ForeignValue& value : other.values_) set(value);
  for (const Note& one : other.notes_) note(one);
  full_ = full_ || other.full_;
}

const ForeignValue* ForeignConfig::find(std::string_view key) const {
  const auto at = places_.find(key);
  return at == places_.end() ? nullptr : &values_[at->second];
}

bool ForeignConfig::has_section(std::string_view section) const {
  const std::string prefix = std::string(section) + ".";
  const auto at = places_.lower_bound(prefix);
  return at != places_.end() && at->first.starts_with(prefix);
}

}  // namespace tandem::translate
