// The file's creation and takeover, where two publishers may race and any of them may die. A new
// segment is an unnamed file (O_TMPFILE) that is filled in, locked and only then linked to its
// name: so a segment under a name is always complete, and of several publishers linkat() lets one
// win. A publisher that loses, or finds that its file lost its name meanwhile, looks again, at most
// kAttemptsMax times.
//
// Open-file-description locks (F_OFD_SETLK, fcntl(2)) belong to the open file and not to the
// process: a lock ends when the last descriptor of its open file is closed, and two opens of the
// file exclude each other even in one process.
#include "runtime/weights/shm_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <new>
#include <system_error>

#include "runtime/device/shared_block.h"

namespace tandem::weights {
namespace {

constexpr std::uint64_t kMagic = 0x54414e44454d5732;  // "TANDEMW2"; changes with the layout
constexpr std::size_t kPageBytes = 4096;
constexpr const char* kDirectory = "/dev/shm";
constexpr std::string_view kFilePrefix = "tandem-weights.";
constexpr int kAttemptsMax = 16;  // attempts while publishers race for one name

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

constexpr std::size_t kHeaderBytes = round_up(sizeof(SegmentHeader));

bool on_gpu(const WeightsConfig& config) {
  return traits_of(config.type).versions == VersionMemory::kGpuMemory;
}

std::size_t slots_bytes(const WeightsConfig& config) {
  const std::size_t bytes = on_gpu(config) ? sizeof(device::BlockName) : config.layout.arena_bytes;
  return static_cast<std::size_t>(config.slots) * round_up(bytes);
}

struct flock lock_range(std::uint32_t byte, std::uint32_t count) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = count;
  return range;
}

Result<Mapping> map_range(int fd, std::size_t offset, std::size_t bytes, int protection) {
  void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) return file_error("map shared memory", kDirectory);
  return Mapping(address, bytes);
}

Error not_ours(const std::filesystem::path& path) {
  return {.code = ErrorCode::kInvalid,
          .message =
              "the published weights have another layout or number of versions than this "
              "process expects",
          .where = path.string(),
          .help = {}};
}

// Whether the file holds a segment of this configuration. `life`, where given, receives the number
// of publishers that the segment has had, for a successor that counts on.
bool matches(int fd, const WeightsConfig& config, std::uint64_t* life) {
  struct stat facts;
  if (::fstat(fd, &facts) != 0) return false;
  if (static_cast<std::size_t>(facts.st_size) < kHeaderBytes) return false;
  const Result<Mapping> mapping = map_range(fd, 0, kHeaderBytes, PROT_READ);
  if (!mapping) return false;
  const auto& header = *reinterpret_cast<const SegmentHeader*>(mapping->data());
  if (header.magic != kMagic) return false;
  if (life != nullptr) *life = header.publisher_life.load();
  return header.slots == static_cast<std::uint64_t>(config.slots) &&
         header.arena_bytes == config.layout.arena_bytes &&
         header.layout_hash == config.layout.hash && (header.on_gpu == 1) == on_gpu(config) &&
         static_cast<std::size_t>(facts.st_size) == kHeaderBytes + slots_bytes(config);
}

OwnedFd open_segment_file(const std::filesystem::path& path) {
  return OwnedFd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
}

bool lock_bytes(int fd, std::uint32_t byte, std::uint32_t count) {
  struct flock range = lock_range(byte, count);
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
}

Error publisher_lives(int fd, const std::filesystem::path& path) {
  std::string owner = "another process";
  if (const Result<Mapping> mapping = map_range(fd, 0, kHeaderBytes, PROT_READ); mapping) {
    const auto& header = *reinterpret_cast<const SegmentHeader*>(mapping->data());
    owner = "process " + std::to_string(header.publisher_pid.load());
  }
  return {.message = "these weights are being published by " + owner,
          .where = path.string(),
          .help = {}};
}

}  // namespace

