#include "actors/rollout/external/weight_source.h"

#include <utility>
#include <vector>

#include "actors/model/safetensors.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/guarded.h"
#include "runtime/base/secret.h"
#include "runtime/collective/nccl_process.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "runtime/device/shared_block.h"
#include "runtime/sandbox/workers.h"
#include "runtime/weights/tensor_broadcast.h"
#include "runtime/weights/tensor_feed.h"
#include "runtime/weights/torch_store.h"

namespace tandem::rollout {
namespace {

namespace fs = std::filesystem;

std::vector<std::span<const std::byte>> tensors_of(const device::Manifest& manifest,
                                                   std::span<const std::byte> arena) {
  std::vector<std::span<const std::byte>> tensors;
  for (const device::ParameterSpec& parameter : manifest.parameters)
    tensors.push_back(arena.subspan(parameter.offset_bytes, parameter.bytes));
  return tensors;
}

class FeedSource final : public WeightSource {
 public:
  FeedSource(std::unique_ptr<weights::TensorFeed> feed, device::Manifest manifest)
      : feed_(std::move(feed)), manifest_(std::move(manifest)) {}

  void offer(std::span<const std::byte> arena, const std::string&, Done done) override {
    feed_->serve(tensors_of(manifest_, arena));
    done(OfferedWeights{.feed = feed_->endpoint(), .feed_token = feed_->token()});
  }
  void withdraw() override { feed_->stop(); }

 private:
  const std::unique_ptr<weights::TensorFeed> feed_;
  const device::Manifest manifest_;
};

// Writes on a thread of its own: a rollout goes on while gigabytes are written. A folder gets its
// name once it is whole, and is there only while its version is offered.
class FolderSource final : public WeightSource {
 public:
  FolderSource(SourceSpec spec, FileLock lock) : spec_(std::move(spec)), lock_(std::move(lock)) {}
  ~FolderSource() override {
    withdraw();
    std::error_code ignored;
    fs::remove_all(spec_.folder, ignored);
  }

  void offer(std::span<const std::byte> arena, const std::string& name, Done done) override {
    withdraw();
    offered_ = spec_.folder / name;
    writer_ = std::make_unique<sandbox::Workers>(1);
    writer_->post(
        [this, arena, done = std::move(done), to = offered_](int) { done(write(arena, to)); });
  }
  void withdraw() override {
    if (!writer_) return;
    writer_.reset();  // waits
    std::error_code ignored;
    fs::remove_all(offered_, ignored);
  }

 private:
  Result<OfferedWeights> write(std::span<const std::byte> arena, const fs::path& to) const {
    const fs::path unfinished = to.string() + ".unfinished";
    std::error_code failed;
    fs::create_directories(unfinished, failed);
    Result<void> written;
    if (!failed)
      written = model::write_weights(unfinished / "model.safetensors", {spec_.manifest, arena});
    if (written && !failed) fs::rename(unfinished, to, failed);
    if (written && !failed) return OfferedWeights{.folder = to};
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    Error error = written ? Error{ErrorCode::kFailed, failed.message()} : written.error();
    error.message = "a version for the server could not be written: " + error.message;
    error.where = to;
    error.help = "make room there, or name another folder in rollout.engine.weights_dir";
    return error;
  }

  const SourceSpec spec_;
  const FileLock lock_;
  fs::path offered_;
  std::unique_ptr<sandbox::Workers> writer_;
};

// Steps that wait for the server's ranks run on a thread of their own.
class NcclSource final : public WeightSource {
 public:
  explicit NcclSource(SourceSpec spec)
      : spec_(std::move(spec)),
        broadcast_({.nccl = spec_.nccl,
                    .device = spec_.device,
                    .name = spec_.name,
                    .first_sum = spec_.meeting == NcclMeeting::kUniqueId,
                    .packed = spec_.packed,
                    .chunk_bytes = kChunkBytes,
                    .timeout = spec_.timeout}) {}
  ~NcclSource() override { withdraw(); }

  void offer(std::span<const std::byte> arena, const std::string&, Done done) override {
    arena_ = arena;
    OfferedWeights offered{.packed = spec_.packed, .chunk_bytes = kChunkBytes};
    name_place(offered);
    done(offered);
  }
  void withdraw() override {
    if (step_.with([](const Step& step) { return step.under_way; }))
      cut("the version is not offered any more");
    worker_ = {};  // waits
    step_.with([](Step& step) { step = {}; });
  }

