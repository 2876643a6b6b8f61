// Bulk transfers over real TCP loopback, and the segment stores beneath: SS-1 … SS-3, checksums,
// limits.
#include "runtime/payload/bulk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>

#include "runtime/base/digest.h"
#include "runtime/base/rng.h"
#include "runtime/link/zmq_socket.h"
#include "runtime/payload/bulk_messages.h"
#include "tests/runtime/link/bindings.h"

namespace tandem::payload {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPatience = seconds(100);  // ends a hang; never measured
constexpr std::size_t kMiB = 1 << 20;

std::string random_bytes(std::size_t bytes, Rng& rng) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng.next());
  return text;
}

class Directory {
 public:
  Directory()
      : path_(std::filesystem::temp_directory_path() /
              ("tandem-bulk-test-" + std::to_string(getpid()) + "-" + std::to_string(made_++))) {}
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int made_ = 0;
  const std::filesystem::path path_;
};

struct Bulk {
  explicit Bulk(std::unique_ptr<SegmentStore> segments)
      : store(std::move(segments)),
        server(std::move(BulkServer::listen({link::here()}, "vm", *store)).value()),
        client(io, {server->endpoints().front(), {}}) {}
  std::unique_ptr<SegmentStore> store;
  std::unique_ptr<BulkServer> server;
  link::IoThread io;
  BulkClient client;
};

std::unique_ptr<SegmentStore> files(const Directory& directory, SegmentLimits limits = {}) {
  return std::move(open_file_segments(directory.path(), limits)).value();
}

constexpr std::uint64_t kChecksum = 77;

Extent put(SegmentStore& store, const std::string& text) {
  const std::uint64_t size = text.size();
  const Extent extent = store.reserve({&size, 1}).value().front();
  store.write(extent, 0, std::as_bytes(std::span(text.data(), text.size()))).value();
  store.commit(extent, kChecksum);
  return extent;
}

// Counts the calls that become system calls.
class CountedStore : public SegmentStore {
 public:
  explicit CountedStore(std::unique_ptr<SegmentStore> store) : store_(std::move(store)) {}

  Result<std::vector<Extent>> reserve(std::span<const std::uint64_t> sizes) override {
    return store_->reserve(sizes);
  }
  Result<void> write(const Extent& within, std::uint64_t offset,
                     std::span<const std::byte> bytes) override {
    ++writes;
    return store_->write(within, offset, bytes);
  }
  Result<void> read(const Extent& from, std::uint64_t offset,
                    std::span<std::byte> to) const override {
    ++reads;
    return store_->read(from, offset, to);
  }
  void commit(const Extent& extent, std::uint64_t checksum) override {
    store_->commit(extent, checksum);
  }
  void abandon(const Extent& extent) override { store_->abandon(extent); }
  bool holds(const wire::PayloadRef& payload) const override { return store_->holds(payload); }
  bool release(const wire::PayloadRef& payload) override { return store_->release(payload); }
  void retain(const wire::PayloadRef& payload) override { store_->retain(payload); }
  Result<void> reclaim(std::uint32_t below_segment) override {
    return store_->reclaim(below_segment);
  }
  Result<void> delete_segment(std::uint32_t segment) override {
    return store_->delete_segment(segment);
  }
  std::uint64_t bytes() const override { return store_->bytes(); }
  std::uint32_t open_segment() const override { return store_->open_segment(); }

  std::atomic<int> writes = 0;
  mutable std::atomic<int> reads = 0;

 private:
  const std::unique_ptr<SegmentStore> store_;
};

TEST(Bulk, payloads_of_every_size_come_back) {
  Directory directory;
  Bulk bulk(files(directory));
  Rng rng(1);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{2}, kMiB - 1, kMiB, kMiB + 1, 5 * kMiB + 7, 20 * kMiB}) {
    SCOPED_TRACE(size);
    const std::string payload = random_bytes(size, rng);
    const auto ref = bulk.client.put(payload, kPatience);
    ASSERT_TRUE(ref) << render(ref.error());
    EXPECT_EQ(ref->node, "vm");
    EXPECT_EQ(ref->bytes, size);
    const auto back = bulk.client.get(*ref, kPatience);
    ASSERT_TRUE(back) << render(back.error());
    EXPECT_TRUE(*back == payload);
  }
}

