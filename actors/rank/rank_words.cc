#include "actors/rank/rank_words.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include "runtime/node/process_host.h"

namespace tandem::rank {
namespace {

constexpr std::size_t kWords = 9;
constexpr Duration kAloneMax = std::chrono::hours(24 * 365);

template <class Number>
bool parse(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Error wrong(const std::string& why) {
  return {ErrorCode::kInvalid, "cannot read which actor this process is: " + why, "",
          "an agent starts the processes of actors; it also passes them these words"};
}

}  // namespace

Result<RankWords> parse_rank_words(std::span<const std::string> words) {
  if (words.size() != kWords)
    return wrong(std::to_string(words.size()) + " words instead of " + std::to_string(kWords));
  RankWords read;
  std::int64_t alone_s = 0;
  read.id.actor = words[0];
  const auto endpoint = link::parse_endpoint(words[3]);
  if (!endpoint) return endpoint.error();
  if (!parse(words[1], read.id.incarnation.value) || !parse(words[2], read.id.rank) ||
      !parse(words[7], read.parent) || !parse(words[8], alone_s))
    return wrong("a number is none");
  if (alone_s < 0 || alone_s > kAloneMax / std::chrono::seconds(1))
    return wrong("it would be alone for " + words[8] + " s");
  read.alone_max = std::chrono::seconds(alone_s);
  read.network = {.controller = {*endpoint, std::nullopt}, .bind = words[4], .advertise = words[5]};
  if (!words[6].empty()) {
    const auto ports = link::parse_port_range(words[6]);
    if (!ports) return ports.error();
    read.network.ports = *ports;
  }
  // A Unix socket needs no keys: its folder is private to the user.
  if (endpoint->is_local()) return read;
  auto keys = link::parse_curve_client(node::inherited_secret());
  if (!keys) return keys.error();
  read.network.controller.keys = std::move(*keys);
  return read;
}

std::vector<std::string> split_rank_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(node::kActorWordSeparator, begin);
    words.emplace_back(text.substr(begin, end - begin));
    if (end == text.npos) return words;
    begin = end + 1;
  }
}

std::string join_rank_words(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : std::string(1, node::kActorWordSeparator)) + word;
  return text;
}

Result<RankWords> words_of_variable() {
  const char* const text = std::getenv(node::kActorVariable);
  if (!text)
    return Error{ErrorCode::kInvalid,
                 "this program is started by a Tandem job, and " +
                     std::string(node::kActorVariable) + " is not set",
                 "", "name it below `actors:` in a job file, then: tandem run JOB.yaml"};
  const auto words = split_rank_words(text);
  unsetenv(node::kActorVariable);
  return parse_rank_words(words);
}

}  // namespace tandem::rank
