#include "actors/job/job_values.h"

namespace tandem::job {

std::string join(Names names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

bool is_path(const NameOrPath& word) {
  return word.text.find('/') != std::string::npos || word.text.ends_with(".jinja");
}

}  // namespace tandem::job
