// Files that appear whole under their names. A version is written into a staging directory and
// renamed, and small files are replaced by rename, so a reader sees either the old state or the new
// one, and a publisher that is killed leaves at worst a staging directory (WT-1, WT-3). The
// publisher's file lock makes it the only writer (WT-4); subscribers take no lock.
//
// Withdrawal is the hard part. A subscriber may read a version while the publisher forgets it: the
// open file stays readable, so the bytes alone do not tell. Hence the count `lineage`: the
// publisher raises it before it removes files, and a subscriber that finds another count at the end
// of its copy looks again whether that version is still offered with the same checksum. Pruning an
// old version raises no count, so a copy of a pruned version succeeds.
#include "runtime/weights/disk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <system_error>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/weights/retention.h"
#include "runtime/weights/shm_segment.h"
#include "runtime/weights/version_copy.h"

namespace tandem::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArena = "arena.bin";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kVersionFacts = "version.json";
constexpr const char* kLatest = "LATEST";
constexpr const char* kFamilyFacts = "family.json";
constexpr const char* kLock = "publisher.lock";
constexpr const char* kStaging = "staging";  // a version being written; the lock allows one writer

constexpr PolicyVersion kAll{std::numeric_limits<std::int64_t>::max()};  // however late

fs::path version_directory(const fs::path& directory, PolicyVersion version) {
  return directory / ("v" + std::to_string(version.value));
}

std::optional<PolicyVersion> parse_version(std::string_view text) {
  PolicyVersion version;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, version.value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return version;
}

// The versions in `directory`, ascending.
std::vector<PolicyVersion> versions_in(const fs::path& directory) {
  std::vector<PolicyVersion> versions;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('v')) continue;
    if (const auto version = parse_version(std::string_view(name).substr(1))) {
      versions.push_back(*version);
    }
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

struct VersionFacts {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  std::uint64_t layout_hash = 0;
};

struct FamilyFacts {
  std::uint64_t publisher_life = 0;
  std::uint64_t lineage = 0;  // counts the times that versions were withdrawn
};

// The numbers of a small JSON object, in the order of `keys`; an error if one is missing.
Result<std::vector<std::uint64_t>> read_numbers(const fs::path& path,
                                                std::initializer_list<const char*> keys) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const nlohmann::json object = parse_json(*text);
  std::vector<std::uint64_t> values;
  for (const char* key : keys) {
    if (!object.is_object() || !object.contains(key) || !object[key].is_number_unsigned()) {
      return Error{.message = std::string("cannot read \"") + key + "\"",
                   .where = path.string(),
                   .help = {}};
    }
    values.push_back(object[key].get<std::uint64_t>());
  }
  return values;
}

Result<VersionFacts> read_version_facts(const fs::path& directory, PolicyVersion version) {
  const auto numbers = read_numbers(version_directory(directory, version) / kVersionFacts,
                                    {"bytes", "checksum", "layout_hash"});
  if (!numbers) return numbers.error();
  const std::vector<std::uint64_t>& n = *numbers;
  return VersionFacts{.bytes = n[0], .checksum = n[1], .layout_hash = n[2]};
}

// checksum64 of the arena as it is on the disk now; none where it cannot be read.
std::optional<std::uint64_t> arena_checksum(const fs::path& directory, PolicyVersion version) {
  const OwnedFd arena(
      ::open((version_directory(directory, version) / kArena).c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::byte> part(std::size_t{1} << 20);
  Checksum64 checksum;
  for (ssize_t got = 1; got != 0;) {
    got = ::read(arena.get(), part.data(), part.size());
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (got > 0) checksum.update(std::span(part).first(static_cast<std::size_t>(got)));
  }
  return checksum.value();
}

// The facts are all zero where no publisher has been.
FamilyFacts read_family_facts(const fs::path& directory) {
  const auto numbers = read_numbers(directory / kFamilyFacts, {"publisher_life", "lineage"});
  if (!numbers) return {};
  return {.publisher_life = (*numbers)[0], .lineage = (*numbers)[1]};
}

// Replaces a file so that readers, and a writer that is killed, see the old content or the new one,
// whole. The file is not synced to the medium: published weights are worth nothing after a power
// cut, and a sync costs milliseconds per step.
Result<void> replace_file(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + ".tmp";  // the publisher's lock allows one writer
  if (auto done = write_file(temporary, std::as_bytes(std::span(content))); !done) return done;
  if (::rename(temporary.c_str(), path.c_str()) != 0) return file_error("replace file", path);
  return {};
}

Result<void> write_family_facts(const fs::path& directory, const FamilyFacts& facts) {
  const nlohmann::json object = {{"publisher_life", facts.publisher_life},
                                 {"lineage", facts.lineage}};
  return replace_file(directory / kFamilyFacts, object.dump() + "\n");
}

Result<void> remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return {};
  return file_error("remove", path, error.value());
}

Result<void> make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return {};
  return file_error("make the directory", path, error.value());
}

