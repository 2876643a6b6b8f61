// All processes of a cluster are of one build: a copy of the binary joins, whatever its name and
// times are, and another build of the same version is refused by name (PB-1).
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "runtime/base/build_id.h"
#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;

// The words by which Home starts `program` in the place of the binary.
Words instead(const fs::path& program) {
  return {"sh", "-c", "shift; exec " + program.string() + " \"$@\"", "sh"};
}

// A copy of the binary that runs in `process`, whose own build id is changed in the file if asked.
fs::path copy_of(const Process& process, const fs::path& to, bool other_build) {
  const fs::path binary = fs::read_symlink("/proc/" + std::to_string(process.pid()) + "/exe");
  std::string content = *read_file(binary);
  if (other_build) {
    std::string id;  // as bytes
    const std::string digits = build_id_of(binary);
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
      id += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    const auto at = content.find(id);
    EXPECT_NE(at, std::string::npos);
    content[at] = static_cast<char>(content[at] ^ 1);
  }
  std::ofstream(to, std::ios::binary) << content;
  fs::permissions(to, fs::perms::owner_all);
  fs::last_write_time(to, fs::file_time_type::clock::now() - std::chrono::hours(1000));
  return to;
}

TEST(OneBinary, PB_1_a_copy_joins_and_another_build_is_refused_with_both_named) {
  Home home;
  Process controller = home.start({"controller", "--port", "0"});
  ASSERT_TRUE(home.next_controller(0));
  const fs::path copy = copy_of(controller, home.path() / "copied", false);
  const fs::path other = copy_of(controller, home.path() / "other", true);

  home.start_by(instead(copy));
  Process same = home.start({"node", "--name", "same", "--cpus", "1"});
  home.start_by({});
  EXPECT_TRUE(eventually([&] {
    const auto nodes = home.json({"get", "nodes"});
    return nodes.size() == 1 && nodes[0]["name"] == "same" && nodes[0]["state"] == "Ready";
  })) << same.err();

  home.start_by(instead(other));
  const Finished refused = home.run({"node", "--name", "stranger", "--cpus", "1"});
  home.start_by({});
  EXPECT_NE(refused.code, 0);
  for (const std::string& part :
       {"controller is tandem " TANDEM_VERSION " build " +
            build_id_of("/proc/" + std::to_string(controller.pid()) + "/exe").substr(0, 12),
        std::string("node/stranger@"), build_id_of(other).substr(0, 12)})
    EXPECT_NE(refused.text().find(part), std::string::npos) << part << "\n" << refused.text();

  for (Process* process : {&same, &controller}) {
    process->signal(SIGTERM);
    process->wait();
  }
}

}  // namespace
}  // namespace tandem::e2e
