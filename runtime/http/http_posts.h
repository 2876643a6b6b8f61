// Many POSTs to one address, some at a time, and a wait for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/http/http_client.h"

namespace tandem::http {

enum class AfterPost : std::uint8_t {
  kGoOn,
  kAgain,  // this one is posted once more after a pause, behind those that have not been
  kStop,   // nothing more is posted, and what is under way is dropped
};

struct PostEach {
  std::size_t count = 0;
  int concurrency = 1;  // under way at once, at most
  Duration timeout{};   // of each
  Duration pause{};     // after kAgain nothing is posted for so long
  HttpHeaders headers;
  std::size_t response_bytes_max = kHttpResponseBytesMax;
  std::function<std::string(std::size_t i)> body;
  // Gets each response as it comes.
  std::function<AfterPost(std::size_t i, Result<HttpResponse> response)> take;
};

// Returns when all of the `count` have been taken, or at kStop. Both functions are called on the
// calling thread.
void post_each(const Url& url, const PostEach& posts);

}  // namespace tandem::http
