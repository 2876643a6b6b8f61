// msgpack as bytes: WireWriter appends values, WireReader takes them off one by one and checks each
// against what is left. Used by codec.h; nothing else needs it.
//
// Written here and not with msgpack-cxx, which decodes into a tree of objects: that allocates by
// what the bytes claim before anyone can check them, and costs each message header 1.5 s of
// compilation. Its tests hold both against msgpack-cxx.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::runtime {

struct WireLimits {
  std::uint64_t message_bytes_max = 64ull << 20;
  std::uint64_t decoded_bytes_max = 256ull << 20;  // memory that the decoded value may take
  std::uint32_t depth_max = 64;                    // of nested structs and arrays
};

class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}  // appends; borrows
  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void float32(float value);
  void float64(double value);
  void text(std::string_view value);
  void bin(const void* data, std::size_t bytes);
  void array(std::size_t elements);  // that many values follow
  void map(std::size_t pairs);       // that many pairs follow

 private:
  template <class T>
  void head(std::uint8_t tag, T big_endian_argument);
  std::string& out_;
};

// Each call takes the next value off, or returns false and remembers the first failure.
class WireReader {
 public:
  WireReader(std::string_view bytes, WireLimits limits);  // borrows

  bool nil();  // takes a nil off, if one is next; no failure otherwise
  bool boolean(bool& value);
  bool integer(std::int64_t& value);
  bool unsigned_integer(std::uint64_t& value);
  bool float32(float& value);
  bool float64(double& value);
  bool text(std::string_view& value);  // a view into the bytes
  bool bin(std::string_view& value);   // a view into the bytes
  bool enter_array(std::uint32_t& elements);
  bool enter_struct(const char* type, std::uint32_t fields);  // an array of exactly so many
  bool enter_map(std::uint32_t& pairs);
  void leave() { --depth_; }
  bool finish();  // nothing may be left

  bool charge(std::uint64_t bytes);  // of memory about to be allocated
  bool fail(std::string what);       // false
  // Adds that this happened in field `index` of `type`, innermost first. False.
  bool failed_in(const char* type, const char* names, std::uint32_t index);
  Error error() const;

 private:
  bool take(std::size_t bytes, const char*& at);
  template <class T>
  bool argument(T& value);
  bool tag(std::uint8_t& value);
  bool wrong(const char* expected);  // the tag just taken is of another kind
  bool enter(std::uint64_t values);

  const std::string_view bytes_;
  const WireLimits limits_;
  std::size_t at_ = 0;
  std::uint64_t charged_ = 0;
  std::uint32_t depth_ = 0;
  bool failed_ = false;
  std::size_t failed_at_ = 0;
  std::string what_;
  std::string path_;
};

void copy_bytes(void* to, std::string_view from);  // memcpy; nothing for an empty view

}  // namespace tandem::runtime
