#include "tests/fuzz/fuzz_target.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/check.h"

namespace tandem::fuzz {
namespace {

constexpr Target kTargets[] = {{"batch_log", batch_log},
                               {"bulk", bulk},
                               {"chat_template", chat_template},
                               {"checkpoint", checkpoint},
                               {"controller_journal", controller_journal},
                               {"datasets", datasets},
                               {"engine_answer", engine_answer},
                               {"foreign_config", foreign_config},
                               {"http", http},
                               {"job_file", job_file},
                               {"journal", journal},
                               {"link", link},
                               {"model_config", model_config},
                               {"payload", payload},
                               {"reward_line", reward_line},
                               {"safetensors", safetensors},
                               {"tokenizer", tokenizer},
                               {"weights", weights},
                               {"wire", wire}};

constexpr std::string_view kMark = "\n--\n";

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-fuzz.XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto found = std::ranges::find(kTargets, name, &Target::name);
  return found == std::end(kTargets) ? nullptr : found;
}

std::uint8_t Pieces::byte() {
  if (rest_.empty()) return 0;
  const auto first = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return first;
}

std::uint64_t Pieces::number() {
  std::uint64_t value = 0;
  const std::size_t size = std::min(sizeof(value), rest_.size());
  std::memcpy(&value, rest_.data(), size);
  rest_.remove_prefix(size);
  return value;
}

std::string_view Pieces::text() {
  const std::size_t end = rest_.find(kMark);
  const std::string_view piece = rest_.substr(0, end);
  rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + kMark.size());
  return piece;
}

std::string_view Pieces::bytes() {
  const std::size_t low = byte();
  const std::string_view piece = rest_.substr(0, low | std::size_t{byte()} << 8);
  rest_.remove_prefix(piece.size());
  return piece;
}

const std::filesystem::path& scratch_folder() {
  static const Folder folder;
  return folder.path;
}

}  // namespace tandem::fuzz