Result<void> write_latest(const fs::path& directory) {
  const std::vector<PolicyVersion> versions = versions_in(directory);
  if (versions.empty()) return remove_tree(directory / kLatest);
  return replace_file(directory / kLatest, std::to_string(versions.back().value) + "\n");
}

class DiskPublisher : public WeightPublisher {
 public:
  DiskPublisher(const WeightsConfig& config, FileLock lock, FamilyFacts facts)
      : config_(config), lock_(std::move(lock)), facts_(facts) {}

  Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                               Duration timeout) override;
  void retain(PolicyVersion oldest) override { retained_ = oldest; }
  void forget_after(PolicyVersion last) override;
  std::vector<PolicyVersion> offered() override { return versions_in(config_.directory); }

 private:
  Result<void> withdraw(PolicyVersion first, PolicyVersion last);
  Result<void> write_version(PolicyVersion version, std::span<const std::byte> arena,
                             std::uint64_t checksum);
  Result<void> prune(PolicyVersion published);

  const WeightsConfig config_;
  FileLock lock_;
  FamilyFacts facts_;
  std::optional<PolicyVersion> retained_;
  // The first of the versions that a forget_after could not withdraw: the next publish does.
  std::optional<PolicyVersion> still_offered_;
};

Result<PublishStats> DiskPublisher::publish(PolicyVersion version, std::span<const std::byte> arena,
                                            Duration) {
  CHECK(arena.size() == config_.layout.arena_bytes);
  const Time start = steady_now();
  // Publishing on top of a lineage that is still offered would mix two.
  if (still_offered_)
    if (auto done = withdraw(*still_offered_, kAll); !done) return done.error();
  still_offered_.reset();
  const std::uint64_t checksum = checksum64(arena);
  std::error_code ignored;
  if (fs::exists(version_directory(config_.directory, version), ignored)) {
    const Result<VersionFacts> there = read_version_facts(config_.directory, version);
    const bool same =
        there && there->checksum == checksum && there->layout_hash == config_.layout.hash;
    if (same && arena_checksum(config_.directory, version) == checksum) {
      return PublishStats{
          .bytes = 0, .seconds = seconds(steady_now() - start), .checksum = checksum};
    }
    // A damaged file is written anew; of another lineage all later versions go as well.
    if (auto done = same ? withdraw(version, version) : withdraw(version, kAll); !done)
      return done.error();
  }
  if (auto done = write_version(version, arena, checksum); !done) return done.error();
  // LATEST is written after the version that it names.
  if (auto done = write_latest(config_.directory); !done) return done.error();
  if (auto done = prune(version); !done) return done.error();
  return PublishStats{
      .bytes = arena.size(), .seconds = seconds(steady_now() - start), .checksum = checksum};
}

Result<void> DiskPublisher::write_version(PolicyVersion version, std::span<const std::byte> arena,
                                          std::uint64_t checksum) {
  const fs::path staging = config_.directory / kStaging;
  if (auto done = remove_tree(staging); !done) return done;
  if (auto done = make_directory(staging); !done) return done;
  if (auto done = write_file(staging / kArena, arena); !done) return done;
  if (auto done = replace_file(staging / kManifest, config_.layout.manifest_json); !done) {
    return done;
  }
  const nlohmann::json facts = {{"version", version.value},
                                {"bytes", arena.size()},
                                {"checksum", checksum},
                                {"layout_hash", config_.layout.hash}};
  if (auto done = replace_file(staging / kVersionFacts, facts.dump() + "\n"); !done) {
    return done;
  }
  const fs::path target = version_directory(config_.directory, version);
  if (::rename(staging.c_str(), target.c_str()) != 0) return file_error("name a version", target);
  return {};
}

