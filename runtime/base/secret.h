// Secrets: random ones, one that several processes share by a file, the proof of knowing one
// without saying it, and a comparison whose time says nothing. Errors of files have the code
// kUnauthorised where a file is not private, else kFailed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem {

inline constexpr std::size_t kSecretBytes = 32;

// kSecretBytes from the kernel's generator, in hex.
std::string random_secret();

// HMAC-SHA256 (RFC 2104) of `text` under `key`, in hex.
std::string hmac_hex(std::string_view key, std::string_view text);

// Whether both are equal, in a time that depends on their lengths alone.
bool same_secret(std::string_view a, std::string_view b);

// The secret in `path`, made there where there is none yet. Several processes may ask at once: all
// get the one that came first, and no reader sees half of it. The file has mode 0600 and belongs to
// this user; one that others can read is refused, since it is no secret any more.
Result<std::string> shared_secret(const std::filesystem::path& path);

// The content of `path`, which must be private as above; without the newline at its end.
Result<std::string> read_secret(const std::filesystem::path& path);

// Makes `path` with mode 0600 and `content`, whole; nothing where it exists already (false).
Result<bool> write_secret(const std::filesystem::path& path, std::string_view content);

// Makes the directory with mode 0700, or takes the rights of group and others from one of ours.
// Errors: it belongs to somebody else, or is a link to elsewhere that does.
Result<void> make_private_directory(const std::filesystem::path& path);

}  // namespace tandem
