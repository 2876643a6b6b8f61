// File systems that take nothing for a while: a run stands still, says so, goes on when somebody
// has mended them, and has lost nothing by it. Each file system is mounted in a mount namespace
// that ends with the command.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWaitsToStart = "waits for a disk, and starts again";

// A job whose weights repeat bit for bit, with a checkpoint every 20 steps.
constexpr int kDiskSteps = 200;
Words repeatable_job(const Words& settings = {}) {
  return small_job(
      kDiskSteps,
      Words{"async.schedule=fixed_lag", "data.val_files=[]", "learner.save_freq=20"} + settings);
}

// The weights of repeatable_job() that nothing disturbs.
std::string undisturbed() {
  static const std::string sha = [] {
    const Home calm;
    return calm.train(kSmallId, repeatable_job())["weights_sha256"].get<std::string>();
  }();
  return sha;
}

std::string quoted(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " '" + word + "'";
  return text;
}

// Shell: waits until the command succeeds.
std::string until(const std::string& command) {
  return "until " + command + " > /dev/null 2>&1; do sleep 0.05; done; ";
}
std::string until_said(const std::string& text, const std::string& file) {
  return until("grep -q '" + text + "' " + file);
}

class Disk : public testing::Test {
 protected:
  bool works(const std::string& mount) const {
    return home.start_program(inside + Words{mount}).wait().code == 0;
  }
  std::string kill_learner() const {
    return "pkill -9 -f 'rank [a]rithmetic-grpo-1/learner/0.*" + home.path().filename().string() +
           "'; ";
  }
  // Runs repeatable_job(settings) while `meddle` goes on beside it. stderr goes into `said`.
  Finished run_beside(const std::string& make, const std::string& meddle,
                      const fs::path& tandem_home, const Words& settings,
                      const std::string& said) const {
    return home
        .start_program(inside + Words{make + "\n(" + meddle + ") &\nwatch=$!; TANDEM_HOME=" +
                                      tandem_home.string() + " " TANDEM_BINARY " run 2> " + said +
                                      quoted(repeatable_job(settings)) +
                                      "; code=$?; kill $watch 2> /dev/null; wait; exit $code"})
        .wait();
  }
  void expect_undisturbed(const Finished& done, const std::string& err) const {
    EXPECT_EQ(done.code, 0) << done.text() << err;
    EXPECT_NE(err.find(kWaitsToStart), std::string::npos) << err;
    EXPECT_NE(done.out.find("200 (policy version 200)"), std::string::npos) << done.text();
    EXPECT_NE(done.out.find(undisturbed()), std::string::npos) << done.text();
    EXPECT_EQ(err.find("restart 2 of"), std::string::npos) << "the disk uses up none\n" << err;
    home.expect_nothing_left();
  }

  const Words inside{"unshare", geteuid() == 0 ? "-m" : "-Urm", "sh", "-c"};
  const Home home;
};

// The run directory is on a file system of its own, in a mount namespace that ends with the
// command. Somebody makes room there once the run has said that it stands still. There is room for
// the state of the run's cluster, some 350 KiB, and for the learner's first files; the journal
// grows until the disk is full.
TEST_F(Disk, AFullDiskHoldsTheRunUpUntilThereIsRoom) {
  const std::string mount = (home.path() / "small").string();
  const std::string said = (home.path() / "full.err").string();
  fs::create_directories(mount);
  const std::string make = "mount -t tmpfs -o size=32m none " + mount;
  if (!works(make)) GTEST_SKIP() << "no mount namespaces here";
  const std::string command =
      make + " && head -c 30800k /dev/zero > " + mount + "/filler || exit 9\n(" +
      until_said("event=disk_full", said) + "rm " + mount + "/filler) &\nTANDEM_HOME=" + mount +
      " exec " TANDEM_BINARY " run 2> " + said + quoted(small_job(100, {"learner.save_freq=1000"}));
  const Finished done = home.start_program(inside + Words{command}).wait();
  const std::string err = read_file(said).value();
  EXPECT_EQ(done.code, 0) << done.text() << err;
  EXPECT_NE(err.find("event=disk_full"), std::string::npos) << err;
  EXPECT_NE(err.find(mount), std::string::npos) << err;
  EXPECT_NE(done.out.find("100 (policy version 100)"), std::string::npos) << done.text();
  home.expect_nothing_left();
}

