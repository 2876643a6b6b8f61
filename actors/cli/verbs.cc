#include "actors/cli/verbs.h"

namespace tandem::cli {

// NAME_verb() is defined in verbs/NAME.cc.
Verb ask_verb();
Verb cancel_verb();
Verb completion_verb();
Verb cordon_verb();
Verb dashboard_verb();
Verb delete_verb();
Verb describe_verb();
Verb drain_verb();
Verb events_verb();
Verb explain_verb();
Verb get_verb();
Verb logs_verb();
Verb metrics_verb();
Verb samples_verb();
Verb scale_verb();
Verb status_verb();
Verb submit_verb();
Verb top_verb();
Verb uncordon_verb();
Verb version_verb();
Verb wait_verb();
Verb why_verb();

std::vector<Verb> client_verbs() {
  return {
      submit_verb(),  wait_verb(),

      get_verb(),     describe_verb(), why_verb(),        logs_verb(),      events_verb(),
      samples_verb(), metrics_verb(),  top_verb(),        dashboard_verb(),

      scale_verb(),   ask_verb(),      cancel_verb(),     delete_verb(),

      status_verb(),  cordon_verb(),   drain_verb(),      uncordon_verb(),

      explain_verb(), version_verb(),  completion_verb(),
  };
}

}  // namespace tandem::cli
