// A translation as the text of a job file: a head, the keys with a comment each, and the findings
// as comments behind them. Pure.
#pragma once

#include <string>
#include <vector>

#include "actors/translate/finding.h"
#include "actors/translate/translate.h"

namespace tandem::translate {

std::string write_job(const Translation& translation);

// The findings for people: a heading per severity, and an entry of at most `columns` columns each.
// Each line begins with `prefix`.
std::string findings_text(const std::vector<Finding>& findings, const std::string& prefix,
                          std::size_t columns);

}  // namespace tandem::translate
