#include "actors/cli/verb.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "actors/cli/api_client.h"

namespace tandem::cli {
namespace {

constexpr Duration kStartsAgainWithin = std::chrono::seconds(2);  // in most cases

Result<int> call_api(const VerbContext& context, ApiClient api, const ApiCall& call) {
  Client client{.api = api, .console = context.console};
  const auto done = call(client);
  if (!done) return done.error();
  return 0;
}

}  // namespace

Result<int> with_api(const VerbContext& context, AnsweredBy answered_by, const ApiCall& call,
                     std::optional<Time> until) {
  // The files answer sooner than a controller that fails to start again.
  const bool files = answered_by == AnsweredBy::kRunsAsWell && context.offline;
  const Duration within = files ? kStartsAgainWithin : kReconnectWithin;
  bool waited = false;
  auto address =
      await_address(context.address, until ? std::min(within, *until - steady_now()) : within, [&] {
        context.console.err << "the controller is starting again" << std::endl;
        waited = true;
      });
  // kUnreachable: no address is given, and no controller runs here.
  if (!address && address.error().code == ErrorCode::kUnreachable && context.offline &&
      answered_by == AnsweredBy::kRunsAsWell) {
    context.console.err << "no controller runs; this is from the runs in " << tandem_home().string()
                        << std::endl;
    return with_offline_api(context, call);
  }
  if (!address) {
    Error error = address.error();
    if (waited && until && steady_now() >= *until) error.code = ErrorCode::kTimedOut;
    return error;
  }
  ApiClient api(std::move(*address));
  api.tell_of_wait([&] { context.console.err << kControllerIsAway << std::endl; });
  if (until) api.give_up_at(*until);
  return call_api(context, std::move(api), call);
}

Result<int> with_offline_api(const VerbContext& context, const ApiCall& call) {
  return call_api(context, ApiClient(context.offline()), call);
}

}  // namespace tandem::cli
