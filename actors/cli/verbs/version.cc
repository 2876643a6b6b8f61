#include <ostream>

#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "actors/cli/views.h"
#include "runtime/base/build_id.h"
#include "runtime/base/json.h"

namespace tandem::cli {
namespace {

struct Version {
  static VerbHelp help() {
    return {.name = "version",
            .group = VerbGroup::kHelp,
            .description = "Print the version, and the build, by which one binary is known",
            .examples = {"tandem version"}};
  }

  void options(Options& options) {
    using enum OutputForm;
    add_output(options, output, {kTable, kJson, kYaml});
  }

  Result<int> run(const VerbContext& context) {
    const std::string build = own_build_id();
    const nlohmann::json version{{"version", TANDEM_VERSION}, {"build", build}};
    context.console.out << (output == OutputForm::kJson ? version.dump(2) + "\n"
                            : output == OutputForm::kYaml
                                ? to_yaml(version)
                                : "tandem " TANDEM_VERSION "\nbuild " + build + "\n")
                        << std::flush;
    return 0;
  }

  OutputForm output = OutputForm::kTable;
};

}  // namespace

Verb version_verb() { return make_verb<Version>(); }

}  // namespace tandem::cli