// Keeps `slots` versions, `published` among them, or more if more are retained.
Result<void> DiskPublisher::prune(PolicyVersion published) {
  std::vector<VersionSlot> slots;
  for (const PolicyVersion version : versions_in(config_.directory)) {
    slots.push_back({.version = version, .in_use = version == published});
  }
  while (slots.size() > static_cast<std::size_t>(config_.slots)) {
    const auto victim = slot_to_reuse(slots, retained_, published);
    if (!victim) break;
    const PolicyVersion version = *slots[*victim].version;
    if (auto done = remove_tree(version_directory(config_.directory, version)); !done) return done;
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(*victim));
  }
  return write_latest(config_.directory);
}

void DiskPublisher::forget_after(PolicyVersion last) {
  const PolicyVersion first{last.value + 1};
  if (!withdraw(first, kAll))
    still_offered_ = still_offered_ ? std::min(*still_offered_, first) : first;
}

// The count changes first: a copy of a withdrawn version that ends at any later moment sees it.
Result<void> DiskPublisher::withdraw(PolicyVersion first, PolicyVersion last) {
  ++facts_.lineage;
  if (auto done = write_family_facts(config_.directory, facts_); !done) return done;
  for (const PolicyVersion version : versions_in(config_.directory)) {
    if (version < first || version > last) continue;
    if (auto done = remove_tree(version_directory(config_.directory, version)); !done) return done;
  }
  return write_latest(config_.directory);
}

// Whether pages of a mapped file can always be read, which holds where the file system is this
// host's own. On a network file system a file that another host removes takes its pages along, and
// reading them ends the process (SIGBUS). There, versions are read into a buffer, by calls that
// fail with an error instead.
bool is_local(const fs::path& directory) {
  constexpr std::uint32_t kXfs = 0x58465342, kZfs = 0x2fc12fc1;  // not in linux/magic.h
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return false;
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case EXT4_SUPER_MAGIC:  // ext2 and ext3 have this number as well
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case kXfs:
    case kZfs:
      return true;
    default:
      return false;
  }
}

class DiskSubscriber : public WeightSubscriber {
 public:
  explicit DiskSubscriber(const WeightsConfig& config) : config_(config) {}

  Result<std::optional<PolicyVersion>> newest() override;
  bool available(PolicyVersion version) override;
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override;
  Result<UpdateProgress> progress(std::uint64_t bytes_max) override;
  void cancel() override;
  bool in_place() const override { return is_local(config_.directory); }
  std::span<const std::byte> held() override;
  std::optional<Installed> installed() const override { return installed_; }
  std::uint64_t publisher_life() override {
    return read_family_facts(config_.directory).publisher_life;
  }

 private:
  // kInvalid where `version` has another layout than ours.
  Result<void> check_layout(const VersionFacts& facts, PolicyVersion version) const;
  Result<void> map(const fs::path& arena);
  Result<void> read_part(std::uint64_t bytes_max);
  Result<void> finish() const;

  const WeightsConfig config_;
  std::optional<VersionCopy> copy_;  // one in place stays after it is complete
  OwnedFd arena_;                    // copy_'s source
  Mapping mapped_;                   // the mapping of arena_, where copy_ is in place
  std::uint64_t lineage_ = 0;        // FamilyFacts::lineage when copy_ began
  std::optional<Installed> installed_;
};