TEST(Bulk, many_payloads_travel_in_one_request) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Directory directory;
    Bulk bulk(files(directory, {.segment_bytes_max = 300'000}));
    std::vector<std::string> payloads;
    for (int i = 0; i < 1500; ++i) payloads.push_back(random_bytes(1 + rng.below(3000), rng));
    auto refs = bulk.client.put_many(payloads, kPatience);
    ASSERT_TRUE(refs) << render(refs.error());
    ASSERT_EQ(refs->size(), payloads.size());
    std::vector<wire::PayloadRef> picked;
    std::vector<std::string> expected;
    for (int i = 0; i < 700; ++i) {
      const std::size_t which = rng.below(payloads.size());
      picked.push_back((*refs)[which]);
      expected.push_back(payloads[which]);
    }
    const auto back = bulk.client.get_many(picked, kPatience);
    ASSERT_TRUE(back) << render(back.error());
    EXPECT_EQ(*back, expected);
  }
}

TEST(Bulk, payloads_that_lie_one_behind_the_other_are_written_and_read_together) {
  Directory directory;
  auto counted = std::make_unique<CountedStore>(files(directory));
  const CountedStore& store = *counted;
  Bulk bulk(std::move(counted));
  Rng rng(7);
  std::vector<std::string> payloads;
  for (int i = 0; i < 64; ++i) payloads.push_back(random_bytes(1 + rng.below(900), rng));
  const auto refs = bulk.client.put_many(payloads, kPatience);
  ASSERT_TRUE(refs) << render(refs.error());
  EXPECT_EQ(store.writes, 1);
  EXPECT_EQ(store.reads, 1) << "to verify the checksums";
  const auto all = bulk.client.get_many(*refs, kPatience);
  ASSERT_TRUE(all) << render(all.error());
  EXPECT_EQ(*all, payloads);
  EXPECT_EQ(store.reads, 2);
  const auto some = bulk.client.get_many({(*refs)[5], (*refs)[6], (*refs)[9]}, kPatience);
  ASSERT_TRUE(some) << render(some.error());
  EXPECT_EQ(*some, (std::vector{payloads[5], payloads[6], payloads[9]}));
  EXPECT_EQ(store.reads, 4);
}

TEST(Bulk, requests_of_several_clients_interleave) {
  Directory directory;
  Bulk bulk(files(directory));
  BulkClient other(bulk.io, {bulk.server->endpoints().front(), {}});
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0;
  constexpr int kRequests = 60;
  Rng rng(3);
  for (int i = 0; i < kRequests; ++i) {
    auto payload = std::make_shared<std::string>(random_bytes(1 + rng.below(3 * kMiB), rng));
    BulkClient& client = i % 2 ? bulk.client : other;
    client.put_many(
        {*payload}, kPatience, [&, payload](Result<std::vector<wire::PayloadRef>> refs) {
          ASSERT_TRUE(refs) << render(refs.error());
          client.get_many(*refs, kPatience, [&, payload](Result<std::vector<std::string>> back) {
            ASSERT_TRUE(back) << render(back.error());
            EXPECT_TRUE(back->front() == *payload);
            const std::lock_guard lock(mutex);
            ++done;
            changed.notify_one();
          });
        });
  }
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return done == kRequests; }));
  EXPECT_EQ(bulk.server->counters().payloads_put, static_cast<std::uint64_t>(kRequests));
}

TEST(Bulk, a_damaged_file_is_a_checksum_error) {
  Directory directory;
  Bulk bulk(files(directory));
  const wire::PayloadRef ref = bulk.client.put(std::string(5000, 'x'), kPatience).value();
  {
    std::fstream file(directory.path() / "segment-00000000",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4321);
    file.put('y');
  }
  const auto back = bulk.client.get(ref, kPatience);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::kFailed);
  EXPECT_NE(back.error().message.find("checksum"), std::string::npos) << back.error().message;
  EXPECT_NE(back.error().message.find("segment 0"), std::string::npos) << back.error().message;
}

