// A verb of the command line: its help, its options, and how it is carried out. The type of a verb
// is a plain struct whose fields are its options with their defaults:
//
//   struct Explain {
//     static VerbHelp help();                       // its group, description and examples
//     void options(Options& options);               // what it takes, with its checks (options.h)
//     Result<int> run(const VerbContext& context);  // carries it out
//     std::optional<std::string> key;
//   };
//   Verb explain_verb() { return make_verb<Explain>(); }
//
// A verb that only calls the controller's API has two others in place of run():
//
//     static AnsweredBy answered_by();               // const where it depends on the options
//     Result<void> carry_out(Client& client) const;
//
// verbs.h has the table of the client's verbs, actors/main/verbs.h that of all. The parser, the
// help, docs/cli.md and completion walk the table (command_line.h, grammar.h).
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/client.h"
#include "actors/cli/console.h"
#include "actors/cli/options.h"
#include "runtime/base/clock.h"
#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"
#include "runtime/http/http_server.h"

namespace tandem::cli {

// The headings of the help, in its order.
enum class VerbGroup { kRun, kLook, kChange, kCluster, kModels, kHelp };
constexpr auto enum_names(VerbGroup) {
  using enum VerbGroup;
  return enum_name_rows<VerbGroup>({{kRun, "Run and submit"},
                                    {kLook, "Look into it"},
                                    {kChange, "Change it"},
                                    {kCluster, "The cluster"},
                                    {kModels, "Models"},
                                    {kHelp, "Help"}});
}

struct VerbHelp {
  std::string name;
  VerbGroup group;
  std::string description;            // a sentence without its full stop
  std::vector<std::string> examples;  // whole command lines; at least one
};

struct Verb;
// Makes the verbs anew, with the defaults of their options, in the order of the help.
using VerbTable = std::function<std::vector<Verb>()>;
// Makes a handler that answers from the runs of this TANDEM_HOME, in this process.
using OfflineAnswers = std::function<http::HttpHandler()>;

// The things that a verb may use besides its own options.
struct VerbContext {
  const Console& console;
  std::optional<std::string> address = {};  // --address
  bool verbose = false;                     // -v: debug lines on stderr
  OfflineAnswers offline = {};              // empty: nothing answers where no controller runs
  VerbTable verbs = {};                     // all of them, for completion
};

struct Verb {
  VerbHelp help;
  std::function<void(Options&)> options;
  // Blocks until the verb is carried out. Returns the exit code, after an error that the verb has
  // printed itself; an Error has not been printed yet, and its code is the exit code.
  std::function<Result<int>(const VerbContext&)> run;
};

// Who can answer a verb. kController: the controller alone. kRunsAsWell: where no controller runs
// here and no address is given, the files of runs answer; for verbs that look at runs, their
// events, logs or samples.
enum class AnsweredBy { kController, kRunsAsWell };

// Calls `call` with a connection to the controller. Returns the exit code 0 or the error of `call`;
// kUnreachable where nobody that `answered_by` allows is there. A controller that is away is waited
// for, also by `call`, and stderr says so; with `until` no longer than that, then kTimedOut.
using ApiCall = std::function<Result<void>(Client&)>;
Result<int> with_api(const VerbContext& context, AnsweredBy answered_by, const ApiCall& call,
                     std::optional<Time> until = {});
inline constexpr const char* kControllerIsAway = "the controller does not answer; waiting for it";
// Calls `call` with the files of runs, whether or not a controller runs. `context.offline` is not
// empty.
Result<int> with_offline_api(const VerbContext& context, const ApiCall& call);

template <class T>
concept VerbOptions = requires(T& verb, Options& options) {
  { T::help() } -> std::same_as<VerbHelp>;
  { verb.options(options) } -> std::same_as<void>;
};
template <class T>
concept VerbType = VerbOptions<T> && requires(T& verb, const VerbContext& context) {
  { verb.run(context) } -> std::same_as<Result<int>>;
};
// A verb that only calls the API, by with_api().
template <class T>
concept ClientVerbType = VerbOptions<T> && requires(const T& verb, Client& client) {
  { verb.answered_by() } -> std::same_as<AnsweredBy>;
  { verb.carry_out(client) } -> std::same_as<Result<void>>;
};

// The verb whose options are parsed into `given`.
template <VerbType T>
Verb verb_of(std::shared_ptr<T> given) {
  return {.help = T::help(),
          .options = [given](Options& options) { given->options(options); },
          .run = [given](const VerbContext& context) { return given->run(context); }};
}
template <ClientVerbType T>
Verb verb_of(std::shared_ptr<T> given) {
  return {.help = T::help(),
          .options = [given](Options& options) { given->options(options); },
          .run =
              [given](const VerbContext& context) {
                return with_api(context, given->answered_by(),
                                [&given](Client& client) { return given->carry_out(client); });
              }};
}
template <class T>
Verb make_verb() {
  return verb_of(std::make_shared<T>());
}

}  // namespace tandem::cli