Result<std::optional<PolicyVersion>> DiskSubscriber::newest() {
  std::error_code ignored;
  if (!fs::exists(config_.directory / kLatest, ignored)) return std::optional<PolicyVersion>();
  Result<std::string> text = read_file(config_.directory / kLatest);
  if (!text) return text.error();
  const auto version = parse_version(std::string_view(*text).substr(0, text->find('\n')));
  if (!version) {
    return Error{.message = "not a policy version",
                 .where = (config_.directory / kLatest).string(),
                 .help = {}};
  }
  // Without facts the version was withdrawn a moment ago, which begin() reports.
  if (const auto facts = read_version_facts(config_.directory, *version)) {
    if (auto fits = check_layout(*facts, *version); !fits) return fits.error();
  }
  return version;
}

Result<void> DiskSubscriber::check_layout(const VersionFacts& facts, PolicyVersion version) const {
  if (facts.layout_hash == config_.layout.hash && facts.bytes == config_.layout.arena_bytes)
    return {};
  return Error{.code = ErrorCode::kInvalid,
               .message = "the published weights have another layout than this process expects",
               .where = (version_directory(config_.directory, version) / kArena).string(),
               .help = {}};
}

bool DiskSubscriber::available(PolicyVersion version) {
  std::error_code ignored;
  return fs::exists(version_directory(config_.directory, version), ignored);
}

Result<void> DiskSubscriber::begin(PolicyVersion version, std::span<std::byte> buffer) {
  CHECK(buffer.size() == config_.layout.arena_bytes || (buffer.empty() && in_place()));
  cancel();
  // The lineage is read before the version: a withdrawal between the two makes finish() look again.
  const std::uint64_t lineage = read_family_facts(config_.directory).lineage;
  const fs::path arena = version_directory(config_.directory, version) / kArena;
  auto opened = open_regular(arena);
  if (!opened && opened.error().os_error != ENOENT) return opened.error();
  const Result<VersionFacts> facts = read_version_facts(config_.directory, version);
  // The version may be pruned between the two reads: then its facts are missing although its file
  // is open.
  if (!opened || (!facts && !available(version))) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "policy version " + std::to_string(version.value) + " of " +
                            config_.name + " is not offered",
                 .where = config_.directory.string(),
                 .help = {}};
  }
  if (!facts) return facts.error();
  if (auto fits = check_layout(*facts, version); !fits) return fits;
  lineage_ = lineage;
  arena_ = std::move(opened->fd);
  if (!buffer.empty()) {
    copy_.emplace(version, facts->checksum, buffer);
    return {};
  }
  if (auto mapped = map(arena); !mapped) return mapped;
  copy_.emplace(version, facts->checksum, config_.layout.arena_bytes);
  return {};
}

// Maps the arena's file. A publisher writes a file before it gives the file its name, and never
// again; a file that it removes stays readable as long as it is mapped. A file that is too short is
// an error here; a file that some other program truncates later ends this process (SIGBUS).
Result<void> DiskSubscriber::map(const fs::path& arena) {
  struct stat status {};
  if (::fstat(arena_.get(), &status) != 0) return file_error("examine weights", arena);
  const std::size_t bytes = config_.layout.arena_bytes;
  if (static_cast<std::uint64_t>(status.st_size) < bytes)
    return Error{.code = ErrorCode::kInvalid,
                 .message = "the weights end too early",
                 .where = arena.string(),
                 .help = {}};
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, arena_.get(), 0);
  if (address == MAP_FAILED) return file_error("map weights", arena);
  mapped_ = Mapping(address, bytes);
  ::madvise(address, bytes, MADV_WILLNEED);  // advice only
  return {};
}

void DiskSubscriber::cancel() {
  copy_.reset();
  mapped_ = {};
}

std::span<const std::byte> DiskSubscriber::held() {
  if (!copy_ || !copy_->in_place() || !copy_->complete() || !finish()) return {};
  return {mapped_.data(), config_.layout.arena_bytes};
}

Result<UpdateProgress> DiskSubscriber::progress(std::uint64_t bytes_max) {
  CHECK(copy_.has_value());
  Result<void> step = read_part(bytes_max);
  const UpdateProgress progress = copy_->progress();
  if (step && progress.complete) step = finish();
  if (step && progress.complete) {
    installed_ = Installed{.version = copy_->version(),
                           .checksum = copy_->checksum(),
                           .bytes = copy_->in_place() ? 0 : progress.bytes_total};
  }
  if (!step || (progress.complete && !copy_->in_place())) cancel();
  if (!step) return step.error();
  return progress;
}

