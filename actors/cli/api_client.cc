// A token goes only to a controller that is known to be ours. The file controller.json may be a
// killed controller's, and its port another program's by now: the lock beside it tells, since a
// lock ends with its owner. An address that the user gives by hand is trusted; a controller that
// was there and has gone is looked for without the token, until one says that it is ready.
#include "actors/cli/api_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <variant>

#include "runtime/base/file.h"
#include "runtime/base/home_path.h"
#include "runtime/base/secret.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr const char* kRoot = "/api/v1";
constexpr const char* kAddressFile = "controller.json";
constexpr Duration kLookAtFileEvery = std::chrono::milliseconds(500);
constexpr Duration kReadyWithin = std::chrono::seconds(2);  // for the answer of GET /readyz
constexpr const char* kHowToStart =
    "`tandem up` starts a cluster here; `tandem run JOB.yaml` needs none";

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

Error no_controller() {
  return {ErrorCode::kUnreachable, "this needs a controller, and none runs here", "", kHowToStart};
}

std::string own_token() {
  const auto token = read_secret(token_path(tandem_home()));
  return token ? *token : "";  // the server then answers 401 with help
}

// TANDEM_TOKEN, else the token of this state folder; also for an address that was given by hand.
std::string known_token() { return environment("TANDEM_TOKEN").value_or(own_token()); }

Result<ApiAddress> parse_from(const std::string& text, std::string from) {
  auto endpoint = link::parse_endpoint(text);
  if (endpoint) return ApiAddress{*endpoint, known_token(), std::move(from)};
  Error error = endpoint.error();
  error.where = std::move(from);
  return error;
}

Result<std::string> body_of(Result<http::HttpResponse> response) {
  if (!response) return response.error();
  if (response->status >= 400) return http::error_of(*response);
  return std::move(response->body);
}

Result<http::HttpResponse> asked(const http::HttpHandler& local, const std::string& target) {
  http::HttpRequest request{.method = "GET"};
  if (const auto split = http::split_target(target, request); !split) return split.error();
  http::HttpAnswer answer = local(request);
  if (auto* whole = std::get_if<http::HttpResponse>(&answer)) return std::move(*whole);
  return no_controller();
}

Result<json> to_json(const Result<std::string>& text) {
  if (!text) return text.error();
  json body = parse_json(*text);
  if (body.is_discarded())
    return Error{ErrorCode::kFailed, "the controller's answer is not JSON", "",
                 "is something else listening there?"};
  return body;
}

// Whether the controller of this state folder had begun and a node starts it again if it ends.
bool is_kept(const std::filesystem::path& folder) {
  std::error_code ignored;
  return !folder.empty() && std::filesystem::exists(folder / kAddressFile, ignored) &&
         FileLock::owner(folder / "node.lock").has_value();
}

// Where the controller listened before; another program may do so by now.
link::Endpoint former_endpoint(const std::filesystem::path& folder) {
  const auto file = read_file(folder / kAddressFile);
  const json description = file ? parse_json(*file) : json();
  for (const char* key : {"http", "former_http"})
    if (const auto at = description.find(key); at != description.end() && at->is_string())
      if (auto endpoint = link::parse_endpoint(at->get<std::string>())) return *endpoint;
  return {.host = "127.0.0.1", .port = 1};
}

}  // namespace

std::filesystem::path tandem_home() { return state_folder(); }

std::filesystem::path token_path(const std::filesystem::path& home) { return home / "token"; }

Result<ApiAddress> resolve_address(const std::optional<std::string>& flag) {
  if (flag) return parse_from(*flag, "--address " + *flag);
  if (const auto address = environment("TANDEM_ADDRESS"))
    return parse_from(*address, "TANDEM_ADDRESS=" + *address);
  auto found = address_in(tandem_home());
  if (found) found->token = known_token();
  return found;
}

Result<ApiAddress> await_address(const std::optional<std::string>& flag, Duration within,
                                 const std::function<void()>& on_wait) {
  auto found = resolve_address(flag);
  if (found || flag || environment("TANDEM_ADDRESS")) return found;
  const std::filesystem::path home = tandem_home();
  if (is_kept(home)) on_wait();
  for (const Time give_up = steady_now() + within;
       !found && found.error().code == ErrorCode::kUnreachable && is_kept(home) &&
       steady_now() < give_up;
       found = resolve_address(flag))
    (void)http::await_server(former_endpoint(home), kLookAtFileEvery);  // with a pause
  return found;
}

Result<ApiAddress> address_in(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kAddressFile;
  const auto file = read_file(path);
  const json description = file ? parse_json(*file) : json();
  const auto owner = FileLock::owner(folder / "controller.lock");
  // A killed controller leaves its file. Another program may listen on that port by now, and must
  // not be shown the token.
  if (!owner || !file)
    return Error{ErrorCode::kUnreachable, "no controller runs here", path, kHowToStart};
  const json none;
  const auto at = [&](const char* key) {
    const auto it = description.find(key);
    return it == description.end() ? none : *it;
  };
  const bool whole = at("http").is_string() && at("pid").is_number_integer();
  if (at("former_http").is_string() || (whole && at("pid") != *owner))
    return Error{ErrorCode::kUnreachable, "the controller is starting", path, "try again"};
  if (!whole)
    return Error{ErrorCode::kUnreachable, "the controller's file is damaged", path,
                 "remove it if no controller runs, or pass --address"};
  auto endpoint = link::parse_endpoint(description["http"].get<std::string>());
  if (endpoint) return ApiAddress{*std::move(endpoint), own_token(), path, folder};
  Error error = endpoint.error();
  error.where = path;
  return error;
}

