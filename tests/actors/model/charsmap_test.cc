// Texts under SentencePiece's nmt_nfkc against those of the `tokenizers` library
// (scripts/make_tokenizer_goldens.py), and blobs that must be refused or at least do no harm.
#include "actors/model/charsmap.h"

#include <gtest/gtest.h>

#include "actors/model/utf8.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "tests/actors/model/tiny_model.h"
#include "tests/seeds.h"

namespace tandem::model {
namespace {

nlohmann::json charsmap_golden(const std::string& file) {
  return parse_json(*read_file(testing::golden_folder() / "tokenizers" / file));
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < three.size() ? static_cast<unsigned char>(three[i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= three.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

void put_unit(std::string& bytes, std::uint32_t unit) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(unit >> shift & 0xFF);
}

struct Blob {
  std::uint32_t place = 0;       // of the text that "a" becomes
  std::uint32_t offset = 1;      // from the unit of "a" to its value
  std::uint32_t size = 256 * 4;  // of the trie, as the blob says
  std::string texts{"b\0", 2};
};

// A map in which "a" alone becomes something.
std::string blob_of(const Blob& blob) {
  std::string bytes;
  put_unit(bytes, blob.size);
  for (std::uint32_t unit = 0; unit < 256; ++unit)
    put_unit(bytes, unit == 'a'         ? 'a' | 1u << 8 | blob.offset << 10
                    : unit == ('a' ^ 1) ? 1u << 31 | blob.place
                                        : 0);
  return bytes + blob.texts;
}

TEST(Charsmap, AgreesWithTheReferenceOnRandomTexts) {
  const nlohmann::json file = charsmap_golden("family_charsmap.json");
  const Result<Charsmap> map =
      Charsmap::parse(file["normalizer"]["precompiled_charsmap"].get<std::string>());
  ASSERT_TRUE(map.has_value()) << render(map.error());
  std::size_t changed = 0;
  for (const auto& item : charsmap_golden("charsmap.golden.json")) {
    const std::string text = item[0], normalized = item[1];
    EXPECT_EQ(map->apply(text).value_or(text), normalized) << item;
    changed += text != normalized ? 1 : 0;
  }
  EXPECT_GT(changed, 100u);
  EXPECT_EQ(map->apply("ﬁ\u0301"), "fi") << "the rest of a short grapheme is dropped";
  EXPECT_EQ(map->apply("plain text"), std::nullopt);
  // As in Unicode 17, for which libutf8proc may be too old.
  EXPECT_EQ(map->apply("\U00011a3ae\u0323"), "\U00011a3a\u1eb9") << "a letter of its own";
  EXPECT_EQ(map->apply("e\u0323\u0897"), std::nullopt) << "one grapheme of 6 bytes";
}

TEST(Charsmap, ABlobIsCheckedWhole) {
  const Result<Charsmap> good = Charsmap::parse(base64(blob_of({})));
  ASSERT_TRUE(good.has_value()) << render(good.error());
  EXPECT_EQ(good->apply("bab"), "bbb");
  const std::pair<std::string, std::string> refused[] = {
      {"not base64!", "Base64"},
      {"AAA", "Base64"},
      {"AA=A", "Base64"},
      {"", "shorter than its first number"},
      {base64(std::string(4, '\0')), "trie has 0 bytes"},
      {base64(blob_of({.size = 256 * 4 + 1})), "trie has 1025 bytes"},
      {base64(blob_of({.size = 4096})), "trie has 4096 bytes, and 1026 follow"},
      {base64(blob_of({.size = 0xFFFFFFFC})), "trie has 4294967292 bytes"},
      {base64(blob_of({.offset = 256})), "leads out of it at unit 97"},
      {base64(blob_of({.place = 2})), "names a text at byte 2"},
      {base64(blob_of({.place = 0x7FFFFFFF})), "names a text at byte 2147483647"},
      {base64(blob_of({.place = 1, .texts = std::string("\u00e9\0", 3)})),
       "byte 1, where none begins"},
      {base64(blob_of({.texts = "b"})), "no end"},
      {base64(blob_of({.texts = ""})), "no end"},
      {base64(blob_of({.texts = std::string("\xff\0", 2)})), "not UTF-8"},
      {base64(blob_of({.texts = std::string(kCharsmapTextBytesMax + 1, 'b') + '\0'})),
       "longer than 256 bytes"}};
  for (const auto& [blob, what] : refused) {
    const Result<Charsmap> map = Charsmap::parse(blob);
    ASSERT_FALSE(map.has_value()) << what;
    EXPECT_NE(map.error().message.find(what), std::string::npos) << map.error().message;
  }
}

// A trie whose units lead back to each other has endless keys: it is walked once, and a search ends
// with its text.
TEST(Charsmap, ATrieWithACycleIsWalkedOnce) {
  std::string bytes;
  put_unit(bytes, 256 * 4);
  for (std::uint32_t unit = 0; unit < 256; ++unit)
    put_unit(bytes, unit == 'a' ? 'a' | static_cast<std::uint32_t>('a') << 10 : 0);
  const Result<Charsmap> map = Charsmap::parse(base64(bytes + '\0'));
  ASSERT_TRUE(map.has_value()) << render(map.error());
  EXPECT_EQ(map->apply("aaaa"), std::nullopt);
}

TEST(Charsmap, SpoiledBytesDoNoHarm) {
  const std::string whole = blob_of({.texts = std::string("b\0\u00e9\0", 5)});
  for_seeds(300, [&](std::uint64_t seed) {
    Rng rng(seed);
    std::string bytes = whole;
    for (int i = 0; i < 40; ++i) {
      // Mostly in the first units, which all searches pass.
      const std::uint64_t at = 4 + rng.below(rng.below(2) == 0 ? 4 * 128 : bytes.size() - 4);
      bytes[at] = static_cast<char>(rng.below(256));
    }
    const Result<Charsmap> map = Charsmap::parse(base64(bytes));
    if (!map) return;
    std::string text;
    for (int i = 0; i < 200; ++i) append_utf8(text, static_cast<std::uint32_t>(rng.below(0x800)));
    const auto changed = map->apply(text);
    EXPECT_FALSE(changed && first_malformed_utf8(*changed));
  });
}

}  // namespace
}  // namespace tandem::model