// The run directory becomes read-only amid the run: files that are open can still be written, and
// no new one can be made, such as a checkpoint or a segment of payloads. The learner dies then, and
// cannot start. Somebody makes the disk writable once the run has said both.
TEST_F(Disk, AFileSystemThatBecomesReadOnlyHoldsTheRunUpUntilItCanBeWritten) {
  const std::string mount = (home.path() / "small").string();
  const std::string said = (home.path() / "run.err").string();
  fs::create_directories(mount);
  const std::string make = "mount -t tmpfs -o size=256m none " + mount;
  if (!works(make)) GTEST_SKIP() << "no mount namespaces here";
  const std::string waits = "waits for room on the disk";
  const std::string meddle = until("ls " + mount + "/runs/" + kSmallId + "/checkpoints/step-20") +
                             "mount --bind " + mount + " " + mount + "; mount -o remount,bind,ro " +
                             mount + "; " + until_said(waits, said) + kill_learner() +
                             until_said(kWaitsToStart, said) + "umount -l " + mount;
  const Finished done = run_beside(make, meddle, mount, {}, said);
  const std::string err = read_file(said).value();
  EXPECT_NE(err.find(waits), std::string::npos) << err;
  expect_undisturbed(done, err);
}

// A learner takes the shared memory of all versions when it starts, or takes over what the learner
// before it has left. Here it dies, and finds neither that nor room: an empty file system of one
// page lies over /dev/shm, until the run has said that the learner waits.
TEST_F(Disk, FullSharedMemoryHoldsTheLearnerUpUntilThereIsRoom) {
  const std::string said = (home.path() / "run.err").string();
  const std::string make = "mount -t tmpfs -o size=64m none /dev/shm";
  if (!works(make)) GTEST_SKIP() << "no mount namespaces here";
  const std::string meddle =
      until("ls " + home.run_dir(kSmallId).string() + "/checkpoints/step-20") +
      "mount -t tmpfs -o size=4k none /dev/shm; " + kill_learner() +
      until_said(kWaitsToStart, said) + "umount -l /dev/shm";
  const Finished done = run_beside(make, meddle, home.path(), {"weight_broadcast.type=shm"}, said);
  const std::string err = read_file(said).value();
  EXPECT_NE(err.find("bytes of shared memory: No space left on device"), std::string::npos) << err;
  expect_undisturbed(done, err);
}

// A state folder on a disk that takes nothing from the start: one message, and nothing is left.
TEST_F(Disk, AStateFolderOnAFullOrReadOnlyDiskIsNamed) {
  const std::string mount = (home.path() / "small").string();
  fs::create_directories(mount);
  const std::string make = "mount -t tmpfs -o size=4m none " + mount;
  if (!works(make)) GTEST_SKIP() << "no mount namespaces here";
  const std::string run = "run" + quoted(small_job(5));
  const auto expect = [&](const std::string& prepare, const std::string& verb, const char* why) {
    SCOPED_TRACE(why + (": " + verb));
    const std::string command = make + " && " + prepare + " || exit 9\nTANDEM_HOME=" + mount +
                                " " TANDEM_BINARY " " + verb + "\ncode=$?; rm -f " + mount +
                                "/filler; find " + mount + " -mindepth 1; exit $code";
    const Finished done = home.start_program(inside + Words{command}).wait();
    EXPECT_EQ(done.code, 1) << done.text();
    EXPECT_EQ(done.out, "") << "files are left";
    for (const char* part : {why, mount.c_str(), "help:"})
      EXPECT_NE(done.err.find(part), std::string::npos) << part << "\n" << done.text();
  };
  const std::string fill = "{ head -c 8m /dev/zero > " + mount + "/filler 2> /dev/null; true; }";
  for (const std::string& verb : {run, std::string("up")}) {
    expect("mount -o remount,ro " + mount, verb, "Read-only file system");
    expect(fill, verb, "No space left on device");
  }
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
