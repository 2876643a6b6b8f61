// The codec: what goes in comes out, msgpack-cxx reads and writes the same bytes, and hostile bytes
// give errors that name their place.
#include "runtime/wire/codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <msgpack.hpp>

#include "runtime/base/rng.h"
#include "runtime/wire/payload_ref.h"

namespace wire_example {

using tandem::Duration;
using tandem::GroupId;
using tandem::PolicyVersion;
using tandem::Time;

enum class Color : std::uint8_t { kRed, kGreen, kBlue };
TANDEM_WIRE_ENUM(Color, kBlue)
enum class Sign { kMinus = -1, kPlus = 1 };

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

struct Forgetful {
  int a = 0;
  std::vector<int> b;
};

}  // namespace wire_example

namespace tandem::runtime {
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

TEST(Codec, msgpack_cxx_reads_our_bytes) {
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const Everything value = random_value(rng);
    const std::string bytes = encode(value);
    const msgpack::object_handle handle = msgpack::unpack(bytes.data(), bytes.size());
    const auto& fields = handle.get().via.array;
    ASSERT_EQ(fields.size, 24u);
    EXPECT_EQ(fields.ptr[3].as<std::int64_t>(), value.i64);
    EXPECT_EQ(fields.ptr[4].as<std::uint64_t>(), value.u64);
    EXPECT_EQ(fields.ptr[6].as<double>(), value.d);
    EXPECT_EQ(fields.ptr[7].as<std::string>(), value.text);
    EXPECT_EQ(fields.ptr[14].via.bin.size, value.tokens.size() * 4);
    EXPECT_EQ((fields.ptr[20].as<std::map<std::string, double>>()), value.metrics);
    EXPECT_EQ(fields.ptr[21].via.array.ptr[0].as<std::size_t>(), value.either.index());

    msgpack::sbuffer again;  // and writes the same
    msgpack::pack(again, handle.get());
    EXPECT_EQ(std::string(again.data(), again.size()), bytes);
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
}

TEST(Codec, a_missing_or_extra_field_is_an_error) {
  EXPECT_FALSE(decode<Inner>(std::string("\x91\x01", 2)));
  EXPECT_FALSE(decode<Inner>(std::string("\x93\x01\xa0\x01", 4)));
  EXPECT_FALSE(decode<Inner>(encode(Inner{1, "a"}) + "\x01"));
  EXPECT_TRUE(decode<Inner>(encode(Inner{1, "a"})));
}

TEST(Codec, values_that_do_not_fit_are_errors) {
  EXPECT_FALSE(decode<std::int8_t>(encode(std::int64_t{128})));
  EXPECT_FALSE(decode<std::uint8_t>(encode(std::int64_t{-1})));
  EXPECT_FALSE(decode<std::int64_t>(encode(std::numeric_limits<std::uint64_t>::max())));
  EXPECT_FALSE(decode<Color>(encode(std::uint8_t{3})));
  EXPECT_EQ(decode<Color>(encode(std::uint8_t{2})).value(), Color::kBlue);
  using Either = std::variant<Nothing, Inner>;
  EXPECT_FALSE(decode<Either>(std::string("\x92\x02\x90", 3)));
  EXPECT_FALSE(decode<std::vector<std::int32_t>>(encode(std::vector<std::uint8_t>(5))));
}

TEST(Codec, damaged_bytes_never_crash) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    const std::string good = encode(random_value(rng));
    for (int i = 0; i < 20; ++i) {
      std::string bad = good;
      for (auto n = 1 + rng.below(4); n > 0; --n)
        bad[rng.below(bad.size())] = static_cast<char>(rng.next());
      if (rng.below(3) == 0) bad.resize(rng.below(bad.size() + 1));
      (void)decode<Everything>(bad);  // under ASan and UBSan this is the assertion
    }
  }
}

TEST(Codec, memory_is_bounded_before_it_is_allocated) {
  // 4 G elements claimed in five bytes.
  EXPECT_FALSE(decode<std::vector<std::string>>(std::string("\xdd\xff\xff\xff\xff", 5)));
  EXPECT_FALSE(decode<std::vector<float>>(std::string("\xc6\xff\xff\xff\xff", 5)));
  EXPECT_FALSE((decode<std::map<std::string, double>>(std::string("\xdf\xff\xff\xff\xff", 5))));
  // One byte each, hundreds of bytes decoded.
  std::string nils("\x91\xdd\x00\x80\x00\x00", 6);
  nils.append(0x800000, '\xc0');
  const auto heavy = decode<Heavy>(nils);
  ASSERT_FALSE(heavy);
  EXPECT_NE(heavy.error().message.find("memory"), std::string::npos);
  // A limit per message.
  EXPECT_FALSE(decode<std::string>(encode(std::string(100, 'x')), {.message_bytes_max = 100}));
  // Depth.
  EXPECT_FALSE(decode<Tree>(std::string(100'000, '\x91')));
}

TEST(Codec, forgotten_fields_are_seen) {
  EXPECT_TRUE(wire_detail::takes<Forgetful>(std::make_index_sequence<2>()));
  EXPECT_FALSE(wire_detail::takes<Forgetful>(std::make_index_sequence<3>()));
}

TEST(Codec, payload_refs_and_errors_are_wired) {
  const PayloadRef ref{
      .node = "vm", .segment = 3, .offset = 1ull << 40, .bytes = 9, .checksum = ~0ull};
  EXPECT_EQ(decode<PayloadRef>(encode(ref)).value(), ref);
  const Error error{ErrorCode::kTimedOut, "m", "w", "h"};
  const auto back = decode<std::vector<Error>>(encode(std::vector<Error>{error}));
  EXPECT_EQ(render(back.value()[0]), render(error));
}

}  // namespace
}  // namespace tandem::runtime
