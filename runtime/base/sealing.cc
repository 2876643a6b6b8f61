#include "runtime/base/sealing.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/check.h"

namespace tandem {

struct SealCipher {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  std::uint64_t count = 0;
};

void SealCipherDeleter::operator()(SealCipher* cipher) const {
  EVP_CIPHER_CTX_free(cipher->context);
  delete cipher;
}

namespace {

constexpr std::size_t kNonceBytes = 12;

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* room_of(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

std::unique_ptr<SealCipher, SealCipherDeleter> make_cipher(const SealKey& key, int encrypts) {
  std::unique_ptr<SealCipher, SealCipherDeleter> cipher(new SealCipher);
  CHECK(cipher->context != nullptr);
  CHECK(EVP_CipherInit_ex(cipher->context, EVP_aes_256_gcm(), nullptr, data_of(key), nullptr,
                          encrypts) == 1);
  return cipher;
}

// Begins the next record: the nonce is its number. No bytes would mean the end to some versions of
// the library.
void begin_record(SealCipher& cipher, std::span<const std::byte> head) {
  std::array<unsigned char, kNonceBytes> nonce{};
  std::memcpy(nonce.data(), &cipher.count, sizeof cipher.count);
  ++cipher.count;
  int length = 0;
  CHECK(EVP_CipherInit_ex(cipher.context, nullptr, nullptr, nullptr, nonce.data(), -1) == 1);
  if (head.empty()) return;
  CHECK(EVP_CipherUpdate(cipher.context, nullptr, &length, data_of(head),
                         static_cast<int>(head.size())) == 1);
}

void convert(SealCipher& cipher, std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.empty()) return;
  int length = 0;
  CHECK(EVP_CipherUpdate(cipher.context, room_of(out), &length, data_of(in),
                         static_cast<int>(in.size())) == 1);
  CHECK(static_cast<std::size_t>(length) == in.size());
}

}  // namespace

SealKey seal_key(std::string_view secret, std::string_view purpose) {
  SealKey key;
  unsigned int length = 0;
  const auto* const text = reinterpret_cast<const unsigned char*>(purpose.data());
  CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text, purpose.size(),
             room_of(key), &length) != nullptr);
  CHECK(length == key.size());
  return key;
}

Sealer::Sealer(const SealKey& key) : cipher_(make_cipher(key, 1)) {}

void Sealer::seal(std::span<const std::byte> head, std::span<const std::byte> plain,
                  std::span<std::byte> out) {
  CHECK(out.size() == plain.size() + kSealBytes);
  begin_record(*cipher_, head);
  convert(*cipher_, plain, out.first(plain.size()));
  int none = 0;
  CHECK(EVP_CipherFinal_ex(cipher_->context, room_of(out.last(kSealBytes)), &none) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(cipher_->context, EVP_CTRL_AEAD_GET_TAG, kSealBytes,
                            room_of(out.last(kSealBytes))) == 1);
}

Opener::Opener(const SealKey& key) : cipher_(make_cipher(key, 0)) {}

bool Opener::open(std::span<const std::byte> head, std::span<const std::byte> sealed,
                  std::span<std::byte> out) {
  CHECK(sealed.size() == out.size() + kSealBytes);
  begin_record(*cipher_, head);
  convert(*cipher_, sealed.first(out.size()), out);
  std::array<std::byte, kSealBytes> tag;
  std::ranges::copy(sealed.last(kSealBytes), tag.begin());
  CHECK(EVP_CIPHER_CTX_ctrl(cipher_->context, EVP_CTRL_AEAD_SET_TAG, kSealBytes, room_of(tag)) ==
        1);
  unsigned char none = 0;
  int length = 0;
  return EVP_CipherFinal_ex(cipher_->context, &none, &length) == 1;
}

}  // namespace tandem
