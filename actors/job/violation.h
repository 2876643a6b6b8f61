// A rule over several keys that a job breaks, and checks that several rules share.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tandem::job {

struct Violation {
  std::string key;  // the key to change; the error points at its place
  std::string message;
  std::string help;
};

// Adds a violation for each name that cannot name an environment variable. `key` is the map's.
void check_variables(const std::map<std::string, std::string>& env, const std::string& key,
                     std::vector<Violation>& broken);

}  // namespace tandem::job
