// The wire format of protobuf, as far as the files of trackers need it: fields are appended to a
// message, and a message is taken apart into its fields. The meaning of a field is the caller's.
// Source: https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::runs {

inline void append_little_endian(std::string& to, std::unsigned_integral auto value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}
std::uint64_t little_endian(std::string_view bytes);  // of at most eight bytes

// Each appends one field. An integer is written as the varint of its 64 bits (int32, int64, bool
// and enum), bytes with their length (string, bytes and messages).
void append_integer(std::string& to, std::uint64_t field, std::int64_t value);
void append_double(std::string& to, std::uint64_t field, double value);
void append_float(std::string& to, std::uint64_t field, float value);
void append_bytes(std::string& to, std::uint64_t field, std::string_view bytes);

struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t integer = 0;  // of a varint, or the bits of a fixed number
  std::string_view bytes;     // of a field with a length; borrows the message
};
// Takes the first field off `message`. nullopt where nothing is left, or no field begins there.
std::optional<ProtobufField> take_field(std::string_view& message);

}  // namespace tandem::runs
