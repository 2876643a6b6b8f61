// The build id of a program or a library: a digest of its code and data that the linker writes
// into the file, as the note NT_GNU_BUILD_ID. Two files with the same id behave in the same way,
// whatever their names and times are; a file that was stripped keeps its id. The version alone does
// not tell two builds apart.
//
// Not responsible for: who compares ids (runtime/link/program_build.h).
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// That of the program which this process runs, in hexadecimal digits; empty where its linker wrote
// none. It is read from memory: the file may have been replaced.
std::string own_build_id();

// That of an ELF file for this machine; empty where there is no such file, or no id in it. The file
// is trusted no further than its length.
std::string build_id_of(const std::filesystem::path& file);

}  // namespace tandem
