// The texts that reward actors send beside scores, kept for people until their group is trained,
// and the means of the numbers in objects `extra`. Plain state; nothing here is journalled: a run
// that is resumed generates its live groups anew.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/exchange/evaluation_means.h"

namespace tandem::exchange {

// Notes about the scores of one group, [n] each or empty.
struct ScoreNotes {
  std::vector<std::string> extras;  // as Scored::extra
  // Why a completion has the reward of reward.on_failure; empty where it was scored.
  std::vector<std::string> errors;
};

// The numbers of an object `extra` by their names in metrics: letters, digits, `.`, `_` and `-`,
// with a `_` for any other character. A boolean is 1 or 0; `pred` is an answer and no figure. Where
// two names become one, the last number counts. Empty for a text that is no object.
std::map<std::string, double> numbers_in(std::string_view extra);

class ExtraKeys {
 public:
  // The mean of each number of these objects over those that have it. The first kExtraKeysMax names
  // of the run are taken.
  std::map<std::string, double> means(const std::vector<std::string_view>& extras);
  // An evaluation had no room for this name.
  void leave_out(const std::string& name);
  // The first name that found no room; given once.
  std::optional<std::string> left_out();

 private:
  std::set<std::string> known_;
  std::optional<std::string> left_out_;
  bool told_ = false;
};

}  // namespace tandem::exchange
