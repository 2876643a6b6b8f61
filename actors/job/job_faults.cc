#include "actors/job/job_faults.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tandem::job {
namespace {

bool before(const SourcePosition& a, const SourcePosition& b) {
  return std::tie(a.source, a.line, a.column) < std::tie(b.source, b.line, b.column);
}

}  // namespace

bool JobFaults::would_tell(const SourcePosition& at) const {
  return kept_.size() < kErrorsToldMax || before(at, kept_.back().at);
}

void JobFaults::add(const SourcePosition& at, std::string message, std::string help) {
  const auto after = std::ranges::upper_bound(kept_, at, before, &Fault::at);
  kept_.insert(after, {at, std::move(message), std::move(help)});
  if (kept_.size() <= kErrorsToldMax) return;
  kept_.pop_back();
  ++left_out_;
}

Error JobFaults::error(ErrorCode code) const {
  CHECK(!kept_.empty());
  const Fault& first = kept_.front();
  Error error{code, first.message, first.at.text, first.help};
  for (std::size_t i = 1; i < kept_.size(); ++i)
    error.further.push_back({kept_[i].message, kept_[i].at.text, kept_[i].help});
  error.further_left_out = left_out_;
  return error;
}

}  // namespace tandem::job
