// The codec: decoding gives the encoded values, the bytes are those of the msgpack specification,
// and hostile bytes give errors that name their place, without memory being taken for lengths that
// they only claim.
#include "runtime/wire/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "runtime/base/rng.h"
#include "runtime/wire/payload_ref.h"

namespace {
std::size_t allocated = 0;  // bytes that operator new has ever given out
}  // namespace

// The two operators are not inlined: the compiler would take the two halves of a pair for a
// mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocated += size;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace wire_example {

using tandem::Duration;
using tandem::GroupId;
using tandem::PolicyVersion;
using tandem::Time;

enum class Color : std::uint8_t { kRed, kGreen, kBlue };
TANDEM_WIRE_ENUM(Color, kRed, kGreen, kBlue)
enum class Sign { kMinus = -1, kPlus = 1 };
TANDEM_WIRE_ENUM(Sign, kMinus, kPlus)
enum class Unlisted { kValue };

struct Inner {
  std::int16_t small = 0;
  std::string text;
  bool operator==(const Inner&) const = default;
};
TANDEM_WIRE(Inner, small, text)

struct Nothing {
  bool operator==(const Nothing&) const = default;
};
TANDEM_WIRE_EMPTY(Nothing)

struct Everything {
  bool yes = false;
  std::int8_t i8 = 0;
  std::uint16_t u16 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  float f = 0;
  double d = 0;
  std::string text;
  Color color = Color::kRed;
  Sign sign = Sign::kPlus;
  GroupId group;
  Time at;
  Duration took{};
  std::optional<PolicyVersion> version;
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<PolicyVersion> versions;
  std::vector<std::byte> raw;
  std::vector<bool> flags;
  std::vector<Inner> inners;
  std::map<std::string, double> metrics;
  std::variant<Nothing, Inner, std::string> either;
  std::vector<std::variant<Inner, Nothing>> mixed;
  std::optional<Inner> maybe;
  bool operator==(const Everything&) const = default;
};
TANDEM_WIRE(Everything, yes, i8, u16, i64, u64, f, d, text, color, sign, group, at, took, version,
            tokens, logprobs, versions, raw, flags, inners, metrics, either, mixed, maybe)

struct Tree {
  std::vector<Tree> children;
};
TANDEM_WIRE(Tree, children)

struct Heavy {
  std::vector<std::optional<Everything>> items;
};
TANDEM_WIRE(Heavy, items)

static_assert(tandem::wire::WiredEnum<Color> && !tandem::wire::WiredEnum<Unlisted>);

struct Forgetful {
  int a = 0;
  std::vector<int> b;
};

}  // namespace wire_example

namespace tandem::wire {
namespace {

using namespace wire_example;

Everything random_value(Rng& rng) {
  const auto text = [&] {
    return std::string(rng.below(70), static_cast<char>('a' + rng.below(26)));
  };
  const auto any = [&] { return rng.next() >> rng.below(64); };
  Everything v;
  v.yes = rng.below(2) == 1;
  v.i8 = static_cast<std::int8_t>(any());
  v.u16 = static_cast<std::uint16_t>(any());
  v.i64 = static_cast<std::int64_t>(any()) * (rng.below(2) ? 1 : -1);
  v.u64 = any();
  v.f = static_cast<float>(rng.normal());
  v.d = rng.normal();
  v.text = text();
  v.color = static_cast<Color>(rng.below(3));
  v.sign = rng.below(2) ? Sign::kMinus : Sign::kPlus;
  v.group = {any()};
  v.at = {static_cast<std::int64_t>(any() >> 1)};
  v.took = Duration(static_cast<std::int64_t>(any() >> 1));
  if (rng.below(2)) v.version = kInitialWeights;
  for (auto n = rng.below(200); n > 0; --n) {
    v.tokens.push_back(static_cast<std::int32_t>(rng.next()));
    v.logprobs.push_back(static_cast<float>(rng.normal()));
    v.versions.push_back({static_cast<std::int64_t>(rng.below(9)) - 1});
    v.raw.push_back(static_cast<std::byte>(rng.next()));
    v.flags.push_back(rng.below(2) == 1);
  }
  for (auto n = rng.below(20); n > 0; --n)
    v.inners.push_back({static_cast<std::int16_t>(any()), text()});
  for (auto n = rng.below(20); n > 0; --n) v.metrics[text()] = rng.normal();
  if (rng.below(2)) v.either = Inner{-5, "five"};
  if (rng.below(3) == 0) v.either = text();
  for (auto n = rng.below(5); n > 0; --n) {
    if (rng.below(2)) {
      v.mixed.emplace_back(std::in_place_type<Nothing>);
    } else {
      v.mixed.emplace_back(Inner{1, text()});
    }
  }
  if (rng.below(2)) v.maybe = Inner{7, ""};
  return v;
}

TEST(Codec, whatever_is_encoded_is_decoded) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Everything value = random_value(rng);
    const auto back = decode<Everything>(encode(value));
    ASSERT_TRUE(back) << render(back.error());
    EXPECT_EQ(*back, value);
  }
}

