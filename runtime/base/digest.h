// Digests of bytes: SHA-256 where a person compares results (weights_sha256, OpenSSL's), XXH3-64
// where a program looks for damage (payloads, published weights; libxxhash's), CRC-32C where a
// format of others asks for it (Boost's); and bytes as a person reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tandem {

std::string hex(std::span<const std::byte> bytes);  // two lower-case digits for each
std::string sha256_hex(std::span<const std::byte> bytes);
std::uint64_t checksum64(std::span<const std::byte> bytes);

// sha256_hex of bytes that come in parts, none of which is kept.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> part);
  std::string hex() const;  // of all parts so far

 private:
  struct StateDeleter {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, StateDeleter> state_;  // an EVP_MD_CTX
};

// checksum64 of bytes that arrive in parts: it does not depend on how they were cut.
class Checksum64 {
 public:
  Checksum64();
  void update(std::span<const std::byte> part);
  std::uint64_t value() const;  // of all parts so far

 private:
  struct StateDeleter {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, StateDeleter> state_;  // an XXH3_state_t
};

std::uint32_t crc32c(std::span<const std::byte> bytes);  // Castagnoli's, as in RFC 3720

}  // namespace tandem
