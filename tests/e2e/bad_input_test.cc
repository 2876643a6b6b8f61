// Faults of files, folders and ports that the program meets: each gives a clear error with place
// and help and the documented exit code, and starts nothing. (Wrong keys of the job file:
// tests/actors/job.)
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/base/secret.h"
#include "runtime/http/http_client.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kModel = TANDEM_SOURCE_DIR "/configs/models/arithmetic";

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

class BadInput : public testing::Test {
 protected:
  // A model directory of which `broken` holds `text`; without text it is missing.
  std::string model_with(const std::string& broken, const std::optional<std::string>& text) const {
    const fs::path model = home.path() / "model";
    fs::remove_all(model);
    fs::create_directories(model);
    for (const char* file : {"config.json", "tokenizer.json"})
      fs::copy(fs::path(kModel) / file, model / file);
    fs::remove(model / broken);
    if (text) write(model / broken, *text);
    return model.string();
  }
  std::string data_with(const std::string& line) const {
    const fs::path data = home.path() / "data.jsonl";
    write(data, "{\"prompt\": \"1+1=\", \"answer\": \"2\", \"completion\": \"2\"}\n" + line + "\n");
    return data.string();
  }
  // Refused before anything starts: code, place and help.
  void expect_refused(const Words& settings, int code, const std::string& place) const {
    for (const char* command : {"run", "submit"}) {
      const bool submits = std::string(command) == "submit";
      if (submits && !up_) continue;
      const Finished done = home.run(Words{command} + small_job(3, settings));
      EXPECT_EQ(done.code, code) << command << ": " << done.text();
      EXPECT_NE(done.err.find("error["), std::string::npos) << done.text();
      EXPECT_NE(done.err.find(place), std::string::npos) << done.text();
    }
    EXPECT_FALSE(fs::exists(home.path() / "runs")) << "a run was begun";
    if (!up_) home.expect_nothing_left();
  }
  void up() {
    home.up();
    up_ = true;
  }

  Home home;
  bool up_ = false;
};

std::string truncated(const fs::path& file) {
  const std::string whole = read_file(file).value();
  return whole.substr(0, whole.size() / 2);
}

TEST_F(BadInput, ABrokenModelIsNamed) {
  const fs::path config = fs::path(kModel) / "config.json",
                 tokens = fs::path(kModel) / "tokenizer.json";
  expect_refused({"model.path=" + (home.path() / "nowhere").string()}, 1, "nowhere");
  const auto with = [&](const char* file, const std::optional<std::string>& text) {
    return Words{"model.path=" + model_with(file, text)};
  };
  expect_refused(with("config.json", std::nullopt), 1, "config.json");
  expect_refused(with("tokenizer.json", std::nullopt), 1, "tokenizer.json");
  expect_refused(with("config.json", truncated(config)), 1, "config.json:");
  expect_refused(with("tokenizer.json", truncated(tokens)), 1, "tokenizer.json:");
  expect_refused(with("config.json", "{\"model_type\": \"other\"}"), 1, "config.json");
  expect_refused(with("tokenizer.json", "\xff\xfe\x00junk"), 1, "tokenizer.json");
  const Words pretrained{"model.init=pretrained"};
  expect_refused(with("model.safetensors", std::nullopt) + pretrained, 1, "model.safetensors");
  expect_refused(with("model.safetensors", "junk that is no header") + pretrained, 1,
                 "model.safetensors");
}

