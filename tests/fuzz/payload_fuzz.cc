// The references and sizes that other processes send to the store of payloads, as a list of calls,
// beside files that another process left in its directory. Checked against a model in memory: a
// committed payload keeps its bytes until its segment is deleted (SS-1), a made-up reference holds
// and frees nothing, no payload overlaps another (SS-3), and a read beyond the end is an error.
#include <map>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/payload/segment_store.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

using payload::Extent;

constexpr payload::SegmentLimits kLimits{.segment_bytes_max = 1024, .bytes_max = 8192};

class Model {
 public:
  explicit Model(const std::filesystem::path& directory) : directory_(directory) { open(); }

  void step(Pieces& pieces) {
    switch (pieces.byte() % 8) {
      case 0:
        return put(pieces.byte(), pieces.byte());
      case 1:
        return read(pieces);
      case 2:
        return made_up(pieces);
      case 3:
        return release(pieces.byte());
      case 4:
        return forget(pieces.byte());
      case 5:
        return open();
      case 6:
        return reclaim(pieces.byte());
      case 7:
        return put_huge(pieces.number(), pieces.number());
    }
  }
  void check() const {
    for (const auto& [ref, fill] : live_) {
      CHECK(store_->holds(ref));
      std::vector<std::byte> bytes(ref.bytes);
      CHECK(store_->read({ref.segment, ref.offset, ref.bytes}, 0, bytes).has_value());
      for (const std::byte byte : bytes) CHECK(byte == fill);
    }
  }

 private:
  // As after a restart: the owner declares live what it knows of.
  void open() {
    store_.reset();
    auto opened = payload::open_file_segments(directory_, kLimits);
    CHECK(opened.has_value());
    store_ = std::move(*opened);
    for (const auto& [ref, fill] : live_) store_->retain(ref);
  }
  void put(std::uint64_t bytes, std::uint8_t fill) {
    const std::uint64_t sizes[] = {bytes};
    const auto extents = store_->reserve(sizes);
    CHECK(extents.has_value() || extents.error().code == ErrorCode::kFailed ||
          (bytes == 0 && extents.error().code == ErrorCode::kInvalid));
    if (!extents) return;
    const std::vector<std::byte> content(bytes, std::byte{fill});
    CHECK(store_->write(extents->front(), 0, content).has_value());
    const Extent& at = extents->front();
    const std::uint64_t checksum = checksum64(content);
    for (const auto& [ref, other] : live_)
      CHECK(ref.segment != at.segment || at.offset >= ref.offset + ref.bytes ||
            ref.offset >= at.offset + at.bytes);
    store_->commit(at, checksum);
    live_.emplace(wire::PayloadRef{"vm", at.segment, at.offset, at.bytes, checksum},
                  std::byte{fill});
  }
  // Sizes of any number: either there is room for all, or for none.
  void put_huge(std::uint64_t first, std::uint64_t second) {
    const std::uint64_t sizes[] = {first, second};
    const auto extents = store_->reserve(sizes);
    if (!extents) return;
    CHECK(first + second <= kLimits.bytes_max && first <= kLimits.bytes_max);
    for (const Extent& extent : *extents) store_->abandon(extent);
  }
  void read(Pieces& pieces) const {
    const Extent from{.segment = pieces.byte(), .offset = pieces.number(), .bytes = pieces.byte()};
    std::vector<std::byte> bytes(from.bytes);
    const auto got = store_->read(from, 0, bytes);
    CHECK(got.has_value() || !got.error().message.empty());
  }
  void made_up(Pieces& pieces) {
    const wire::PayloadRef ref{.node = "vm",
                               .segment = pieces.byte(),
                               .offset = pieces.number(),
                               .bytes = pieces.byte(),
                               .checksum = pieces.number()};
    if (live_.contains(ref)) return;
    CHECK(!store_->holds(ref));
    CHECK(!store_->release(ref));
  }
  void release(std::uint8_t which) {
    if (live_.empty()) return;
    const auto at = std::next(live_.begin(), which % live_.size());
    CHECK(store_->release(at->first));
    CHECK(!store_->release(at->first));
    live_.erase(at);
  }
  void forget(std::uint8_t segment) {
    (void)store_->delete_segment(segment);
    std::erase_if(live_, [&](const auto& entry) { return entry.first.segment == segment; });
  }
  void reclaim(std::uint8_t below) { CHECK(store_->reclaim(below).has_value()); }

  const std::filesystem::path directory_;
  std::unique_ptr<payload::SegmentStore> store_;
  std::map<wire::PayloadRef, std::byte> live_;
};

}  // namespace

void payload(std::string_view input) {
  const auto directory = scratch_folder() / "segments";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  Pieces pieces(input);
  // A file that was there before, under a name of the input's.
  const std::string name(pieces.text().substr(0, 64));
  if (!name.empty() && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos &&
      name != "." && name != "..") {
    (void)write_file(directory / name, std::as_bytes(std::span(pieces.rest())));
  }
  Model model(directory);
  for (int steps = 0; !pieces.empty() && steps < 64; ++steps) {
    model.step(pieces);
    model.check();
  }
}

}  // namespace tandem::fuzz
