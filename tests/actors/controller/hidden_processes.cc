#include "tests/actors/controller/hidden_processes.h"

#include <algorithm>
#include <utility>

namespace tandem::controller {

void HiddenProcesses::hide(const std::string& host, Time until) {
  Host& hidden = hosts_[host];
  hidden.until = std::max(hidden.until, until);
  hidden.known = false;
}

void HiddenProcesses::introduced(const std::string& host, Time now, std::set<node::RankId> living) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end() || found->second.known || now < found->second.until) return;
  found->second.known = true;
  found->second.left_over = std::move(living);
}

bool HiddenProcesses::may_be_left_over(const std::string& host, const node::RankId& rank,
                                       Time now) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end() || now >= found->second.until + kLeftOverMax) return false;
  return !found->second.known || found->second.left_over.contains(rank);
}

}  // namespace tandem::controller
