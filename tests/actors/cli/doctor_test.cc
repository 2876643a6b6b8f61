#include "actors/cli/doctor.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "actors/cli/shared_options.h"
#include "kernels/backend.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

TEST(Doctor, FindsWhatStopsTandem) {
  const job::JobFolder folder;
  const auto healthy = examine_machine(folder.root() / "home", kPortDefault);
  EXPECT_FALSE(any_bad(healthy)) << render_findings(healthy, OutputForm::kTable, 100);
  EXPECT_TRUE(std::filesystem::is_empty(folder.root() / "home"));
  const json list = parse_json(render_findings(healthy, OutputForm::kJson, 80));
  EXPECT_EQ(list[0]["subject"], "cpu");

  folder.write("file", "");
  const auto blocked = examine_machine(folder.root() / "file/home", kPortDefault);
  EXPECT_TRUE(any_bad(blocked));
  EXPECT_NE(render_findings(blocked, OutputForm::kTable, 100).find("TANDEM_HOME"),
            std::string::npos);
}

const Finding& about(const std::vector<Finding>& findings, const std::string& subject) {
  const auto found = std::ranges::find(findings, subject, &Finding::subject);
  EXPECT_NE(found, findings.end()) << subject;
  return *found;
}

TEST(Doctor, NamesTheProgramThatReadsParquet) {
  const job::JobFolder folder;
  const char *const path = ::getenv("PATH"), *const python = ::getenv("TANDEM_PYTHON");
  const std::string path_before = path ? path : "", python_before = python ? python : "";
  const auto found = [&] { return about(examine_machine(folder.root(), kPortDefault), "parquet"); };
  ::unsetenv("TANDEM_PYTHON");
  ::setenv("PATH", folder.root().c_str(), 1);
  EXPECT_EQ(found().health, Health::kWarning);
  EXPECT_NE(found().help.find("pip install pyarrow"), std::string::npos) << found().help;
  for (const char* program : {"python3", "duckdb"}) {
    folder.write(program, "#!/bin/sh\n");
    std::filesystem::permissions(folder.root() / program, std::filesystem::perms::owner_all);
    EXPECT_EQ(found().health, Health::kOk);
    EXPECT_EQ(found().detail.find("read by " + (folder.root() / program).string()), 0u);
  }
  ::setenv("PATH", path_before.c_str(), 1);
  if (python) ::setenv("TANDEM_PYTHON", python_before.c_str(), 1);
}

TEST(Doctor, NamesTheInstructionSetAndWhatItCosts) {
  const job::JobFolder folder;
  const std::string best = kernels::name(*kernels::detect_isa());
  const auto unset = examine_machine(folder.root(), kPortDefault);
  EXPECT_EQ(about(unset, "instruction set").health, Health::kOk);
  EXPECT_EQ(about(unset, "instruction set").detail.find(best + ": "), 0u);

  ::setenv("TANDEM_ISA", "avx2", 1);
  const auto lesser = examine_machine(folder.root(), kPortDefault);
  ::setenv("TANDEM_ISA", "avx1024", 1);
  const auto unknown = examine_machine(folder.root(), kPortDefault);
  ::unsetenv("TANDEM_ISA");
  const std::string& detail = about(lesser, "instruction set").detail;
  EXPECT_EQ(detail.find("avx2: f32 products at 1/2 to all of AVX-512's rate"), 0u) << detail;
  EXPECT_EQ(detail.find("this CPU has " + best) != std::string::npos, best != "avx2") << detail;
  EXPECT_EQ(about(unknown, "instruction set").health, Health::kBad);
  EXPECT_NE(about(unknown, "instruction set").help.find(best), std::string::npos);
}

TEST(Doctor, NoNcclIsNoTroubleWithoutGpus) {
  ::setenv("TANDEM_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
  const job::JobFolder folder;
  const auto findings = examine_machine(folder.root(), kPortDefault);
  ::unsetenv("TANDEM_NCCL_LIBRARY");
  const auto nccl = std::ranges::find(findings, "nccl", &Finding::subject);
  ASSERT_NE(nccl, findings.end());
  EXPECT_NE(nccl->health, Health::kBad);
  if (std::ranges::find(findings, "gpus", &Finding::subject) == findings.end()) return;
  EXPECT_EQ(nccl->health, Health::kOk);
  EXPECT_EQ(nccl->detail, "not found");
  EXPECT_EQ(nccl->help, "");
}

TEST(Doctor, SeesPortsInUse) {
  const OwnedFd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), name, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), name, &size), 0);
  const int port = ntohs(address.sin_port);
  const job::JobFolder folder;
  const std::string text =
      render_findings(examine_machine(folder.root(), port), OutputForm::kTable, 100);
  EXPECT_NE(text.find(std::to_string(port) + " in use"), std::string::npos) << text;
}

}  // namespace
}  // namespace tandem::cli
