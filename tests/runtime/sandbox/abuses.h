// The part of attacks.cc that takes too much or does not end: the test looks at how the run ended.
#pragma once

#include <cstddef>
#include <string>

namespace tandem::sandbox {

const std::string& at(const char* key);  // of KEY=VALUE of the command line

inline constexpr std::size_t kMuchMemory = 512u << 20;
bool touch(char* bytes, std::size_t size);  // false: there is no such memory

bool spin();
bool spin_and_ignore();
bool wait_for_ever();
bool flood();
bool flood_errors();
bool fork_for_ever();
bool fork_and_leave();
bool dump_core();
bool grandchild();
bool leave_much();
bool be_sibling();
bool be_victim();
bool memory_of_many();

}  // namespace tandem::sandbox