Result<void> DiskSubscriber::read_part(std::uint64_t bytes_max) {
  if (copy_->in_place()) {
    copy_->take({mapped_.data() + copy_->offset(), copy_->next_bytes(bytes_max)});
    return {};
  }
  const std::span<std::byte> part = copy_->next(bytes_max);
  ssize_t got = 0;
  do {
    got = ::pread(arena_.get(), part.data(), part.size(), static_cast<off_t>(copy_->offset()));
  } while (got < 0 && errno == EINTR);
  const fs::path arena = version_directory(config_.directory, copy_->version()) / kArena;
  if (got < 0) return file_error("read weights", arena);
  if (got == 0) {
    return Error{.message = "the weights end too early", .where = arena.string(), .help = {}};
  }
  copy_->take(part.first(static_cast<std::size_t>(got)));
  return {};
}

// The copy is complete: checks that it has the published bytes and that the version is still
// offered, or was only pruned.
Result<void> DiskSubscriber::finish() const {
  if (auto verified = copy_->verify(config_.name); !verified) return verified;
  if (read_family_facts(config_.directory).lineage == lineage_) return {};
  const Result<VersionFacts> now = read_version_facts(config_.directory, copy_->version());
  if (now && now->checksum == copy_->checksum()) return {};
  return Error{.message = "the publisher of " + config_.name + " has withdrawn policy version " +
                          std::to_string(copy_->version().value),
               .where = config_.directory.string(),
               .help = {}};
}

Result<FileLock> take_publisher_lock(const WeightsConfig& config) {
  return FileLock::take(config.directory / kLock, "publishing weights of " + config.name, "");
}

}  // namespace

Result<std::unique_ptr<WeightPublisher>> make_disk_publisher(const WeightsConfig& config) {
  if (auto made = make_directory(config.directory); !made) return made.error();
  Result<FileLock> lock = take_publisher_lock(config);
  if (!lock) return lock.error();
  FamilyFacts facts = read_family_facts(config.directory);
  ++facts.publisher_life;
  if (auto done = write_family_facts(config.directory, facts); !done) return done.error();
  for (const PolicyVersion version : versions_in(config.directory)) {
    const Result<VersionFacts> there = read_version_facts(config.directory, version);
    if (there && there->layout_hash == config.layout.hash) continue;
    if (auto done = remove_tree(version_directory(config.directory, version)); !done) {
      return done.error();
    }
  }
  // A predecessor may have died between naming a version and pointing LATEST at it.
  if (auto done = write_latest(config.directory); !done) return done.error();
  return std::unique_ptr<WeightPublisher>(
      std::make_unique<DiskPublisher>(config, std::move(*lock), facts));
}

std::unique_ptr<WeightSubscriber> make_disk_subscriber(const WeightsConfig& config) {
  return std::make_unique<DiskSubscriber>(config);
}

Result<void> remove_disk_weights(const WeightsConfig& config) {
  std::error_code ignored;
  if (!fs::exists(config.directory, ignored)) return {};
  const Result<FileLock> lock = take_publisher_lock(config);
  if (!lock) return lock.error();
  for (const PolicyVersion version : versions_in(config.directory)) {
    if (auto done = remove_tree(version_directory(config.directory, version)); !done) return done;
  }
  for (const char* file : {kStaging, kLatest, kFamilyFacts, kLock}) {
    if (auto done = remove_tree(config.directory / file); !done) return done;
  }
  // Temporary files of replace_file(), left by a publisher that was killed.
  for (const auto& entry : fs::directory_iterator(config.directory, ignored)) {
    const std::string file = entry.path().filename();
    if (!file.starts_with(std::string(kLatest) + ".tmp") &&
        !file.starts_with(std::string(kFamilyFacts) + ".tmp"))
      continue;
    if (auto done = remove_tree(entry.path()); !done) return done;
  }
  fs::remove(config.directory, ignored);  // succeeds only if no other file is in the directory
  return {};
}

}  // namespace tandem::weights
