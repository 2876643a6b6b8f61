#include <ostream>

#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Dashboard {
  static VerbHelp help() {
    return {.name = "dashboard",
            .group = VerbGroup::kLook,
            .description = "Print an address that opens the controller's web page once",
            .examples = {"tandem dashboard"}};
  }

  void options(Options&) {}

  static AnsweredBy answered_by() { return AnsweredBy::kController; }
  Result<void> carry_out(Client& client) const;
};

Result<void> Dashboard::carry_out(Client& client) const {
  const auto page = client.api.post("/dashboard", "");
  if (!page) return page.error();
  client.console.out << "http://" << to_string(client.api.address().endpoint)
                     << page->value("path", "/") << "\n"
                     << std::flush;
  client.console.err << "it opens once, within " << page->value("expires_s", 0) << " s\n";
  return {};
}

}  // namespace

Verb dashboard_verb() { return make_verb<Dashboard>(); }

}  // namespace tandem::cli
