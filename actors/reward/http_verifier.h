// Scores by a server over HTTP; what it is asked and how its answer is read is an HttpForm. A call
// that fails, because the server is not there, does not answer in time, or answers anything else,
// is a failed attempt of each of its items, never a reward of 0. After `retries` more attempts an
// item is ScoreFailed. While calls fail, the pause before the next one doubles.
//
//   HV-1  At most `concurrency` calls are under way, each with at most batch_size items.
//   HV-2  No header's value is logged or told: they hold keys.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/reward/reward_answer.h"
#include "actors/reward/verifier.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/http/http.h"

namespace tandem::reward {

inline constexpr std::size_t kHttpRewardBytesMax = 4u << 20;  // of one response

struct HttpReward {
  std::string url;  // http://host:port/path
  // A header for each environment variable of ours that has its value: {"authorization": "NAME"}.
  std::map<std::string, std::string> header_env;
  int batch_size = 16;
  int concurrency = 4;
};

struct HttpForm {
  using Items = std::span<const ScoreItem* const>;
  // The body of a call for these items. An error fails them without a call or a further attempt.
  std::function<Result<std::string>(Items items)> body;
  // One answer for each item, from the body of a response. An error, of which only the message
  // counts: why there are none.
  std::function<Result<std::vector<RewardAnswer>>(const std::string& body, std::size_t count)>
      answers;
};
// That of OpenRLHF's remote_rm_url (github.com/OpenRLHF/OpenRLHF,
// openrlhf/utils/remote_rm_utils.py), where extra_logs may be missing:
//
//   POST {"query": [prompt + completion …], "prompts": […], "labels": [the answers]}
//   -> {"rewards": [a number for each], "extra_logs": {NAME: [a value for each]}}
HttpForm openrlhf_form();
// ": " and the beginning of a response's body, for a reason.
std::string shown_body(const std::string& body);

// What is wrong with a URL; nullopt: nothing.
std::optional<Error> url_fault(const std::string& url);

// Sends a body; `done` gets the response on any thread, within the timeout that was agreed before.
using HttpPost =
    std::function<void(std::string body, std::function<void(Result<http::HttpResponse>)> done)>;
// Real calls, which end when the last copy goes. kInvalid for a wrong URL, and for a variable that
// is not set.
Result<HttpPost> http_post_to(const HttpReward& reward, Duration timeout);

// All members run in the actor's turns.
class HttpVerifier final : public Verifier {
 public:
  struct Config {
    std::string url;  // for messages
    int batch_size = 16;
    int concurrency = 4;
    int retries = 0;
    Duration pause_min = std::chrono::milliseconds(100);
    Duration pause_max = std::chrono::seconds(5);
  };
  HttpVerifier(Config config, HttpForm form, HttpPost post);

  void score(actor::Context& cx, ScoreItem item, Done done) override;
  void report_to(Told told) override { told_ = std::move(told); }

 private:
  struct Attempt {
    ScoreItem item;
    Done done;
    int failures = 0;
  };
  using Batch = std::vector<Attempt>;

  void pump(actor::Context& cx);
  void send(actor::Context& cx);
  void answered(actor::Context& cx, Batch batch, const Result<http::HttpResponse>& response);
  // The call as a whole has failed.
  void failed(actor::Context& cx, Batch batch, messages::TroubleKind kind, const std::string& why);
  // Charges the attempt: the item waits for its next one, or is answered by ScoreFailed.
  void charge(actor::Context& cx, Attempt attempt, const std::string& why);

  const Config config_;
  const HttpForm form_;
  const HttpPost post_;
  Told told_;  // may be empty
  std::deque<Attempt> waiting_;
  int calls_ = 0;             // under way
  bool pump_posted_ = false;  // a turn is posted that will send what waits
  bool pausing_ = false;
  Duration pause_;
};

}  // namespace tandem::reward
