// Secrets: random ones, one that several processes share by a file, the proof of knowing a secret
// without sending it, and a comparison whose time tells nothing about the content. Errors have the
// code kUnauthorised where a file or directory is not private, else kFailed. Any thread may call
// these functions.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem {

// Bytes of a random secret, before it is written in hex.
inline constexpr std::size_t kSecretBytes = 32;

// kSecretBytes from the kernel's generator, in hex.
std::string random_secret();

// HMAC-SHA256 (RFC 2104) of `text` under `key`, in hex.
std::string hmac_hex(std::string_view key, std::string_view text);

// Whether both are equal, in a time that depends on their lengths alone: a peer that guesses cannot
// learn from the time how many of its first characters are right.
bool same_secret(std::string_view a, std::string_view b);

// The secret in the file `path`, which is made with a random one where it does not exist. Several
// processes may call at once: all get the secret of the first, and none reads half of it. The file
// has mode 0600 and belongs to this user. A file that others can read or write is refused, since it
// is no secret any more; so are symbolic links and empty files.
Result<std::string> shared_secret(const std::filesystem::path& path);

// The content of `path`, which must be private as above, without the newlines at its end.
Result<std::string> read_secret(const std::filesystem::path& path);

// Makes `path` with mode 0600 and the whole `content`. False where `path` exists already; the file
// there is left as it is.
Result<bool> write_secret(const std::filesystem::path& path, std::string_view content);

// Makes the directory with mode 0700, and its parents with the usual one. If the directory exists
// and is ours, takes the rights of group and others away. An error where it belongs to another
// user, also by way of a link.
Result<void> make_private_directory(const std::filesystem::path& path);

}  // namespace tandem
