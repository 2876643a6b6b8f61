// A folder with a model, data and a minimal job file, removed at the end of the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "actors/job/load_job.h"

namespace tandem::job {

class JobFolder {
 public:
  JobFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-job-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    write("models/tiny/config.json", "{}");
    write("models/tiny/tokenizer.json", "{}");
    write("data/train.jsonl", R"({"prompt": "1+1=", "answer": 2})"
                              "\n");
    write("data/val.jsonl", R"({"prompt": "2+2=", "answer": 4})"
                            "\n");
    write("data/warm.jsonl", R"({"prompt": "1+2=", "completion": "3"})"
                             "\n");
    write("bin/counter", "#!/bin/sh\n");
    std::filesystem::permissions(root_ / "bin/counter", std::filesystem::perms::owner_all);
  }
  ~JobFolder() { std::filesystem::remove_all(root_); }
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::filesystem::path& root() const { return root_; }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << text;
  }

  std::string minimal() const {
    return "name: tiny\n"
           "model: { path: models/tiny }\n"
           "data: { train_files: [data/train.jsonl] }\n";
  }

  // Every section present, every value its default or valid.
  JobSpec full() const {
    JobSpec job;
    job.name = "tiny";
    job.model.path = root_ / "models/tiny";
    job.data.train_files = {root_ / "data/train.jsonl"};
    job.data.val_files = {root_ / "data/val.jsonl"};
    job.warm_start.emplace().train_files = {root_ / "data/warm.jsonl"};
    job.warm_start->until.emplace().value = 0.33;
    job.pricing.emplace();
    job.pools.rollout.autoscale.emplace().max = 4;
    job.actors["counter"].command = {root_ / "bin/counter"};
    return job;
  }

  Result<LoadedJob> parse(const std::string& yaml, std::vector<std::string> sets = {}) const {
    return parse_job({.yaml = yaml,
                      .origin = "job.yaml",
                      .base = root_,
                      .set_base = root_ / "data",
                      .sets = std::move(sets)});
  }

 private:
  std::filesystem::path root_;
};

// The error of a job that is refused; of one that is accepted, the message says that.
struct Refused {
  std::string message, where, help;
  ErrorCode code;
};

inline Refused refused(const Result<LoadedJob>& job) {
  if (job) return {"accepted", "", "", ErrorCode::kFailed};
  return {job.error().message, job.error().where, job.error().help, job.error().code};
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace tandem::job
