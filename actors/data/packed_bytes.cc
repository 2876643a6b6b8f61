// Both formats are read by one loop: it keeps a piece of the packed bytes, lets the library turn
// some of them into text, and fetches the next piece when the library has used all. They differ in
// one step of the library, which says whether a member or frame has just ended.
#include "actors/data/packed_bytes.h"

#include <zlib.h>
#include <zstd.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"

namespace tandem::data {
namespace {

constexpr std::size_t kPackedBytes = std::size_t{1} << 16;  // the size of one read

// One step of a decompressor: how much it took and gave, and whether a member has just ended.
struct Step {
  std::size_t taken = 0, given = 0;
  bool member_ended = false;
  const char* failure = nullptr;  // in words; the other fields then mean nothing
};

class GzipSteps {
 public:
  GzipSteps() { CHECK(::inflateInit2(&stream_, 15 + 16) == Z_OK); }  // 16: with a gzip header
  ~GzipSteps() { ::inflateEnd(&stream_); }
  GzipSteps(const GzipSteps&) = delete;
  GzipSteps& operator=(const GzipSteps&) = delete;

  static constexpr const char* kName = "gzip";

  Step step(std::span<const char> packed, std::span<char> out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int said = ::inflate(&stream_, Z_NO_FLUSH);
    // Z_BUF_ERROR: nothing could be done without more bytes.
    if (said != Z_OK && said != Z_STREAM_END && said != Z_BUF_ERROR)
      return {.failure = stream_.msg ? stream_.msg : "it asks for a dictionary"};
    const Step done{.taken = packed.size() - stream_.avail_in,
                    .given = out.size() - stream_.avail_out,
                    .member_ended = said == Z_STREAM_END};
    if (done.member_ended) ::inflateReset(&stream_);
    return done;
  }

 private:
  z_stream stream_{};
};

class ZstdSteps {
 public:
  ZstdSteps() : context_(::ZSTD_createDCtx()) {
    CHECK(context_ != nullptr);
    ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax,
                             std::countr_zero(kWindowBytesMax));
  }

  static constexpr const char* kName = "zstd";

  Step step(std::span<const char> packed, std::span<char> out) {
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    ZSTD_outBuffer text{out.data(), out.size(), 0};
    const std::size_t left = ::ZSTD_decompressStream(context_.get(), &text, &in);
    if (::ZSTD_isError(left)) return {.failure = ::ZSTD_getErrorName(left)};
    return {.taken = in.pos, .given = text.pos, .member_ended = left == 0};
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_;
};

template <class Steps>
class Unpacked final : public ByteSource {
 public:
  Unpacked(std::unique_ptr<ByteSource> packed, std::filesystem::path path)
      : packed_(std::move(packed)), path_(std::move(path)), piece_(kPackedBytes) {}

  Result<std::size_t> read(std::span<char> out) override {
    for (;;) {
      const std::span<const char> held(piece_.data() + begin_, end_ - begin_);
      // The library may hold text back for which `out` had no room, so it is asked even where no
      // packed bytes are left within a member.
      if (!held.empty() || !between_members_) {
        const Step done = steps_.step(held, out);
        if (done.failure) return damaged(done.failure);
        begin_ += done.taken;
        if (done.taken > 0 || done.given > 0) between_members_ = done.member_ended;
        if (done.given > 0) return done.given;
        if (done.taken > 0) continue;
      }
      const auto got = packed_->read(piece_);
      if (!got) return got.error();
      begin_ = 0;
      end_ = *got;
      if (*got > 0) continue;
      if (between_members_) return std::size_t{0};
      return damaged("the file ends too early; is it a whole download?");
    }
  }

  std::uint64_t bytes_read() const override { return packed_->bytes_read(); }

 private:
  Error damaged(const std::string& why) const {
    return {ErrorCode::kInvalid, std::string("the ") + Steps::kName + " file is damaged: " + why,
            path_.string(),
            std::string("`") + Steps::kName + " --test FILE` checks it; get it anew"};
  }

  std::unique_ptr<ByteSource> packed_;
  const std::filesystem::path path_;
  Steps steps_;
  std::vector<char> piece_;  // its bytes begin_ … end_ have not been used yet
  std::size_t begin_ = 0, end_ = 0;
  bool between_members_ = true;  // whether the packed bytes may end here
};

}  // namespace

std::optional<Packing> packing_of(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return Packing::kGzip;
  // A frame, or a skippable frame, which some writers put first.
  if (head.starts_with("\x28\xb5\x2f\xfd")) return Packing::kZstd;
  if (head.size() >= 4 && (head[0] & '\xf0') == '\x50' && head.substr(1, 3) == "\x2a\x4d\x18")
    return Packing::kZstd;
  return std::nullopt;
}

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed, Packing packing,
                                     std::filesystem::path path) {
  if (packing == Packing::kGzip)
    return std::make_unique<Unpacked<GzipSteps>>(std::move(packed), std::move(path));
  return std::make_unique<Unpacked<ZstdSteps>>(std::move(packed), std::move(path));
}

}  // namespace tandem::data
