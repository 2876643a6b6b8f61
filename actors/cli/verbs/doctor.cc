#include "actors/cli/doctor.h"

#include <ostream>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"

namespace tandem::cli {
namespace {

struct Doctor {
  static VerbHelp help() {
    return {.name = "doctor",
            .group = VerbGroup::kHelp,
            .description = "What on this machine would stop Tandem",
            .examples = {"tandem doctor"}};
  }

  void options(Options& options) {
    using enum OutputForm;
    add_output(options, output, {kTable, kJson, kYaml});
  }

  Result<int> run(const VerbContext& context) {
    const std::vector<Finding> findings = examine_machine(tandem_home(), kPortDefault);
    context.console.out << render_findings(findings, output, context.console.columns())
                        << std::flush;
    if (!any_bad(findings)) return 0;
    return Error{ErrorCode::kFailed, "this machine cannot run Tandem as it is", "", ""};
  }

  OutputForm output = OutputForm::kTable;
};

}  // namespace

Verb doctor_verb() { return make_verb<Doctor>(); }

}  // namespace tandem::cli
