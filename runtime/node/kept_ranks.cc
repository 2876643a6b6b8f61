#include "runtime/node/kept_ranks.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/log.h"

namespace tandem::node {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLock = "agent.lock";
constexpr const char* kKeptSuffix = ".json";
constexpr std::uint64_t kFileMax = 64 << 10;
constexpr std::uint64_t kNumberMax = std::numeric_limits<std::int32_t>::max();

std::string text_of(const KeptRank& rank) {
  return dump_json({{"actor", rank.id.actor},
                    {"incarnation", rank.id.incarnation.value},
                    {"rank", rank.id.rank},
                    {"pid", rank.pid},
                    {"boot", rank.born.boot},
                    {"ticks", rank.born.ticks}});
}

std::optional<KeptRank> parse(const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  const auto number = [&](const char* key) {
    return object.contains(key) && object[key].is_number_unsigned();
  };
  const auto word = [&](const char* key) {
    return object.contains(key) && object[key].is_string();
  };
  if (!object.is_object() || !word("actor") || !word("boot") || !number("incarnation") ||
      !number("rank") || !number("pid") || !number("ticks"))
    return std::nullopt;
  const std::uint64_t rank = object["rank"], pid = object["pid"];
  if (rank > kNumberMax || pid > kNumberMax || pid <= 1 || object["actor"] == "")
    return std::nullopt;
  return KeptRank{.id = {object["actor"],
                         {object["incarnation"].get<std::uint64_t>()},
                         static_cast<std::int32_t>(rank)},
                  .pid = static_cast<pid_t>(pid),
                  .born = {object["boot"], object["ticks"]}};
}

}  // namespace

Result<KeptRankFiles> KeptRankFiles::open(fs::path folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    return Error{ErrorCode::kFailed, "cannot make a folder: " + failure.message(), folder.string(),
                 ""};
  auto lock = FileLock::take(folder / kLock, "the node of " + folder.string(),
                             "end that agent, or give this one another --name");
  if (!lock) return lock.error();
  return KeptRankFiles(std::move(folder), *std::move(lock));
}

std::vector<KeptRank> KeptRankFiles::found() {
  std::vector<KeptRank> ranks;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failure)) {
    if (entry.path().extension() != kKeptSuffix) continue;
    const auto text = read_file(entry.path(), kFileMax);
    const auto rank = text ? parse(*text) : std::nullopt;
    if (rank) {
      files_[rank->id] = entry.path();
      ranks.push_back(*rank);
      continue;
    }
    log::warn("event=kept_rank_unreadable path={}", entry.path().string());
    std::error_code ignored;
    fs::remove(entry.path(), ignored);
  }
  return ranks;
}

void KeptRankFiles::add(const RankId& id, pid_t pid) {
  const auto born = birth_of(pid);
  if (!born)  // the process has ended already, or there is no descriptor to read /proc with
    return log::warn("event=rank_not_kept actor={} pid={} message=\"cannot read when it started\"",
                     id.actor, pid);
  const fs::path path = folder_ / (std::to_string(pid) + kKeptSuffix);
  files_[id] = path;
  if (const auto written = write_file_atomic(path, text_of({id, pid, *born})); !written)
    log::warn("event=rank_not_kept actor={} message=\"{}\"", id.actor, written.error().message);
}

void KeptRankFiles::remove(const RankId& id) {
  const auto file = files_.extract(id);
  std::error_code ignored;  // the next agent finds a process that has ended
  if (file) fs::remove(file.mapped(), ignored);
}

}  // namespace tandem::node