std::string url_escape(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Only the unreserved characters of RFC 3986 stay.
    if (byte < 128 && (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~'))
      escaped += c;
    else
      escaped += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return escaped;
}

Error ApiClient::explain(const Error& error) const {
  Error explained = error;
  if (error.code != ErrorCode::kUnreachable) return explained;
  explained.message =
      "no controller answers at " + link::to_string(address_.endpoint) + ": " + error.message;
  explained.where = address_.from;
  explained.help = kHowToStart;
  return late(std::move(explained));
}

Error ApiClient::late(Error error) const {
  if (late_ && error.code == ErrorCode::kUnreachable) error.code = ErrorCode::kTimedOut;
  return error;
}

// How long a request may take.
Duration ApiClient::patience() const {
  if (!until_) return timeout_;
  return std::min(timeout_, std::max(kOneLook, *until_ - steady_now()));
}

template <class Ask>
auto ApiClient::outliving_a_restart(Ask ask) const -> decltype(ask()) {
  std::optional<Absence> absence;
  for (;;) {
    auto answer = ask();
    const bool lost = !answer && answer.error().code == ErrorCode::kUnreachable;
    if (!lost) answered_ = true;
    if (!lost || !(answered_ || is_kept(address_.folder))) return answer;
    if (!absence) absence = absence_from_now();
    if (!comes_back(*absence)) return answer;
  }
}

ApiClient::Absence ApiClient::absence_from_now() const {
  const Time give_up = steady_now() + std::min(kReconnectWithin, timeout_);
  return {.give_up = until_ ? std::min(give_up, *until_) : give_up};
}

bool ApiClient::comes_back(Absence& absence) const {
  while (steady_now() < absence.give_up && may_be_back()) {
    if (++absence.looks == 2 && on_wait_) on_wait_();
    if (http::await_server(address_.endpoint, kLookAtFileEvery) && is_ours()) return true;
  }
  late_ = until_ && steady_now() >= *until_;
  return false;
}

// Whether it is worth while to wait for a controller that is started again.
bool ApiClient::may_be_back() const {
  if (tired_ && tired_()) return false;
  if (address_.folder.empty()) return true;
  if (const auto now = address_in(address_.folder)) address_.endpoint = now->endpoint;
  return true;
}

// Whether the program that listens at `address_` is the controller, as far as can be told without
// showing it the token: another one may listen there by now. The lock tells where there is one.
bool ApiClient::is_ours() const {
  if (address_.folder.empty()) {
    const auto ready = http::http_get(address_.endpoint, "/readyz", kReadyWithin);
    return ready && ready->status == 200 && ready->body == "ready\n";
  }
  const auto now = address_in(address_.folder);
  return now && now->endpoint == address_.endpoint;
}

http::HttpHeaders ApiClient::headers() const {
  if (address_.token.empty()) return {};
  return {{"authorization", "Bearer " + address_.token}};
}

Result<json> ApiClient::get(const std::string& path) const { return to_json(get_text(path)); }

Result<std::string> ApiClient::get_text(const std::string& path) const {
  if (local_) return body_of(asked(local_, kRoot + path));
  auto body = body_of(outliving_a_restart(
      [&] { return http::http_get(address_.endpoint, kRoot + path, patience(), headers()); }));
  return body ? std::move(body) : explain(body.error());
}

Result<json> ApiClient::post(const std::string& path, const std::string& body) const {
  if (local_) return no_controller();
  auto response = http::http_post(address_.endpoint, kRoot + path, body, timeout_, headers());
  // The controller may say of another process that it cannot be reached.
  if (!response) return explain(response.error());
  answered_ = true;
  return to_json(body_of(std::move(response)));
}

Result<void> ApiClient::remove(const std::string& path) const {
  if (local_) return no_controller();
  auto answer = body_of(http::http_delete(address_.endpoint, kRoot + path, timeout_, headers()));
  return answer ? Result<void>() : explain(answer.error());
}

Result<http::HttpLines> ApiClient::lines(const std::string& path) const {
  if (local_) return no_controller();
  auto opened = http::HttpLines::open(address_.endpoint, kRoot + path, patience(), headers());
  return opened ? std::move(opened) : explain(opened.error());
}

Result<void> ApiClient::stream(const std::string& path, Duration tick,
                               const OnLine& on_line) const {
  return stream_of([&] { return lines(path); }, tick, on_line);
}

Result<void> ApiClient::stream_of(const std::function<Result<http::HttpLines>()>& open,
                                  Duration tick, const OnLine& on_line) const {
  std::optional<http::HttpLines> stream;
  for (;;) {
    if (!stream) {
      auto opened = outliving_a_restart(open);
      if (!opened) return late(opened.error());
      stream.emplace(*std::move(opened));
    }
    // kTimedOut is silence, which a caller with a tick wants to hear of.
    const auto line = stream->next(tick > Duration::zero() ? tick : kRequestTimeout);
    if (!line) {
      if (line.error().code == ErrorCode::kUnreachable) {
        Absence absence = absence_from_now();
        if (!comes_back(absence)) return explain(line.error());
        stream.reset();
        continue;
      }
      if (line.error().code != ErrorCode::kTimedOut || tick == Duration::zero())
        return explain(line.error());
      if (!on_line(std::nullopt)) return {};
    } else if (!*line || !on_line(std::string_view(**line))) {
      return {};
    }
  }
}

}  // namespace tandem::cli