// A thing that is no file, in the place of one. The FIFO has no writer, and /dev/zero has no end.
struct NoFile {
  const char* kind;  // as an error names it
  void (*make)(const fs::path&);
};
constexpr NoFile kNoFiles[] = {
    {"a FIFO", [](const fs::path& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
    {"a character device", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
};

void put_in_place_of(const fs::path& path, const NoFile& thing) {
  fs::remove(path);
  thing.make(path);
}

TEST_F(BadInput, AFileOfAModelThatIsNoFileIsNamed) {
  for (const NoFile& thing : kNoFiles) {
    for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"}) {
      SCOPED_TRACE(std::string(file) + ": " + thing.kind);
      const std::string model = model_with("model.safetensors", "junk");
      put_in_place_of(fs::path(model) / file, thing);
      const Words job{"model.path=" + model, "model.init=pretrained"};
      expect_refused(job, 1, std::string("it is ") + thing.kind + ", not a regular file");
      expect_refused(job, 1, file);
    }
  }
}

TEST_F(BadInput, AJobOrDataFileThatIsNoFileIsNamed) {
  up();
  for (const NoFile& thing : kNoFiles) {
    SCOPED_TRACE(thing.kind);
    const std::string message = std::string("it is ") + thing.kind + ", not a regular file";
    const fs::path path = home.path() / "no-file";
    put_in_place_of(path, thing);
    for (const char* key : {"data.train_files", "data.val_files", "warm_start.train_files"})
      expect_refused({std::string(key) + "=[" + path.string() + "]"}, 1, message);
    for (const Words& command :
         {Words{"run", path.string()}, Words{"submit", path.string()},
          Words{"run", "--dry-run", path.string()}, Words{"eval", kModel, path.string()}}) {
      const Finished done = home.run(command);
      EXPECT_EQ(done.code, 1) << command.front() << ": " << done.text();
      EXPECT_NE(done.err.find("cannot read the job file: " + message), std::string::npos)
          << done.text();
      EXPECT_NE(done.err.find(path.string()), std::string::npos) << done.text();
    }
  }
  home.down();
}

// A shell opens the pipe of <(command) before the program starts, so that its writer exists.
TEST_F(BadInput, AJobFileMayBeAPipeOfTheShell) {
  const std::string job = TANDEM_SOURCE_DIR "/configs/arithmetic.yaml";
  for (const std::string& piped :
       {"sed 's,models/,configs/models/,; s,data/,configs/data/,' " + job +
            " | " TANDEM_BINARY " run --dry-run /dev/stdin",
        TANDEM_BINARY " run --dry-run <(sed 's,models/,configs/models/,; s,data/,configs/data/,' " +
            job + ")"}) {
    const Finished done = home.start_program({"bash", "-c", piped}).wait();
    EXPECT_EQ(done.code, 0) << piped << ": " << done.text();
    EXPECT_NE(done.out.find("# placement on"), std::string::npos) << done.text();
  }
  const Finished endless =
      home.start_program({"bash", "-c", TANDEM_BINARY " run /dev/stdin < /dev/zero"}).wait();
  EXPECT_EQ(endless.code, 1) << endless.text();
  EXPECT_NE(endless.err.find("at most 1048576 are read"), std::string::npos) << endless.text();
}

TEST_F(BadInput, AFileOfACheckpointThatIsNoFileIsNamed) {
  const Words longer = small_job(3, {"data.val_files=[]", "learner.save_freq=2"});
  home.train(kSmallId, small_job(2, {"data.val_files=[]", "learner.save_freq=2"}));
  const fs::path run = home.run_dir(kSmallId), kept = home.path() / "kept";
  fs::remove_all(run / "checkpoints/step-0");  // else the run would go on from there
  for (const NoFile& thing : kNoFiles) {
    for (const char* file :
         {"checkpoints/step-2/config.json", "checkpoints/step-2/model.safetensors",
          "checkpoints/step-2/trainer/state.bin", "checkpoints/step-2/trainer/m.bin",
          "checkpoints/step-2/trainer/v.bin", "journal.sqlite", "metrics.jsonl", "samples.jsonl"}) {
      SCOPED_TRACE(std::string(file) + ": " + thing.kind);
      fs::rename(run / file, kept);
      put_in_place_of(run / file, thing);
      const Finished done = home.run(Words{"run"} + longer + Words{"--resume", run.string()});
      EXPECT_EQ(done.code, 1) << done.text();
      EXPECT_NE(done.err.find(std::string("it is ") + thing.kind + ", not a regular file"),
                std::string::npos)
          << done.text();
      EXPECT_NE(done.err.find(fs::path(file).filename().string()), std::string::npos)
          << done.text();
      fs::remove(run / file);
      fs::rename(kept, run / file);
    }
    fs::rename(run / "job.yaml", kept);
    put_in_place_of(run / "job.yaml", thing);
    const Finished done = home.run({"run", "--resume", run.string()});
    EXPECT_EQ(done.code, 1) << done.text();
    EXPECT_NE(done.err.find(std::string("it is ") + thing.kind), std::string::npos) << done.text();
    fs::remove(run / "job.yaml");
    fs::rename(kept, run / "job.yaml");
  }
  const Finished good = home.run(Words{"run"} + longer + Words{"--resume", run.string()});
  EXPECT_EQ(good.code, 0) << good.text();
  home.expect_nothing_left();
}

// 50 lines of 4 MiB, together with the program itself, are more than 200 MiB of addresses can hold.
TEST_F(BadInput, TooLittleMemoryIsAnErrorAndNoAbort) {
  const fs::path data = home.path() / "large.jsonl";
  std::ofstream file(data);
  for (int i = 0; i < 50; ++i)
    file << R"({"prompt": "1+1=", "answer": ")" << std::string(4 << 20, 'x') << "\"}\n";
  file.close();
  const Finished done =
      home.start_program(
              {"sh", "-c",
               "ulimit -v $((200 << 10)); exec " TANDEM_BINARY " eval " + std::string(kModel) +
                   " " TANDEM_SOURCE_DIR "/configs/arithmetic.yaml --set data.val_files=[" +
                   data.string() + "]"})
          .wait();
  EXPECT_EQ(done.code, 1) << done.text();
  EXPECT_NE(done.err.find("error[out_of_memory]: there is not enough memory"), std::string::npos)
      << done.text();
}

TEST_F(BadInput, AnOutputThatTheDiskDoesNotTakeIsAnError) {
  const Finished full =
      home.start_program({"bash", "-c", TANDEM_BINARY " explain --markdown > /dev/full"}).wait();
  EXPECT_EQ(full.code, 1) << full.text();
  EXPECT_NE(full.err.find("the output could not be written"), std::string::npos) << full.err;
}

TEST_F(BadInput, AnUnknownInstructionSetIsRefused) {
  ::setenv("TANDEM_ISA", "avx1024", 1);
  expect_refused({}, 64, "TANDEM_ISA names no instruction set of this CPU: avx1024");
  ::unsetenv("TANDEM_ISA");
}

TEST_F(BadInput, ALimitOfLogsThatIsNoNumberIsRefused) {
  ::setenv("TANDEM_LOG_MAX_BYTES", "64MB", 1);
  expect_refused({}, 64, "`64MB` is no whole number");
  ::unsetenv("TANDEM_LOG_MAX_BYTES");
}

TEST_F(BadInput, AHubIdIsNoFolder) {
  expect_refused({"model.path=Qwen/Qwen3-0.6B"}, 1, "hf download Qwen/Qwen3-0.6B");
}

TEST_F(BadInput, ADataFileOfAnotherFormatIsNamed) {
  const auto refused = [&](const std::string& name, std::string_view head, const char* said) {
    const fs::path data = home.path() / name;
    write(data, std::string(head));
    expect_refused({"data.train_files=[" + data.string() + "]"}, 64, said);
  };
  refused("train.parquet", {"PAR1\x15\0\x15", 7}, "the parquet file is cut off");
  refused("train.jsonl.gz", {"\x1f\x8b\x08\0", 4}, "the gzip file is damaged");
  refused("train.arrow", {"ARROW1\0\0", 8}, "this is an Arrow file");
}

TEST_F(BadInput, AWrongIndentationIsShownWithItsLine) {
  const fs::path job = home.path() / "job.yaml";
  write(job, "name: a\nmodel:\n  path: x\n    init: random\ndata: {}\n");
  const Finished done = home.run({"run", job.string()});
  EXPECT_EQ(done.code, 64) << done.text();
  EXPECT_NE(done.err.find("job.yaml:4:5"), std::string::npos) << done.text();
  EXPECT_NE(done.err.find("  4 |     init: random\n    |     ^"), std::string::npos) << done.text();
}

// The API reads the text itself, while `submit` reads the file before it asks.
TEST_F(BadInput, SeveralErrorsOfAJobFileAreInOneAnswer) {
  const fs::path job = home.path() / "job.yaml";
  write(job,
        "name: a\nmodel: { pth: x }\ndata:\n  shuffle: 3\nrollout:\n  n: 0\n  n: 4\n"
        "reward: 5\n");
  up();
  const Finished run = home.run({"run", job.string()});
  EXPECT_EQ(run.code, 64) << run.text();
  std::size_t at = 0;
  for (const char* place : {":2:10\n", ":4:12\n", ":6:6\n", ":7:3\n", ":8:9\n"}) {
    at = run.err.find("  --> " + job.string() + place, at);
    ASSERT_NE(at, std::string::npos) << place << run.text();
  }
  const Finished submit = home.run({"submit", job.string()});
  EXPECT_EQ(submit.code, 64) << submit.text();
  EXPECT_EQ(submit.err, run.err);

  const json controller = parse_json(read_file(home.path() / "controller.json").value());
  const auto server = link::parse_endpoint(controller["http"].get<std::string>());
  ASSERT_TRUE(server) << render(server.error());
  const auto answer =
      http::http_post(*server, "/api/v1/jobs", read_file(job).value(), kPatience,
                      {{"authorization", "Bearer " + read_secret(home.path() / "token").value()}});
  ASSERT_TRUE(answer) << render(answer.error());
  EXPECT_EQ(answer->status, 400);
  std::string told = render(http::error_of(*answer)) + "\n";
  const std::string origin = "the submitted job";
  for (std::size_t i = 0; (i = told.find(origin, i)) != std::string::npos;)
    told.replace(i, origin.size(), job.string());
  EXPECT_EQ(told, run.err);
  home.down();
}

TEST_F(BadInput, ATruncatedCheckpointIsNamed) {
  home.train(kSmallId, small_job(1, {"data.val_files=[]"}));
  const fs::path weights = home.run_dir(kSmallId) / "checkpoints/step-1/model.safetensors";
  const std::string half = truncated(weights);
  fs::remove_all(home.path() / "runs");
  expect_refused({"model.init=pretrained", "model.path=" + model_with("model.safetensors", half)},
                 1, "model.safetensors");
}

TEST_F(BadInput, ABrokenDataFileIsNamedWithItsLine) {
  up();
  expect_refused({"data.train_files=[" + (home.path() / "nowhere").string() + "]"}, 1, "nowhere");
  for (const char* key : {"data.train_files", "data.val_files", "warm_start.train_files"}) {
    const auto with = [&](const std::string& line) {
      return Words{std::string(key) + "=[" + data_with(line) + "]"};
    };
    expect_refused(with("{\"prompt\": \"1+1=\", \"ans"), 64, "data.jsonl:2");
    expect_refused(with("{\"question\": \"1+1=\"}"), 64, "data.jsonl:2");
    expect_refused(with("[1, 2]"), 64, "data.jsonl:2");
    expect_refused(with("{\"prompt\": \"hello?\", \"answer\": \"2\", \"completion\": \"2\"}"), 64,
                   "data.jsonl:2");
  }
  const fs::path empty = home.path() / "empty.jsonl";
  write(empty, "");
  expect_refused({"data.train_files=[" + empty.string() + "]"}, 64, "empty.jsonl");
  expect_refused({"data.max_prompt_length=2"}, 64, "max_prompt_length");
  home.down();
}

TEST_F(BadInput, LengthsBeyondTheModelsPositionsAreNamedWithBothNumbers) {
  up();
  expect_refused({"data.max_response_length=5000", "data.max_prompt_length=3000",
                  "learner.max_token_len=8192"},
                 64, "is 8000, and the model has only");
  const Finished dry =
      home.run(Words{"run", "--dry-run"} +
               small_job(3, {"data.max_response_length=5000", "learner.max_token_len=8192"}));
  EXPECT_EQ(dry.code, 64) << dry.text();
  EXPECT_NE(dry.err.find("--set data.max_response_length=5000"), std::string::npos) << dry.text();
  home.down();
}

TEST_F(BadInput, AModelWithoutAnEndIsWarnedOf) {
  const std::string config = read_file(fs::path(kModel) / "config.json").value();
  json changed = parse_json(config);
  changed["eos_token_id"] = nullptr;
  const Words job =
      Words{"run", "--dry-run"} +
      small_job(3, {"model.path=" + model_with("config.json", changed.dump()), "warm_start=null"});
  const Finished dry = home.run(job);
  EXPECT_EQ(dry.code, 0) << dry.text();
  EXPECT_NE(dry.err.find("warning: the model's config.json names no eos_token_id"),
            std::string::npos)
      << dry.text();
  EXPECT_EQ(home.run(job + sets({"rollout.stop=[x]"})).err.find("eos_token_id"), std::string::npos);
}

TEST_F(BadInput, ATokenizerWhoseEndIsNotTheModelsIsWarnedOf) {
  const std::string model =
      model_with("tokenizer_config.json", R"({"eos_token": {"content": "<|pad|>"}})");
  const Finished dry = home.run(Words{"run", "--dry-run"} + small_job(3, {"model.path=" + model}));
  EXPECT_EQ(dry.code, 0) << dry.text();
  EXPECT_NE(dry.err.find("warning: the eos_token '<|pad|>' of tokenizer_config.json, id 0"),
            std::string::npos)
      << dry.text();
}

TEST_F(BadInput, APatternThatDoesNotCompileIsNamed) {
  up();
  expect_refused({"reward.type=regex", "reward.pattern=\"a(b\""}, 64, "reward.pattern");
  home.down();
}

TEST_F(BadInput, AJobThatCanNeverFitIsRefusedByRunAsWell) {
  expect_refused({"pools.learner.cpus_per_actor=1000"}, 2, "never be placed");
}

TEST_F(BadInput, AStateFolderThatCannotBeWrittenIsNamed) {
  const fs::path file = home.path() / "a-file";
  write(file, "no folder");
  for (const fs::path& bad : {fs::path("/proc/tandem"), file / "home"})
    for (const Words& command : {Words{"run"} + small_job(3), Words{"controller", "--port", "0"},
                                 Words{"up", "--port", "0"}}) {
      const Finished done =
          home.start_program(Words{"/usr/bin/env", "TANDEM_HOME=" + bad.string(), TANDEM_BINARY} +
                             command)
              .wait();
      EXPECT_EQ(done.code, 1) << command.front() << ": " << done.text();
      EXPECT_NE(done.err.find(bad.string()), std::string::npos) << done.text();
      EXPECT_NE(done.err.find("help:"), std::string::npos) << done.text();
    }
  home.expect_nothing_left();
}

// A program that dies at once, one that only reports errors: both would otherwise go on for ever.
// Hidden GPUs are as good as none, so that the test says the same on every machine.
TEST_F(BadInput, AJobForGpusOnAMachineWithoutSaysWhatWasFound) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  for (const char* pool : {"rollout", "learner"}) {
    const std::string key = "pools." + std::string(pool) + ".gpus_per_actor";
    expect_refused({key + "=1"}, 2, "no GPU: ");
    const Finished dry = home.run(Words{"run", "--dry-run"} + small_job(3, {key + "=0.5"}));
    EXPECT_EQ(dry.code, 2) << dry.text();
    EXPECT_NE(dry.err.find("with " + key + "=0.0 it would fit"), std::string::npos) << dry.text();
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(BadInput, ARewardCommandThatNeverScoresFailsTheJobWithItsReason) {
  const auto reward = [](const std::string& command) {
    return Words{"reward.type=command", "reward.pattern=null", "reward.command=" + command,
                 "data.val_files=[]"};
  };
  const Finished dies = home.run(Words{"run"} + small_job(3, reward("[\"false\"]")));
  EXPECT_EQ(dies.code, 1) << dies.text();
  EXPECT_NE(dies.err.find("reward.command"), std::string::npos) << dies.text();

  const fs::path script = home.path() / "refuses.py";
  write(
      script,
      "import json, sys\n"
      "for line in sys.stdin:\n"
      "    print(json.dumps({'id': json.loads(line)['id'], 'error': 'not today'}), flush=True)\n");
  const Finished refuses =
      home.run(Words{"run"} + small_job(3, reward("[\"python3\", \"" + script.string() + "\"]")));
  EXPECT_EQ(refuses.code, 1) << refuses.text();
  EXPECT_NE(refuses.err.find("not today"), std::string::npos) << refuses.text();
  home.expect_nothing_left();
  const auto ledger = home.result_of("arithmetic-grpo-2")["ledger"];
  EXPECT_EQ(ledger["trained"], 0) << "a failure is never a reward of 0";
  EXPECT_GT(ledger["discarded"]["reward_failed"], 0);
}

TEST_F(BadInput, ABusyPortIsNamed) {
  Home other;
  other.up();
  const auto file = parse_json(*read_file(other.path() / "controller.json"));
  const std::string control = file["control"];
  const std::string port = control.substr(control.find(':') + 1);
  for (const char* command : {"up", "controller"}) {
    const Finished done = home.run({command, "--port", port});
    EXPECT_EQ(done.code, 1) << command << ": " << done.text();
    EXPECT_NE(done.err.find(port), std::string::npos) << done.text();
    EXPECT_NE(done.err.find("help:"), std::string::npos) << done.text();
  }
  EXPECT_FALSE(fs::exists(home.path() / "controller.json"));
  home.expect_nothing_left();
  other.down();
}

TEST_F(BadInput, ASecondControllerOnTheSameStateIsRefused) {
  home.up();
  const Finished second = home.run({"controller", "--port", "0"});
  EXPECT_EQ(second.code, 1) << second.text();
  EXPECT_NE(second.err.find(home.path().string()), std::string::npos) << second.text();
  EXPECT_NE(second.err.find("tandem down"), std::string::npos) << second.text();
  EXPECT_EQ(home.run({"get", "jobs"}).code, 0) << "the first one is unharmed";
  home.down();
  home.expect_nothing_left();
}

TEST_F(BadInput, WithoutAControllerEveryClientSaysSo) {
  for (const Words& command : {Words{"get", "jobs"}, Words{"submit"} + small_job(3), Words{"top"},
                               Words{"scale", "x", "rollout=2"}, Words{"cancel", "x"},
                               Words{"wait", "x", "--for", "Running"},
                               Words{"--address", "127.0.0.1:1", "events"}, Words{"node"}}) {
    const Finished done = home.run(command);
    EXPECT_EQ(done.code, 69) << command.front() << ": " << done.text();
    EXPECT_NE(done.err.find("help:"), std::string::npos) << done.text();
  }
  for (const Words& command : {Words{"logs", "x"}, Words{"samples", "x"}, Words{"why", "x"},
                               Words{"events", "-j", "x"}, Words{"describe", "run/x"}}) {
    const Finished done = home.run(command);
    EXPECT_EQ(done.code, 3) << command.front() << ": runs are looked for: " << done.text();
    EXPECT_NE(done.err.find("no run"), std::string::npos) << done.text();
  }
  EXPECT_EQ(home.run({"get", "pods"}).code, 64);
  EXPECT_EQ(home.run({"frobnicate"}).code, 64);
  EXPECT_EQ(home.run({"run", "nowhere.yaml"}).code, 1);
}

}  // namespace
}  // namespace tandem::e2e