  void begin(PushPhase phase, int ranks) override {
    step_.with([](Step& step) { step = {}; });
    if (phase == PushPhase::kMeet) start([this] { return meet(); });
    const bool late = spec_.meeting == NcclMeeting::kTorchStore;
    if (phase == PushPhase::kConnect && !late) start([this, ranks] { return connect(ranks); });
    if (phase == PushPhase::kSend)
      start([this, ranks, late]() -> Result<void> {
        if (late && !broadcast_.connected())
          if (auto connected = connect(ranks); !connected) return connected;
        return broadcast_.send(tensors_of(spec_.manifest, arena_));
      });
  }
  std::optional<Result<void>> outcome(OfferedWeights& offered) override {
    return step_.with([&](Step& step) -> std::optional<Result<void>> {
      if (step.under_way) return {};
      if (!step.unique_id.empty()) {
        offered.unique_id = step.unique_id;
        name_place(offered);
      }
      return step.result;
    });
  }
  void cut(const std::string& why) override {
    step_.with([](Step& step) { step.cut = true; });
    broadcast_.cut(why);
  }
  // At a store the ranks have joined once, and connect with the first tensor.
  bool connected() const override { return broadcast_.connected(); }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 20;
  static constexpr std::size_t kGroupChars = 12;

  struct Step {
    bool under_way = false, cut = false;
    Result<void> result;
    std::string unique_id;
  };

  void start(std::function<Result<void>()> work) {
    step_.with([](Step& step) { step.under_way = true; });
    if (!worker_) worker_ = std::make_unique<sandbox::Workers>(1);
    worker_->post([this, work = std::move(work)](int) {
      Result<void> result = work();
      step_.with([&](Step& step) {
        step.under_way = false;
        step.result = std::move(result);
      });
    });
  }
  Result<void> connect(int ranks) {
    auto connected = broadcast_.connect(
        ranks, [this] { return step_.with([](const Step& step) { return !step.cut; }); });
    if (connected) return connected;
    Error error = connected.error();
    error.message += "; NCCL is " + collective::nccl_version_text(spec_.nccl->api.version) +
                     " here: the server has to use the same version, and its log says which it has";
    return error;
  }
  void name_place(OfferedWeights& offered) const {
    if (!store_) return;
    offered.store = store_->endpoint();
    offered.group = group_;
  }
  Result<void> meet() {
    broadcast_.cut("the peers meet anew");  // at a store they connect later, and only then
    const auto id = broadcast_.meet();
    if (!id) return id.error();
    if (spec_.meeting == NcclMeeting::kTorchStore) {
      store_.reset();  // clients of the meeting before are cut off
      auto store = weights::TorchStore::listen(spec_.host, spec_.ports);
      if (!store) return store.error();
      store_ = *std::move(store);
      group_ = "tandem-" + random_secret().substr(0, kGroupChars);
      // As torch.distributed nests a group's keys: its name, the name once more as the prefix of
      // its backend, the device, and the number of its first communicator.
      store_->set("/" + group_ + "/" + group_ + "//cuda//0", {id->internal, sizeof id->internal});
    }
    step_.with([&](Step& step) { step.unique_id.assign(id->internal, sizeof id->internal); });
    return {};
  }

  const SourceSpec spec_;
  std::span<const std::byte> arena_;
  Guarded<Step> step_;
  weights::TensorBroadcast broadcast_;
  // Changed by the worker's thread alone; read while it does nothing.
  std::unique_ptr<weights::TorchStore> store_;
  std::string group_;
  std::unique_ptr<sandbox::Workers> worker_;  // last: its thread uses the others
};

// One block on the rollout's GPU, which the server's processes open by its name. It is written only
// when a push is over, and freed after the server that was started here has ended; a server that
// runs by itself has it open only within an update.
class IpcSource final : public WeightSource {
 public:
  void offer(std::span<const std::byte> arena, const std::string&, Done done) override {
    withdraw();
    writer_ = std::make_unique<sandbox::Workers>(1);
    writer_->post([this, arena, done = std::move(done)](int) { done(place(arena)); });
  }
  void withdraw() override { writer_.reset(); }  // waits

