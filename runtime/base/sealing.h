// Authenticated encryption of records that travel in order between two processes: AES-256-GCM (NIST
// SP 800-38D). Both ends count the records, and the count is the nonce, so that nothing of it
// travels. A key serves one direction of one connection.
//
//   SG-1  What was sealed is opened only as it was, with the same head, and in its place: a record
//         that was changed, left out, repeated or moved is refused.
//
// Not responsible for: how both ends come by the same keys, and for telling that the last records
// of a connection are missing. Objects are used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace tandem {

using SealKey = std::array<std::byte, 32>;
inline constexpr std::size_t kSealBytes = 16;  // by which a sealed record is longer

// The key for one purpose, from a secret that may have several: HMAC-SHA256 of `purpose` under it.
SealKey seal_key(std::string_view secret, std::string_view purpose);

struct SealCipher;  // the cipher's state and the count of records
struct SealCipherDeleter {
  void operator()(SealCipher* cipher) const;
};

class Sealer {
 public:
  explicit Sealer(const SealKey& key);
  // Writes the sealed record to `out`, which is longer than `plain` by kSealBytes. The head stays
  // readable.
  void seal(std::span<const std::byte> head, std::span<const std::byte> plain,
            std::span<std::byte> out);

 private:
  std::unique_ptr<SealCipher, SealCipherDeleter> cipher_;
};

class Opener {
 public:
  explicit Opener(const SealKey& key);
  // False: it is not the next record as it was sealed. Then `out` is unspecified, and no record
  // can follow. `out` is shorter than `sealed` by kSealBytes.
  [[nodiscard]] bool open(std::span<const std::byte> head, std::span<const std::byte> sealed,
                          std::span<std::byte> out);

 private:
  std::unique_ptr<SealCipher, SealCipherDeleter> cipher_;
};

}  // namespace tandem