TEST(Bulk, a_full_store_is_an_error_and_takes_again_after_a_reclaim) {
  Directory directory;
  Bulk bulk(files(directory, {.segment_bytes_max = 10'000, .bytes_max = 35'000}));
  std::vector<wire::PayloadRef> refs;
  while (true) {
    const auto ref = bulk.client.put(std::string(10'000, 'x'), kPatience);
    if (ref) {
      refs.push_back(*ref);
      continue;
    }
    EXPECT_EQ(ref.error().where, directory.path().string());
    EXPECT_NE(ref.error().message.find("no room"), std::string::npos) << ref.error().message;
    break;
  }
  ASSERT_EQ(refs.size(), 3u);
  EXPECT_TRUE(bulk.store->release(refs[0]));
  ASSERT_TRUE(bulk.store->reclaim(bulk.store->open_segment()));
  EXPECT_TRUE(bulk.client.put(std::string(10'000, 'x'), kPatience));
  EXPECT_TRUE(bulk.client.get(refs[1], kPatience));
  const auto gone = bulk.client.get(refs[0], kPatience);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
}

TEST(Bulk, an_empty_payload_is_refused) {
  Directory directory;
  Bulk bulk(files(directory));
  const auto ref = bulk.client.put("", kPatience);
  ASSERT_FALSE(ref);
  EXPECT_EQ(ref.error().code, ErrorCode::kInvalid);
  EXPECT_NE(ref.error().message.find("is empty"), std::string::npos) << ref.error().message;
  EXPECT_TRUE(bulk.client.put("x", kPatience));
}

TEST(Bulk, a_device_without_room_is_an_error_that_names_the_directory) {
  Directory directory;
  Bulk bulk(files(directory));
  std::filesystem::create_symlink("/dev/full", directory.path() / "segment-00000000");
  const auto ref = bulk.client.put("payload", kPatience);
  ASSERT_FALSE(ref);
  EXPECT_EQ(ref.error().where, directory.path().string());
  EXPECT_NE(ref.error().message.find("No space left"), std::string::npos) << ref.error().message;
  EXPECT_EQ(ref.error().os_error, ENOSPC) << "by which a rollout knows that it may wait for room";
}

TEST(Bulk, bad_refs_are_errors) {
  Directory directory;
  Bulk bulk(files(directory));
  wire::PayloadRef ref = bulk.client.put("payload", kPatience).value();
  for (const auto& [change, code] :
       std::vector<std::pair<std::function<void(wire::PayloadRef&)>, ErrorCode>>{
           {[](wire::PayloadRef& r) { r.node = "elsewhere"; }, ErrorCode::kNotFound},
           {[](wire::PayloadRef& r) { r.segment = 9; }, ErrorCode::kNotFound},
           {[](wire::PayloadRef& r) { r.offset = ~0ull; }, ErrorCode::kNotFound},
           {[](wire::PayloadRef& r) { r.bytes = 8; }, ErrorCode::kNotFound},
           {[](wire::PayloadRef& r) { r.bytes = ~0ull; }, ErrorCode::kInvalid},
           {[](wire::PayloadRef& r) { r.checksum ^= 1; }, ErrorCode::kFailed}}) {
    wire::PayloadRef bad = ref;
    change(bad);
    const auto back = bulk.client.get(bad, kPatience);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, code) << back.error().message;
  }
  EXPECT_EQ(bulk.client.get(ref, kPatience).value(), "payload");
}

TEST(Bulk, nobody_there_ends_at_the_deadline) {
  link::IoThread io;
  BulkClient client(io, {{.path = "/nowhere"}, {}});
  const auto ref = client.put("payload", milliseconds(50));
  ASSERT_FALSE(ref);
  EXPECT_EQ(ref.error().code, ErrorCode::kUnreachable);
}

// Sixteen requests travel at a time, so that the others wait for their turn.
TEST(Bulk, a_waiting_request_ends_at_its_own_deadline_behind_a_more_patient_one) {
  link::IoThread io;
  std::promise<Result<std::vector<wire::PayloadRef>>> impatient;
  BulkClient client(io, {{.path = "/nowhere"}, {}});
  for (int i = 0; i < 20; ++i) client.put_many({"patient"}, 3 * kPatience, [](auto&&) {});
  client.put_many({"impatient"}, milliseconds(50),
                  [&](auto refs) { impatient.set_value(std::move(refs)); });
  auto answer = impatient.get_future();
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(answer.get().error().code, ErrorCode::kTimedOut);
}

TEST(Bulk, closing_a_client_ends_its_requests) {
  link::IoThread io;
  std::promise<Result<std::vector<wire::PayloadRef>>> answer;
  {
    BulkClient client(io, {{.path = "/nowhere"}, {}});
    client.put_many({"payload"}, kPatience, [&](auto refs) { answer.set_value(std::move(refs)); });
  }
  EXPECT_EQ(answer.get_future().get().error().code, ErrorCode::kUnreachable);
}

// Takes the place of a server that dies after it has read a request, and before it answers.
class DumbServer {
 public:
  explicit DumbServer(const link::Binding& at) {
    io_.run([&] {
      socket_.emplace(io_, zmq::socket_type::router,
                      link::ZmqOptions{.message_bytes_max = 16 * kMiB});
      ASSERT_TRUE(socket_->bind(at));
      socket_->start(
          [this](auto, auto) {
            if (++messages_ == 2) heard_.set_value();
          },
          [] { return false; });
    });
  }
  ~DumbServer() {
    io_.run([this] { socket_.reset(); });
  }
  bool heard_both() { return heard_.get_future().wait_for(kPatience) == std::future_status::ready; }

 private:
  link::IoThread io_;
  std::optional<link::ZmqSocket> socket_;
  std::promise<void> heard_;
  int messages_ = 0;
};

// Requests that a server has read and not answered, when the next server takes its place.
class Unanswered : public testing::Test {
 protected:
  Unanswered() : store(files(directory)) {
    const std::string text = "of a time before";
    const Extent extent = put(*store, text);
    const wire::PayloadRef kept{"vm", extent.segment, extent.offset, extent.bytes,
                                checksum64(std::as_bytes(std::span(text.data(), text.size())))};
    Rng rng(2);
    large = random_bytes(3 * kMiB, rng);
    DumbServer first(place);
    client.put_many({large}, kPatience, [&](auto refs) { wrote.set_value(std::move(refs)); });
    client.get_many({kept}, kPatience, [&](auto bytes) { read.set_value(std::move(bytes)); });
    EXPECT_TRUE(first.heard_both());
  }
  void listen() { server = std::move(BulkServer::listen({place}, "vm", *store)).value(); }
  void expect_answers() {
    EXPECT_EQ(read.get_future().get().value(), std::vector<std::string>{"of a time before"});
    const auto refs = wrote.get_future().get().value();
    EXPECT_EQ(client.get(refs.at(0), kPatience).value(), large);
  }

  Directory directory;
  const link::Binding place = link::here();
  std::string large;
  std::promise<Result<std::vector<wire::PayloadRef>>> wrote;
  std::promise<Result<std::vector<std::string>>> read;
  std::unique_ptr<SegmentStore> store;
  std::unique_ptr<BulkServer> server;
  link::IoThread io;
  BulkClient client{io, {place.at, {}}};
};

TEST_F(Unanswered, are_sent_anew_to_a_server_that_is_known_to_have_started_anew) {
  listen();
  client.send_anew();
  expect_answers();
}

TEST_F(Unanswered, are_asked_for_and_begin_again_where_nobody_tells_of_the_loss) {
  listen();
  expect_answers();
}

// A client as its messages are, which forgets what the server has answered.
class RawClient {
 public:
  explicit RawClient(const link::Endpoint& server) {
    io_.run([&] {
      socket_.emplace(io_, zmq::socket_type::dealer,
                      link::ZmqOptions{.message_bytes_max = 16 * kMiB});
      socket_->connect({server, {}}, "");
      socket_->start(
          [this](auto, std::span<zmq::message_t> parts) {
            const std::lock_guard lock(mutex_);
            answers_.push_back(*wire::decode<BulkMessage>(parts[0].to_string_view()));
            came_.notify_one();
          },
          [this] {
            if (!next_) return false;
            const bool sent = socket_->write({}, next_->first, next_->second) == link::Wrote::kSent;
            if (sent) next_.reset();
            return sent;
          });
    });
  }
  ~RawClient() {
    io_.run([this] { socket_.reset(); });
  }
  BulkMessage ask(const BulkMessage& message, const std::string& body = {}) {
    io_.run([&] {
      next_.emplace(wire::encode(message), body);
      socket_->pump();
    });
    std::unique_lock lock(mutex_);
    CHECK(came_.wait_for(lock, kPatience, [&] { return !answers_.empty(); }));
    const BulkMessage answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

 private:
  link::IoThread io_;
  std::optional<link::ZmqSocket> socket_;
  std::optional<std::pair<std::string, std::string>> next_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<BulkMessage> answers_;
};

TEST(Bulk, a_put_whose_answer_was_lost_is_stored_once) {
  Directory directory;
  Bulk bulk(files(directory));
  const std::string text = "payload";
  const std::uint64_t sum = checksum64(std::as_bytes(std::span(text.data(), text.size())));
  const auto put = [&](RawClient& client, std::uint64_t request) {
    return client.ask(PutOpen{{request}, {text.size()}, {sum}, 7}, text);
  };
  RawClient before(bulk.server->endpoints().front()), after(bulk.server->endpoints().front());
  const auto first = std::get<Stored>(put(before, 1)).refs;
  const std::uint64_t bytes = bulk.store->bytes();
  EXPECT_EQ(std::get<Stored>(put(after, 1)).refs, first);
  EXPECT_EQ(std::get<Stored>(put(after, 2)).refs, first);
  EXPECT_EQ(bulk.store->bytes(), bytes);
}

TEST(Bulk, an_attempt_whose_connection_broke_ends_when_the_next_begins) {
  Directory directory;
  Bulk bulk(files(directory));
  const std::string text = "payload";
  const std::uint64_t sum = checksum64(std::as_bytes(std::span(text.data(), text.size())));
  RawClient before(bulk.server->endpoints().front()), after(bulk.server->endpoints().front());
  EXPECT_TRUE(std::holds_alternative<Ack>(
      before.ask(PutOpen{{1}, {text.size()}, {sum}, 7}, text.substr(0, 3))));
  EXPECT_TRUE(std::holds_alternative<Unknown>(after.ask(Ask{{1}}))) << "it is another client's";
  EXPECT_TRUE(
      std::holds_alternative<Stored>(after.ask(PutOpen{{2}, {text.size()}, {sum}, 7}, text)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(before.ask(Chunk{{1}, 3}, text.substr(3))));
}

// The store itself.
class Store : public testing::Test {
 protected:
  std::unique_ptr<SegmentStore> make(SegmentLimits limits) { return files(directory_, limits); }
  Directory directory_;
};

wire::PayloadRef ref_of(const Extent& extent) {
  return {"vm", extent.segment, extent.offset, extent.bytes, kChecksum};
}

Result<std::string> get(SegmentStore& store, const Extent& extent) {
  std::string text(extent.bytes, '\0');
  const auto got =
      store.read(extent, 0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (!got) return got.error();
  return text;
}

TEST_F(Store, SS_1_payloads_stay_as_they_were_committed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    auto store = make({.segment_bytes_max = 1000});
    std::vector<std::pair<Extent, std::string>> payloads;
    for (int i = 0; i < 50; ++i) {
      const std::string text = random_bytes(1 + rng.below(1500), rng);
      payloads.emplace_back(put(*store, text), text);
    }
    for (const auto& [extent, text] : payloads) EXPECT_TRUE(get(*store, extent).value() == text);
  }
}

TEST_F(Store, SS_2_a_segment_goes_when_sealed_below_the_mark_and_without_live_payloads) {
  auto store = make({.segment_bytes_max = 10});
  const Extent a = put(*store, "aaaaa"), b = put(*store, "bbbbb");
  const Extent c = put(*store, "ccccc");
  ASSERT_EQ(a.segment, b.segment);
  ASSERT_NE(b.segment, c.segment);
  const std::uint64_t size = 10;
  const Extent writing = store->reserve({&size, 1}).value().front();
  (void)put(*store, "ddddd");

  EXPECT_TRUE(store->release(ref_of(a)));
  ASSERT_TRUE(store->reclaim(100));
  EXPECT_TRUE(get(*store, b)) << "one is live";
  EXPECT_TRUE(store->release(ref_of(b)));
  ASSERT_TRUE(store->reclaim(a.segment));
  EXPECT_TRUE(get(*store, b)) << "not below the mark";
  ASSERT_TRUE(store->reclaim(100));
  EXPECT_FALSE(get(*store, b));
  EXPECT_TRUE(get(*store, c));
  EXPECT_TRUE(store->write(writing, 0, std::as_bytes(std::span("0123456789", 10))))
      << "being written";
  EXPECT_EQ(store->bytes(), 20u);
}

TEST_F(Store, only_the_very_payload_is_released_and_only_once) {
  auto store = make({.segment_bytes_max = 10});
  const wire::PayloadRef mine = ref_of(put(*store, "aaaaa"));
  const wire::PayloadRef other = ref_of(put(*store, "bbbbb"));
  (void)put(*store, "ccccc");
  wire::PayloadRef place = mine, length = mine, content = mine, segment = mine;
  place.offset = 1;
  length.bytes = 4;
  content.checksum = 78;
  segment.segment = 99;
  for (const wire::PayloadRef& forged : {place, length, content, segment}) {
    EXPECT_FALSE(store->holds(forged));
    EXPECT_FALSE(store->release(forged));
  }
  EXPECT_TRUE(store->release(mine));
  EXPECT_FALSE(store->release(mine)) << "once";
  ASSERT_TRUE(store->reclaim(100));
  EXPECT_TRUE(store->holds(other)) << "SS-2";
}

TEST_F(Store, SS_3_an_empty_payload_is_refused_and_takes_no_place) {
  auto store = make({});
  const std::vector<std::uint64_t> sizes = {3, 0};
  const auto extents = store->reserve(sizes);
  ASSERT_FALSE(extents);
  EXPECT_EQ(extents.error().code, ErrorCode::kInvalid);
  EXPECT_NE(extents.error().message.find("payload 1 of 2 is empty"), std::string::npos);
  EXPECT_EQ(store->bytes(), 0u);
}

TEST(FileSegments, a_restart_keeps_the_old_segments_and_begins_a_new_one) {
  Directory directory;
  Extent before;
  {
    auto store = files(directory);
    before = put(*store, "before");
  }
  auto store = files(directory);
  EXPECT_EQ(get(*store, before).value(), "before");
  const Extent after = put(*store, "after");
  EXPECT_GT(after.segment, before.segment);
  store->retain(ref_of(before));
  ASSERT_TRUE(store->reclaim(after.segment));
  EXPECT_TRUE(get(*store, before));
  EXPECT_TRUE(store->release(ref_of(before)));
  ASSERT_TRUE(store->reclaim(after.segment));
  EXPECT_FALSE(get(*store, before));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "segment-00000000"));
}

TEST(FileSegments, what_is_no_segment_of_ours_is_left_alone) {
  Directory directory;
  std::filesystem::create_directories(directory.path() / "segment-00000003");
  for (const char* name :
       {"segment-7", "segment-4294967294", "segment-4294967295", "segment-", "other"})
    std::ofstream(directory.path() / name) << "foreign";
  auto store = files(directory);
  EXPECT_EQ(store->bytes(), 0u);
  EXPECT_EQ(store->open_segment(), 0u);
  EXPECT_FALSE(store->read({7, 0, 1}, 0, {}));
  const Extent first = put(*store, "first");
  EXPECT_EQ(get(*store, first).value(), "first");
}

TEST(FileSegments, a_place_that_is_no_directory_is_an_error) {
  const auto store = open_file_segments("/dev/null/payload", {});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().where, "/dev/null/payload");
}

}  // namespace
}  // namespace tandem::payload
