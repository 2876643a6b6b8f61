#include "actors/main/parsed_jobs.h"

#include <algorithm>

#include "actors/job/print_job.h"
#include "actors/main/exchange_host.h"

namespace tandem::app {

std::string ParsedJobs::keep(job::JobSpec job) {
  std::string yaml = print_job(job);
  auto kept = std::make_shared<const job::JobSpec>(std::move(job));
  jobs_.with([&](std::deque<Kept>& jobs) {
    std::erase_if(jobs, [&](const Kept& one) { return one.first == yaml; });
    jobs.emplace_back(yaml, std::move(kept));
    if (jobs.size() > kJobsMax) jobs.pop_front();
  });
  return yaml;
}

Result<std::shared_ptr<const job::JobSpec>> ParsedJobs::of(const std::string& yaml,
                                                           const std::string& run_dir) {
  auto known = jobs_.with([&](const std::deque<Kept>& jobs) {
    const auto at = std::ranges::find(jobs, yaml, &Kept::first);
    return at == jobs.end() ? std::shared_ptr<const job::JobSpec>() : at->second;
  });
  if (known) return known;
  auto parsed = parse_kept_job(yaml, run_dir);
  if (!parsed) return parsed.error();
  return std::make_shared<const job::JobSpec>(*std::move(parsed));
}

}  // namespace tandem::app