TEST(Codec, integers_at_every_border_round_trip) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::int64_t near : {-1, 0, 1}) {
      const auto u = (std::uint64_t{1} << bit) + static_cast<std::uint64_t>(near);
      EXPECT_EQ(decode<std::uint64_t>(encode(u)).value(), u);
      const auto i = static_cast<std::int64_t>(u);
      EXPECT_EQ(decode<std::int64_t>(encode(i)).value(), i);
      EXPECT_EQ(decode<std::int64_t>(encode(-(i >> 1))).value(), -(i >> 1));
    }
  }
  for (const std::size_t size : {0, 31, 32, 255, 256, 65'535, 65'536}) {
    const std::string text(size, 'x');
    EXPECT_EQ(decode<std::string>(encode(text)).value(), text);
    const std::vector<std::string> many(size, "y");
    EXPECT_EQ(decode<std::vector<std::string>>(encode(many)).value(), many);
    const std::vector<std::uint8_t> numbers(size, 3);
    EXPECT_EQ(decode<std::vector<std::uint8_t>>(encode(numbers)).value(), numbers);
  }
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(Codec, the_bytes_are_these) {
  Everything v;
  v.yes = true;
  v.i8 = -5;
  v.u16 = 300;
  v.i64 = -70'000;
  v.u64 = 1ull << 40;
  v.f = 2;
  v.d = -0.0;
  v.text = "tandem";
  v.color = Color::kBlue;
  v.sign = Sign::kMinus;
  v.group = {200};
  v.at = {1'000'000};
  v.took = Duration(-200);
  v.tokens = {1, -1};
  v.logprobs = {-0.5f};
  v.versions = {{3}};
  v.flags = {true, false};
  v.inners = {{1, "x"}};
  v.metrics = {{"a", 1.5}};
  v.either = "s";
  v.mixed = {Nothing{}};
  v.maybe = Inner{7, ""};
  EXPECT_EQ(hex(encode(v)),
            "dc0018"                    // 24 fields
            "c3fbcd012c"                // bool, int8, uint16
            "d2fffeee90"                // int64
            "cf0000010000000000"        // uint64
            "ca40000000"                // float: a whole number stays one
            "cb8000000000000000"        // double: minus zero too
            "a674616e64656d"            // string
            "02ff"                      // enums
            "ccc8ce000f4240d1ff38"      // id, time, duration
            "c0"                        // no optional
            "c40801000000ffffffff"      // bin of integers,
            "c404000000bf"              // of floats,
            "c4080300000000000000c400"  // of ids, of no bytes
            "92c3c2"                    // bools
            "919201a178"                // structs
            "81a161cb3ff8000000000000"  // map
            "9202a17391920190"          // variants
            "9207a0");                  // optional
}