std::optional<WeightOffer> offer_of(const SegmentSlot& slot) {
  const std::uint64_t sequence = slot.sequence.load();
  if (sequence % 2 != 0 || slot.offered.load() == 0) return std::nullopt;
  const WeightOffer offer{.version = {slot.version.load()}, .checksum = slot.checksum.load()};
  // A publisher has claimed the slot meanwhile: version and checksum may not belong together.
  if (slot.sequence.load() != sequence) return std::nullopt;
  return offer;
}

std::optional<PolicyVersion> offered_version(const SegmentSlot& slot) {
  const std::optional<WeightOffer> offer = offer_of(slot);
  return offer ? std::optional(offer->version) : std::nullopt;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, bytes_);
}

std::filesystem::path ShmSegment::path_of(const std::string& name) {
  return std::filesystem::path(kDirectory) / (std::string(kFilePrefix) + name);
}

Result<std::optional<ShmSegment>> ShmSegment::open(const WeightsConfig& config, Access access) {
  const std::filesystem::path path = path_of(config.name);
  OwnedFd fd = open_segment_file(path);
  if (!fd && errno == ENOENT) return std::optional<ShmSegment>();
  if (!fd) return file_error("open shared memory", path);
  if (!matches(fd.get(), config, nullptr)) return not_ours(path);
  Result<ShmSegment> segment = map(std::move(fd), config, access);
  if (!segment) return segment.error();
  return std::optional<ShmSegment>(std::move(*segment));
}

Result<ShmSegment> ShmSegment::open_or_create(const WeightsConfig& config) {
  const std::filesystem::path path = path_of(config.name);
  std::uint64_t life = 0;  // of the segment that ours replaces
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    OwnedFd fd = open_segment_file(path);
    if (!fd && errno != ENOENT) return file_error("open shared memory", path);
    if (!fd) {
      Result<std::optional<ShmSegment>> created = create(config, life + 1);
      if (!created) return created.error();
      if (*created) return std::move(**created);
      continue;  // another publisher was faster: look at its segment
    }
    if (!lock_bytes(fd.get(), kPublisherLockByte, 1)) return publisher_lives(fd.get(), path);
    struct stat facts;
    if (::fstat(fd.get(), &facts) == 0 && facts.st_nlink == 0) continue;  // given up meanwhile
    if (!matches(fd.get(), config, &life)) {
      ::unlink(path.c_str());  // allowed: this publisher holds the lock of that file
      continue;
    }
    Result<ShmSegment> segment = map(std::move(fd), config, Access::kWriteSlots);
    if (segment) segment->take_over();
    return segment;
  }
  return Error{.message = "cannot create shared memory: other publishers keep taking the name",
               .where = path.string(),
               .help = {}};
}

Result<ShmSegment> ShmSegment::map(OwnedFd fd, const WeightsConfig& config, Access access) {
  const int protection = access == Access::kWriteSlots ? PROT_READ | PROT_WRITE : PROT_READ;
  Result<Mapping> header = map_range(fd.get(), 0, kHeaderBytes, PROT_READ | PROT_WRITE);
  if (!header) return header.error();
  Result<Mapping> slots = map_range(fd.get(), kHeaderBytes, slots_bytes(config), protection);
  if (!slots) return slots.error();
  return ShmSegment(std::move(fd), std::move(*header), std::move(*slots));
}

