#include "runtime/base/sealing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/digest.h"

namespace tandem {
namespace {

using Bytes = std::vector<std::byte>;

Bytes in_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes sealed(Sealer& sealer, std::string_view head, std::string_view text) {
  Bytes out(text.size() + kSealBytes);
  sealer.seal(in_bytes(head), in_bytes(text), out);
  return out;
}

// The text of a record; "refused" where it is not opened.
std::string opened(Opener& opener, std::string_view head, const Bytes& record) {
  std::string text(record.size() - kSealBytes, ' ');
  return opener.open(in_bytes(head), record, std::as_writable_bytes(std::span(text))) ? text
                                                                                      : "refused";
}

const SealKey kKey = seal_key("secret", "one way");

TEST(Sealing, opens_what_was_sealed_in_its_order) {
  Sealer sealer(kKey);
  Opener opener(kKey);
  for (const char* text : {"gradients", "gradients", "", "more of them"})
    EXPECT_EQ(opened(opener, "head", sealed(sealer, "head", text)), text);
}

// Case 14 of the specification by McGrew and Viega: AES-256 with a key and a nonce of zeros.
TEST(Sealing, is_the_cipher_that_others_know) {
  Sealer sealer(SealKey{});
  Bytes out(16 + kSealBytes);
  sealer.seal({}, Bytes(16), out);
  EXPECT_EQ(hex(out), "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(Sealing, SG_1_a_record_that_was_changed_anywhere_is_refused) {
  for (std::size_t at = 0; at < 9 + kSealBytes; ++at) {
    Sealer sealer(kKey);
    Opener opener(kKey);
    Bytes record = sealed(sealer, "head", "gradients");
    record[at] ^= std::byte{1};
    EXPECT_EQ(opened(opener, "head", record), "refused") << at;
  }
  Sealer sealer(kKey);
  Opener opener(kKey);
  EXPECT_EQ(opened(opener, "Head", sealed(sealer, "head", "gradients")), "refused");
}

TEST(Sealing, SG_1_a_record_in_another_place_is_refused) {
  Sealer sealer(kKey);
  const Bytes first = sealed(sealer, "", "first"), second = sealed(sealer, "", "second");
  Opener skips(kKey), repeats(kKey);
  EXPECT_EQ(opened(skips, "", second), "refused");
  EXPECT_EQ(opened(repeats, "", first), "first");
  EXPECT_EQ(opened(repeats, "", first), "refused");
}

TEST(Sealing, SG_1_keys_of_other_purposes_and_secrets_open_nothing) {
  Sealer sealer(kKey);
  const Bytes record = sealed(sealer, "", "gradients");
  Opener back(seal_key("secret", "the other way")), stranger(seal_key("a guess", "one way"));
  EXPECT_EQ(opened(back, "", record), "refused");
  EXPECT_EQ(opened(stranger, "", record), "refused");
}

}  // namespace
}  // namespace tandem