TEST(Codec, heads_are_as_short_as_they_can_be) {
  const auto head = [](const auto& value, std::size_t bytes) {
    return hex(encode(value).substr(0, bytes));
  };
  const auto text = [&](std::size_t size) { return head(std::string(size, 'x'), 3); };
  EXPECT_EQ(text(31), "bf7878");
  EXPECT_EQ(text(32), "d92078");
  EXPECT_EQ(text(255), "d9ff78");
  EXPECT_EQ(text(256), "da0100");
  EXPECT_EQ(text(65'535), "daffff");
  EXPECT_EQ(head(std::string(65'536, 'x'), 5), "db00010000");
  const auto bin = [&](std::size_t size) { return head(std::vector<std::uint8_t>(size, 7), 5); };
  EXPECT_EQ(bin(255), "c4ff070707");
  EXPECT_EQ(bin(256), "c501000707");
  EXPECT_EQ(bin(65'536), "c600010000");
  const auto array = [&](std::size_t size) { return head(std::vector<bool>(size), 5); };
  EXPECT_EQ(array(15), "9fc2c2c2c2");
  EXPECT_EQ(array(16), "dc0010c2c2");
  EXPECT_EQ(array(65'536), "dd00010000");
  const auto map = [&](int size) {
    std::map<std::string, bool> pairs;
    for (int i = 0; i < size; ++i) pairs[std::to_string(i)];
    return head(pairs, 5);
  };
  EXPECT_EQ(map(15), "8fa130c2a1");
  EXPECT_EQ(map(16), "de0010a130");
  EXPECT_EQ(map(65'536), "df00010000");
  const auto integer = [&](std::int64_t value) { return hex(encode(value)); };
  EXPECT_EQ(integer(127), "7f");
  EXPECT_EQ(integer(128), "cc80");
  EXPECT_EQ(integer(256), "cd0100");
  EXPECT_EQ(integer(65'536), "ce00010000");
  EXPECT_EQ(integer(1ll << 32), "cf0000000100000000");
  EXPECT_EQ(integer(-32), "e0");
  EXPECT_EQ(integer(-33), "d0df");
  EXPECT_EQ(integer(-129), "d1ff7f");
  EXPECT_EQ(integer(-32'769), "d2ffff7fff");
  EXPECT_EQ(integer(-(1ll << 31) - 1), "d3ffffffff7fffffff");
}

TEST(Codec, floats_keep_every_bit) {
  for (const double d : {0.0, -0.0, 1.0, -3.0, 0.1, 0x1p64, -0x1p63, 1e30, 1e-300,
                         std::numeric_limits<double>::infinity(), std::nan("7")}) {
    const auto f = static_cast<float>(d);
    const std::string wide = encode(d), narrow = encode(f);
    EXPECT_EQ(wide.size(), 9u) << d;
    EXPECT_EQ(narrow.size(), 5u) << f;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(decode<double>(wide).value()),
              std::bit_cast<std::uint64_t>(d));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(decode<float>(narrow).value()),
              std::bit_cast<std::uint32_t>(f));
  }
}

TEST(Codec, errors_name_the_type_the_field_and_the_place) {
  const auto wrong = decode<Inner>(encode(std::vector<std::string>{"a", "b"}));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalid);
  EXPECT_NE(wrong.error().message.find("Inner.small"), std::string::npos) << wrong.error().message;
  EXPECT_EQ(wrong.error().where, "byte 1");

  Everything outer;
  outer.inners.push_back({1, "x"});
  std::string bytes = encode(outer);
  const auto at = bytes.find("\x92\x01\xa1x");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = '\xc2';
  const auto nested = decode<Everything>(bytes);
  ASSERT_FALSE(nested);
  EXPECT_NE(nested.error().message.find("Everything.inners.small"), std::string::npos)
      << nested.error().message;
  EXPECT_EQ(nested.error().where, "byte " + std::to_string(at + 1));

  const auto longer = decode<Inner>(encode(Inner{1, "a"}) + "\x01");
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().where, "byte 4");
}

TEST(Codec, a_missing_or_extra_field_is_an_error) {
  EXPECT_FALSE(decode<Inner>(std::string("\x91\x01", 2)));
  EXPECT_FALSE(decode<Inner>(std::string("\x93\x01\xa0\x01", 4)));
  EXPECT_TRUE(decode<Inner>(encode(Inner{1, "a"})));
}

TEST(Codec, values_that_do_not_fit_are_errors) {
  EXPECT_FALSE(decode<std::int8_t>(encode(std::int64_t{128})));
  EXPECT_FALSE(decode<std::uint8_t>(encode(std::int64_t{-1})));
  EXPECT_FALSE(decode<std::int64_t>(encode(std::numeric_limits<std::uint64_t>::max())));
  EXPECT_FALSE(decode<Color>(encode(std::uint8_t{3})));
  EXPECT_EQ(decode<Color>(encode(std::uint8_t{2})).value(), Color::kBlue);
  EXPECT_FALSE(decode<Sign>(encode(0)));  // between two enumerators
  EXPECT_EQ(decode<Sign>(encode(-1)).value(), Sign::kMinus);
  using Either = std::variant<Nothing, Inner>;
  EXPECT_FALSE(decode<Either>(std::string("\x92\x02\x90", 3)));
  EXPECT_FALSE(decode<std::vector<std::int32_t>>(encode(std::vector<std::uint8_t>(5))));
}

// The memory that decoding takes beside the values that WireLimits counts: the texts of an error.
constexpr std::size_t kTexts = 4096;

// Calls decode(), which must not take more than `bytes_max` of memory.
template <class T>
Result<T> decode_within(std::size_t bytes_max, std::string_view bytes, WireLimits limits = {}) {
  const std::size_t before = allocated;
  Result<T> result = decode<T>(bytes, limits);
  EXPECT_LE(allocated - before, bytes_max);
  return result;
}

TEST(Codec, every_value_refuses_every_tag_but_its_own) {
  const auto taken = []<class T>(std::type_identity<T>, int tag) {
    const std::string bytes = static_cast<char>(tag) + std::string(64, '\0');
    WireReader in(bytes, {});
    T value{};
    return decode_from(in, value);
  };
  const auto in = [](int tag, int first, int last) { return first <= tag && tag <= last; };
  using Pairs = std::map<std::string, Color>;
  for (int tag = 0; tag <= 0xff; ++tag) {
    SCOPED_TRACE("tag " + std::to_string(tag));
    const bool small = in(tag, 0, 0x7f), small_negative = in(tag, 0xe0, 0xff);
    EXPECT_EQ(taken(std::type_identity<bool>(), tag), in(tag, 0xc2, 0xc3));
    EXPECT_EQ(taken(std::type_identity<std::int32_t>(), tag),
              small || small_negative || in(tag, 0xcc, 0xd3));
    EXPECT_EQ(taken(std::type_identity<std::uint32_t>(), tag), small || in(tag, 0xcc, 0xd3));
    EXPECT_EQ(taken(std::type_identity<Color>(), tag), in(tag, 0, 2) || in(tag, 0xcc, 0xd3));
    EXPECT_EQ(taken(std::type_identity<float>(), tag), tag == 0xca);
    EXPECT_EQ(taken(std::type_identity<double>(), tag), tag == 0xcb);
    EXPECT_EQ(taken(std::type_identity<std::string>(), tag),
              in(tag, 0xa0, 0xbf) || in(tag, 0xd9, 0xdb));
    EXPECT_EQ(taken(std::type_identity<std::vector<float>>(), tag), in(tag, 0xc4, 0xc6));
    EXPECT_EQ(taken(std::type_identity<std::vector<Color>>(), tag),
              in(tag, 0x90, 0x9f) || in(tag, 0xdc, 0xdd));
    EXPECT_EQ(taken(std::type_identity<Pairs>(), tag), tag == 0x80 || in(tag, 0xde, 0xdf));
    EXPECT_EQ(taken(std::type_identity<std::monostate>(), tag), tag == 0xc0);
    EXPECT_EQ(taken(std::type_identity<Nothing>(), tag), tag == 0x90 || in(tag, 0xdc, 0xdd));
  }
}

TEST(Codec, what_is_cut_short_is_an_error) {
  Rng rng(2);
  const std::string whole = encode(random_value(rng));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode<Everything>(whole.substr(0, size))) << size << " of " << whole.size();
  for (const std::string_view cut : {"", "\xd9", "\xd9\x02", "\xd9\x02x"}) {
    const auto text = decode<std::string>(cut);
    ASSERT_FALSE(text);
    EXPECT_NE(text.error().message.find("end early"), std::string::npos) << text.error().message;
  }
}

TEST(Codec, damaged_bytes_neither_crash_nor_take_more_than_the_limit) {
  const WireLimits limits{.decoded_bytes_max = 1 << 15};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::string good = encode(random_value(rng));
    for (int i = 0; i < 20; ++i) {
      std::string bad = good;
      for (auto n = 1 + rng.below(4); n > 0; --n)
        bad[rng.below(bad.size())] = static_cast<char>(rng.next());
      if (rng.below(3) == 0) bad.resize(rng.below(bad.size() + 1));
      // The limit is doubled, since a map's node is larger than its pair.
      (void)decode_within<Everything>(2 * limits.decoded_bytes_max + kTexts, bad, limits);
    }
  }
}

TEST(Codec, a_claim_takes_no_memory) {
  // 1 M and 4 G elements claimed in five bytes.
  const std::string million("\xdd\x00\x10\x00\x00", 5);
  EXPECT_FALSE(decode_within<std::vector<std::string>>(kTexts, million));
  const auto claim = [](char tag) { return tag + std::string(4, '\xff'); };
  EXPECT_FALSE(decode_within<std::string>(kTexts, claim('\xdb')));
  EXPECT_FALSE(decode_within<std::vector<float>>(kTexts, claim('\xc6')));
  EXPECT_FALSE(decode_within<std::vector<std::string>>(kTexts, claim('\xdd')));
  EXPECT_FALSE((decode_within<std::map<std::string, double>>(kTexts, claim('\xdf'))));
  EXPECT_FALSE(decode_within<Inner>(kTexts, claim('\xdd')));
  EXPECT_FALSE(decode_within<Inner>(kTexts, claim('\xc9')));  // an extension
  // One byte each, hundreds of bytes decoded.
  std::string nils("\x91\xdd\x00\x80\x00\x00", 6);
  nils.append(0x800000, '\xc0');
  const auto heavy = decode_within<Heavy>(kTexts, nils);
  ASSERT_FALSE(heavy);
  EXPECT_NE(heavy.error().message.find("memory"), std::string::npos);
  // Each array of a nest claims all bytes that are left.
  std::string nest;
  for (int depth = 0; depth < 30; ++depth) nest += std::string("\x91\xdd\x00\x00\x20\x00", 6);
  nest.append(0x2000, '\x91');
  const WireLimits limits{.decoded_bytes_max = 1 << 20};
  EXPECT_FALSE(decode_within<Tree>(limits.decoded_bytes_max + kTexts, nest, limits));
}

TEST(Codec, every_kind_of_value_counts_as_memory) {
  const WireLimits limits{.decoded_bytes_max = 1000};
  std::map<std::string, Color> map;
  for (int i = 0; i < 1000; ++i) map[std::to_string(i)];
  EXPECT_FALSE(decode_within<std::string>(kTexts, encode(std::string(10'000, 'x')), limits));
  EXPECT_FALSE(
      decode_within<std::vector<float>>(kTexts, encode(std::vector<float>(10'000)), limits));
  EXPECT_FALSE(
      decode_within<std::vector<Color>>(kTexts, encode(std::vector<Color>(10'000)), limits));
  EXPECT_FALSE(decode_within<decltype(map)>(2000 + kTexts, encode(map), limits));
}

TEST(Codec, a_message_has_a_size_and_a_depth_at_most) {
  const std::string text = encode(std::string(100, 'x'));
  EXPECT_FALSE(decode_within<std::string>(kTexts, text, {.message_bytes_max = 101}));
  EXPECT_TRUE(decode<std::string>(text, {.message_bytes_max = 102}));
  const auto deep = [](std::size_t depth) {  // a Tree is a struct of one array
    return std::string(2 * depth - 1, '\x91') + '\x90';
  };
  EXPECT_TRUE(decode<Tree>(deep(3), {.depth_max = 6}));
  EXPECT_FALSE(decode<Tree>(deep(3), {.depth_max = 5}));
  EXPECT_FALSE(decode_within<Tree>(16 * kTexts, std::string(100'000, '\x91')));
}

TEST(Codec, forgotten_fields_are_seen) {
  EXPECT_TRUE(wire_detail::takes<Forgetful>(std::make_index_sequence<2>()));
  EXPECT_FALSE(wire_detail::takes<Forgetful>(std::make_index_sequence<3>()));
}

TEST(Codec, payload_refs_and_errors_are_wired) {
  const PayloadRef ref{
      .node = "vm", .segment = 3, .offset = 1ull << 40, .bytes = 9, .checksum = ~0ull};
  EXPECT_EQ(decode<PayloadRef>(encode(ref)).value(), ref);
  Error error{ErrorCode::kTimedOut, "m", "w", "h"};
  error.further = {{"m2", "w2", "h2"}, {"m3", "", ""}};
  error.further_left_out = 5;
  const auto back = decode<std::vector<Error>>(encode(std::vector<Error>{error}));
  EXPECT_EQ(render(back.value()[0]), render(error));
}

}  // namespace
}  // namespace tandem::wire
