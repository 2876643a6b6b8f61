// Arguments, or an environment, in the form that execve and posix_spawn take: pointers to the
// strings, and a null pointer at the end. The strings must outlive the result and must not move.
#pragma once

#include <string>
#include <vector>

namespace tandem::node {

inline std::vector<char*> argument_vector(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace tandem::node
