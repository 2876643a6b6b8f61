// Look-ups are linear: there are fewer than 200 rows, and a job file is read once.
#include "actors/job/job_table.h"

#include <algorithm>
#include <cmath>

namespace tandem::job {

bool Range::contains(double value) const {
  return (min_open ? value > min : value >= min) && (max_open ? value < max : value <= max);
}

bool Range::bounded() const { return std::isfinite(min) || std::isfinite(max); }

const Key* find_key(std::string_view path) {
  for (const Key& key : job_keys())
    if (key.path == path || std::ranges::find(key.aliases, path) != key.aliases.end()) return &key;
  return nullptr;
}

const Section* find_section(std::string_view path) {
  for (const Section& section : job_sections())
    if (section.path == path) return &section;
  return nullptr;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string_view section_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// Fields of optional sections can be referred to only while these are present.
JobSpec full_default_job() {
  JobSpec job;
  for (const Section& section : job_sections())
    if (section.set_present) section.set_present(job, true);
  return job;
}

}  // namespace tandem::job