// Makes a segment; none if another publisher took the name meanwhile.
Result<std::optional<ShmSegment>> ShmSegment::create(const WeightsConfig& config,
                                                     std::uint64_t life) {
  const std::filesystem::path path = path_of(config.name);
  const std::size_t bytes = kHeaderBytes + slots_bytes(config);
  // O_TMPFILE has no name until it is linked: a creator that dies leaves nothing.
  OwnedFd fd(::open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return file_error("create shared memory", kDirectory);
  // Allocates every page at once: later writes find warm memory, and a full file system is an error
  // here and not a SIGBUS in a later write.
  if (const int failure = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes))) {
    errno = failure;
    Error error = file_error("allocate " + std::to_string(bytes) + " bytes of shared memory", path);
    error.help = "set weight_broadcast.type to disk, or make /dev/shm larger";
    return error;
  }
  Result<ShmSegment> segment = map(std::move(fd), config, Access::kWriteSlots);
  if (!segment) return segment.error();
  auto* header = new (segment->header_.data()) SegmentHeader{};
  header->slots = static_cast<std::uint64_t>(config.slots);
  header->arena_bytes = config.layout.arena_bytes;
  header->layout_hash = config.layout.hash;
  header->on_gpu = on_gpu(config) ? 1 : 0;
  header->publisher_life = life;
  header->publisher_pid = ::getpid();
  header->magic = kMagic;
  // No other process can open the file before it has a name.
  CHECK(segment->lock_byte(kPublisherLockByte));
  const std::string self = "/proc/self/fd/" + std::to_string(segment->fd_.get());
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    if (errno == EEXIST) return std::optional<ShmSegment>();
    return file_error("name shared memory", path);
  }
  return std::optional<ShmSegment>(std::move(*segment));
}

// A publisher that died while it wrote a slot left an odd sequence there: the slot becomes empty.
void ShmSegment::take_over() const {
  for (SegmentSlot& slot : header().slot) {
    if (slot.sequence.load() % 2 == 0) continue;
    slot.offered = 0;
    slot.sequence.fetch_add(1);
  }
  header().publisher_pid = ::getpid();
  header().publisher_life.fetch_add(1);
}

SegmentHeader& ShmSegment::header() const {
  return *reinterpret_cast<SegmentHeader*>(header_.data());
}

std::span<std::byte> ShmSegment::slot_bytes(std::size_t slot) const {
  const std::uint64_t bytes =
      header().on_gpu == 1 ? sizeof(device::BlockName) : header().arena_bytes;
  return {slots_.data() + slot * round_up(bytes), bytes};
}

bool ShmSegment::lock_byte(std::uint32_t byte, std::uint32_t count) const {
  return lock_bytes(fd_.get(), byte, count);
}

bool ShmSegment::byte_is_locked_by_another(std::uint32_t byte) const {
  struct flock range = lock_range(byte, 1);
  CHECK(::fcntl(fd_.get(), F_OFD_GETLK, &range) == 0);
  return range.l_type != F_UNLCK;
}

bool ShmSegment::given_up() const {
  struct stat facts;
  CHECK(::fstat(fd_.get(), &facts) == 0);
  return facts.st_nlink == 0;
}

void ShmSegment::tell_release() const {
  std::atomic<std::uint32_t>& releases = header().releases;
  releases.fetch_add(1);
  // The futex is not private: the waiting publisher is another process.
  ::syscall(SYS_futex, &releases, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ShmSegment::wait_for_release(std::uint32_t seen, Duration timeout) const {
  const auto whole = std::chrono::floor<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = whole.count(), .tv_nsec = (timeout - whole).count()};
  ::syscall(SYS_futex, &header().releases, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

Result<void> remove_segment(const std::string& name) {
  const std::filesystem::path path = ShmSegment::path_of(name);
  const OwnedFd fd = open_segment_file(path);
  if (!fd && errno == ENOENT) return {};
  if (!fd) return file_error("open shared memory", path);
  if (!lock_bytes(fd.get(), kPublisherLockByte, 1)) return publisher_lives(fd.get(), path);
  if (::unlink(path.c_str()) != 0) return file_error("remove shared memory", path);
  return {};
}

int remove_abandoned_segments(std::string_view name_prefix) {
  const std::string prefix = std::string(kFilePrefix) + std::string(name_prefix);
  int removed = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(kDirectory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    const OwnedFd fd = open_segment_file(entry->path());
    // The publisher's byte and all readers' bytes at once: the lock succeeds only if none of them
    // is held.
    if (!fd || !lock_bytes(fd.get(), 0, kPublisherLockByte + 1)) continue;
    if (::unlink(entry->path().c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace tandem::weights
