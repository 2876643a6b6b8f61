#include "actors/runs/protobuf.h"

#include <bit>

namespace tandem::runs {
namespace {

enum class WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void append_key(std::string& to, std::uint64_t field, WireType type) {
  append_varint(to, field << 3 | static_cast<std::uint64_t>(type));
}

std::optional<std::uint64_t> take_varint(std::string_view& message) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message.front());
    message.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> take_bytes(std::string_view& message, std::uint64_t count) {
  if (count > message.size()) return std::nullopt;
  const std::string_view bytes = message.substr(0, count);
  message.remove_prefix(count);
  return bytes;
}

}  // namespace

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void append_integer(std::string& to, std::uint64_t field, std::int64_t value) {
  append_key(to, field, WireType::kVarint);
  append_varint(to, static_cast<std::uint64_t>(value));
}

void append_double(std::string& to, std::uint64_t field, double value) {
  append_key(to, field, WireType::kFixed64);
  append_little_endian(to, std::bit_cast<std::uint64_t>(value));
}

void append_float(std::string& to, std::uint64_t field, float value) {
  append_key(to, field, WireType::kFixed32);
  append_little_endian(to, std::bit_cast<std::uint32_t>(value));
}

void append_bytes(std::string& to, std::uint64_t field, std::string_view bytes) {
  append_key(to, field, WireType::kBytes);
  append_varint(to, bytes.size());
  to += bytes;
}

std::optional<ProtobufField> take_field(std::string_view& message) {
  const auto key = take_varint(message);
  if (!key) return std::nullopt;
  ProtobufField field;
  field.number = *key >> 3;
  switch (static_cast<WireType>(*key & 7)) {
    case WireType::kVarint: {
      const auto value = take_varint(message);
      if (!value) return std::nullopt;
      field.integer = *value;
      return field;
    }
    case WireType::kFixed64:
    case WireType::kFixed32: {
      const auto bytes = take_bytes(message, (*key & 7) == 1 ? 8 : 4);
      if (!bytes) return std::nullopt;
      field.integer = little_endian(*bytes);
      return field;
    }
    case WireType::kBytes: {
      const auto count = take_varint(message);
      const auto bytes = count ? take_bytes(message, *count) : std::nullopt;
      if (!bytes) return std::nullopt;
      field.bytes = *bytes;
      return field;
    }
  }
  return std::nullopt;
}

}  // namespace tandem::runs
