#include "runtime/http/http_posts.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace tandem::http {
namespace {

struct Answered {
  std::mutex mutex;
  std::condition_variable came;
  std::deque<std::pair<std::size_t, Result<HttpResponse>>> responses;  // guarded by mutex
};

}  // namespace

void post_each(const Url& url, const PostEach& posts) {
  Answered answered;  // outlives the requests, whose thread writes into it
  HttpRequests requests;
  std::deque<std::size_t> waiting;
  for (std::size_t i = 0; i < posts.count; ++i) waiting.push_back(i);
  int under_way = 0;
  Time resumes{};  // nothing is posted before
  while (!waiting.empty() || under_way > 0) {
    // Read once: a pause that ended between two looks would leave a wait with nothing under way.
    const Duration left = resumes - steady_now();
    const bool pausing = left > Duration::zero();
    for (; !waiting.empty() && under_way < posts.concurrency && !pausing; ++under_way) {
      const std::size_t i = waiting.front();
      waiting.pop_front();
      requests.post(url, posts.body(i), posts.timeout, posts.headers, posts.response_bytes_max,
                    [&answered, i](Result<HttpResponse> response) {
                      const std::lock_guard lock(answered.mutex);
                      answered.responses.emplace_back(i, std::move(response));
                      answered.came.notify_one();
                    });
    }
    // Each request ends within its timeout, and a pause in its own, so that this wait does.
    std::unique_lock lock(answered.mutex);
    const auto came = [&] { return !answered.responses.empty(); };
    if (pausing)
      answered.came.wait_for(lock, left, came);
    else
      answered.came.wait(lock, came);
    if (!came()) continue;
    auto [i, response] = std::move(answered.responses.front());
    answered.responses.pop_front();
    lock.unlock();
    --under_way;
    switch (posts.take(i, std::move(response))) {
      case AfterPost::kGoOn:
        break;
      case AfterPost::kAgain:
        waiting.push_back(i);
        resumes = steady_now() + posts.pause;
        break;
      case AfterPost::kStop:
        return;
    }
  }
}

}  // namespace tandem::http
