#include "runtime/base/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
// Replaces the functions of xxhash.h by ones that choose the widest vectors of the processor at run
// time, which doubles the rate for bytes in the cache. The values are the same.
#include <xxh_x86dispatch.h>

#include <array>
#include <boost/crc.hpp>

#include "runtime/base/check.h"

namespace tandem {

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte >> 4)];
    text += kDigits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return hex(std::as_bytes(std::span(digest)));
}

void Sha256::StateDeleter::operator()(void* state) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(state));
}

Sha256::Sha256() : state_(EVP_MD_CTX_new()) {
  CHECK(state_ != nullptr);
  CHECK(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(state_.get()), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> part) {
  CHECK(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(state_.get()), part.data(), part.size()) == 1);
}

std::string Sha256::hex() const {
  // EVP_DigestFinal_ex ends the context that it is given: a copy is ended, so that more parts can
  // follow.
  const Sha256 ended;
  auto* const copy = static_cast<EVP_MD_CTX*>(ended.state_.get());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  CHECK(EVP_MD_CTX_copy_ex(copy, static_cast<const EVP_MD_CTX*>(state_.get())) == 1);
  CHECK(EVP_DigestFinal_ex(copy, digest.data(), nullptr) == 1);
  return tandem::hex(std::as_bytes(std::span(digest)));
}

std::uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void Checksum64::StateDeleter::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

Checksum64::Checksum64() : state_(XXH3_createState()) {
  CHECK(state_ != nullptr);
  CHECK(XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get())) == XXH_OK);
}

void Checksum64::update(std::span<const std::byte> part) {
  CHECK(XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), part.data(), part.size()) ==
        XXH_OK);
}

std::uint64_t Checksum64::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  // Width, polynomial, first remainder, final exclusive-or, bits of input and of output reflected.
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return static_cast<std::uint32_t>(crc.checksum());
}

}  // namespace tandem
