#include "runtime/base/base64.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"

namespace tandem {
namespace {

// RFC 4648 §10.
TEST(Base64, IsThatOfTheStandard) {
  const std::pair<const char*, const char*> kExamples[] = {{"", ""},
                                                           {"f", "Zg=="},
                                                           {"fo", "Zm8="},
                                                           {"foo", "Zm9v"},
                                                           {"foob", "Zm9vYg=="},
                                                           {"fooba", "Zm9vYmE="},
                                                           {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kExamples) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
  for (const char* text : {"Zg=", "Zg", "Z===", "Zm9-", "Zm 9v===", "Zm9v\n"})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

TEST(Base64, ReadsBackWhatItHasWritten) {
  Rng rng(7);
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes(size, ' ');
    for (char& byte : bytes) byte = static_cast<char>(rng.next());
    EXPECT_EQ(decode_base64(base64(bytes)), bytes) << size << " bytes";
  }
}

}  // namespace
}  // namespace tandem
