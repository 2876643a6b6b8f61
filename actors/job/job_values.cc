#include "actors/job/job_values.h"

#include <vector>

#include "actors/model/chat_template.h"

namespace tandem::job {

std::string join(Names names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

Names chat_template_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names{"auto"};
    for (const std::string_view name : spellings<model::ChatTemplate>()) names.push_back(name);
    return names;
  }();
  return kNames;
}

}  // namespace tandem::job
