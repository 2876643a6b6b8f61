#include "runtime/weights/tcp.h"

#include <utility>

#include "runtime/weights/shm.h"
#include "runtime/weights/tcp_server.h"

namespace tandem::weights {
namespace {

// Publishes into shared memory, and tells the server whenever the offered versions change.
class TcpPublisher final : public WeightPublisher {
 public:
  TcpPublisher(std::unique_ptr<WeightPublisher> store, std::unique_ptr<WeightServer> server)
      : store_(std::move(store)), server_(std::move(server)) {}

  Result<PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                               Duration timeout) override {
    auto published = store_->publish(version, arena, timeout);
    server_->announce();
    return published;
  }
  void retain(PolicyVersion oldest) override { store_->retain(oldest); }
  void forget_after(PolicyVersion last) override {
    store_->forget_after(last);
    server_->announce();
  }
  std::vector<PolicyVersion> offered() override { return store_->offered(); }
  std::optional<wire::WeightSource> source() const override { return server_->source(); }

 private:
  const std::unique_ptr<WeightPublisher> store_;
  const std::unique_ptr<WeightServer> server_;  // destroyed first: it reads the store's segment
};

}  // namespace

Result<std::unique_ptr<WeightPublisher>> make_tcp_publisher(const WeightsConfig& config) {
  auto store = make_shm_publisher(config);
  if (!store) return store.error();
  // The server opens the segment as a subscriber does, so the store must have made it before.
  auto server = WeightServer::listen(config, config.serving.value_or(Serving{}));
  if (!server) return server.error();
  return std::unique_ptr<WeightPublisher>(
      std::make_unique<TcpPublisher>(*std::move(store), *std::move(server)));
}

}  // namespace tandem::weights
