// Digests of bytes, and bytes as hexadecimal digits.
//
//   SHA-256   for results that people compare, such as weights_sha256: every system has a tool
//   XXH3-64   for damage that the program looks for (payloads, published weights): at memory speed
//   CRC-32C   for file formats of others that ask for it
//
// None of the three keeps a secret or proves who wrote the bytes; for that see secret.h. All have
// the same value on every machine. Objects of one thread at a time; functions from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tandem {

// Two lower-case digits for each byte.
std::string hex(std::span<const std::byte> bytes);
// The digest in hex, 64 digits.
std::string sha256_hex(std::span<const std::byte> bytes);
// XXH3 with 64 bits and no seed.
std::uint64_t checksum64(std::span<const std::byte> bytes);

// sha256_hex of bytes that come in parts, none of which is kept.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> part);
  // The digest of all parts so far; more parts may follow.
  std::string hex() const;

 private:
  struct StateDeleter {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, StateDeleter> state_;  // an EVP_MD_CTX
};

// checksum64 of bytes that arrive in parts. The value does not depend on how the bytes were cut.
class Checksum64 {
 public:
  Checksum64();
  void update(std::span<const std::byte> part);
  // The checksum of all parts so far; more parts may follow.
  std::uint64_t value() const;

 private:
  struct StateDeleter {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, StateDeleter> state_;  // an XXH3_state_t
};

// The CRC of Castagnoli's polynomial, as in RFC 3720.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace tandem
