#include "actors/translate/write_job.h"

#include "actors/job/print_job.h"
#include "actors/translate/job_text.h"
#include "runtime/base/text.h"

namespace tandem::translate {
namespace {

constexpr std::size_t kColumns = 100;

// Appends `text` broken into lines of at most `columns`, the first with `first` in front, the
// others with as many spaces.
void add_wrapped(std::string& out, const std::string& prefix, const std::string& first,
                 const std::string& text, std::size_t columns) {
  std::string line = prefix + first;
  const std::string indent = prefix + std::string(first.size(), ' ');
  bool empty = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!empty && line.size() + 1 + word.size() > columns) {
      out += line + "\n";
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    at = end + 1;
  }
  out += line + "\n";
}

std::string heading(Severity severity) {
  switch (severity) {
    case Severity::kDiffers:
      return "Something else is learned:";
    case Severity::kUnknown:
      return "Not understood; nothing was made of it:";
    case Severity::kToDo:
      return "To be done before the job runs:";
    case Severity::kSame:
      return "Without effect on what is learned:";
  }
  return "";
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, const std::string& prefix,
                          std::size_t columns) {
  std::string out;
  for (const Severity severity :
       {Severity::kDiffers, Severity::kUnknown, Severity::kToDo, Severity::kSame}) {
    bool first = true;
    for (const Finding& finding : findings) {
      if (finding.severity != severity) continue;
      if (first) add_wrapped(out, prefix, "", heading(severity), columns);
      first = false;
      std::string keys;
      for (const std::string& key : finding.keys) keys += (keys.empty() ? "" : ", ") + key;
      add_wrapped(out, prefix, "  - ",
                  visible((keys.empty() ? "" : keys + ": ") + finding.text, Lines::kOne), columns);
    }
  }
  return out;
}

std::string write_job(const Translation& translation) {
  std::string text;
  add_wrapped(text, "# ", "",
              "Imported by `tandem import` from " + visible(translation.origin, Lines::kOne) +
                  ", a configuration of " + translation.framework +
                  ". A comment names the key that a value is of; relative paths start at this "
                  "file's folder.",
              kColumns);
  text += job::print_keys(printed_values(translation.job));
  const std::string findings = findings_text(translation.findings, "# ", kColumns);
  return findings.empty() ? text : text + "\n" + findings;
}

}  // namespace tandem::translate