 private:
  Result<OfferedWeights> place(std::span<const std::byte> arena) {
    if (block_.size() != arena.size()) {
      block_ = {};
      auto made = device::Buffer::allocate(arena.size(), "a version for the engine's server",
                                           device::MemoryKind::kDevice);
      if (!made) return made.error();
      block_ = *std::move(made);
      const auto name = device::share(block_);
      if (!name) return name.error();
      name_.assign(reinterpret_cast<const char*>(name->handle.data()), name->handle.size());
    }
    copy(copies_.stream(), block_.data(), arena.data(), arena.size());
    synchronize(copies_.stream());
    return OfferedWeights{.block = name_, .block_bytes = arena.size()};
  }

  const device::Queue copies_{device::DeviceKind::kCuda};
  device::Buffer block_;
  std::string name_;
  std::unique_ptr<sandbox::Workers> writer_;  // last: its thread uses the others
};

constexpr const char* kLockSuffix = ".lock";  // behind the name of a rollout's folder
constexpr Duration kLockMax = std::chrono::seconds(10);

template <class Use>
void for_each_in(const fs::path& folder, Use use) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    use(at->path());
}

// Removes what rollouts of a job that have died on this host have left: folders "rollout-N@HOST",
// whose locks are free. `host`: "@HOST".
void remove_abandoned(const fs::path& job, const std::string& host) {
  for_each_in(job, [&](const fs::path& file) {
    const std::string name = file.filename().string();
    if (!name.starts_with("rollout-") || !name.ends_with(host + kLockSuffix)) return;
    fs::path folder = file;
    folder.replace_extension();
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) return;
    const auto lock = FileLock::take(file, "", "");
    if (lock) fs::remove_all(folder, ignored);
  });
}

Result<std::unique_ptr<WeightSource>> make_folder_source(SourceSpec spec) {
  const auto failed_by = [&](ErrorCode code, const std::string& why) {
    return Error{code, "cannot make the folder for versions: " + why, spec.folder,
                 "name another one in rollout.engine.weights_dir"};
  };
  std::error_code failed;
  fs::create_directories(spec.folder.parent_path(), failed);
  if (failed) return failed_by(ErrorCode::kInvalid, failed.message());
  auto lock = FileLock::take_within(spec.folder.string() + kLockSuffix, "the folder for versions",
                                    std::min(spec.timeout, kLockMax), {});
  if (!lock) return failed_by(lock.error().code, lock.error().message);
  fs::remove_all(spec.folder, failed);  // what an incarnation before this one left
  if (!failed) fs::create_directories(spec.folder, failed);
  if (failed) return failed_by(ErrorCode::kInvalid, failed.message());
  // Also of other jobs, whose folders are beside this one's where it has a name of its own.
  const fs::path job = spec.folder.parent_path();
  const std::string own = spec.folder.filename().string();
  const std::string host = own.substr(std::min(own.find('@'), own.size()));
  remove_abandoned(job, host);
  if (job.filename().string().starts_with(kJobFolderPrefix))
    for_each_in(job.parent_path(), [&](const fs::path& other) {
      if (other.filename().string().starts_with(kJobFolderPrefix)) remove_abandoned(other, host);
    });
  return std::unique_ptr<WeightSource>(
      std::make_unique<FolderSource>(std::move(spec), *std::move(lock)));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> make_weight_source(WeightTransfer transfer, SourceSpec spec) {
  if (transfer == WeightTransfer::kDisk) return make_folder_source(std::move(spec));
  if (transfer == WeightTransfer::kNccl)
    return std::unique_ptr<WeightSource>(std::make_unique<NcclSource>(std::move(spec)));
  if (transfer == WeightTransfer::kIpc)
    return std::unique_ptr<WeightSource>(std::make_unique<IpcSource>());
  CHECK(transfer == WeightTransfer::kTcp);
  auto feed = weights::TensorFeed::listen(spec.host, spec.ports);
  if (!feed) return feed.error();
  return std::unique_ptr<WeightSource>(
      std::make_unique<FeedSource>(*std::move(feed), std::move(spec.manifest)));
}

}  // namespace tandem::rollout
