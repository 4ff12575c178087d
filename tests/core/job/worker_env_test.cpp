#include "lib/core/job/worker_env.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"

using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

namespace {

// Sets variables for one test and removes them afterwards.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> variables_;
};

std::string message() {
  try {
    read_worker_env();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("without variables there is one rank and no store") {
  const WorkerEnv env = read_worker_env();
  CHECK(env.world_size == 1);
  CHECK(env.rank == 0);
  CHECK(env.master_port == 0);
  CHECK(!env.store_fd);
}

TEST_CASE("what worker_variables writes, read_worker_env reads") {
  WorkerEnv written;
  written.rank = 3;
  written.local_rank = 1;
  written.world_size = 4;
  written.local_world_size = 2;
  written.group_rank = 1;
  written.group_world_size = 2;
  written.master_addr = "10.0.0.1";
  written.master_port = 29501;
  written.restart_count = 1;
  written.max_restarts = 5;
  written.run_id = "night";
  written.use_agent_store = true;
  written.lifeline_fd = 7;
  written.attempt = 2;
  written.one_host = true;
  written.grace_s = 30;
  written.replicas = "word@4711@10.0.0.1 word@4712@10.0.0.2,fd99::2";
  written.resume_command = "scaletrain resume run --nproc 2";
  const Environment environment(worker_variables(written));
  const WorkerEnv read = read_worker_env();
  CHECK(worker_variables(read) == worker_variables(written));
  CHECK(read.lifeline_fd == 7);
  CHECK(read.grace_s == 30);
  CHECK(read.replicas == written.replicas);
  CHECK(!read.console_fd);
}

TEST_CASE("half of the rendezvous variables is an error that names both halves") {
  const Environment environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  CHECK(message() ==
        "environment: RANK, WORLD_SIZE set, but not LOCAL_RANK, MASTER_ADDR, MASTER_PORT\n"
        "  start workers with `scaletrain launch`, or set all of them");
}

TEST_CASE("a rank outside the world is refused") {
  WorkerEnv env;
  env.rank = 2;
  env.world_size = 2;
  env.master_port = 1;
  const Environment environment(worker_variables(env));
  CHECK(message() == "RANK: is \"2\"\n  an integer from 0 to 1 is needed");
}

TEST_CASE("several ranks need a host and a port for the rendezvous") {
  WorkerEnv env;
  env.world_size = 2;
  {
    const Environment environment(worker_variables(env));
    CHECK(message() ==
          "MASTER_PORT: is 0, and several ranks need the same port for the rendezvous\n"
          "  give all ranks the same port from 1 to 65535, such as 29500");
  }
  env.master_port = 1;
  for (const char* const host : {"[::1]", " ", "a b", "a/b", "a\n"}) {
    env.master_addr = host;
    const Environment environment(worker_variables(env));
    CAPTURE(host);
    CHECK(message().starts_with("MASTER_ADDR: \""));
  }
}

TEST_CASE("the verdict is the error file in memory, whatever the disk says") {
  WorkerEnv env;
  const Descriptor memory = make_memory_file("test");
  env.verdict_fd = memory.get();
  env.error_file = "/dev/full/error.json";
  write_error_file(env, "disk full", 74, 40);
  const auto file = nlohmann::json::parse(std::ifstream(path_of(memory.get())));
  CHECK(file["message"]["message"] == "disk full");
  CHECK(file["message"]["extraInfo"]["exit_code"] == 74);
}

TEST_CASE("the error file is what torchrun reads") {
  WorkerEnv env;
  env.error_file =
      (std::filesystem::temp_directory_path() / ("error-" + std::to_string(::getpid()))).string();
  write_error_file(env, "label 12", 65, 40);
  const auto file = nlohmann::json::parse(std::ifstream(env.error_file));
  std::filesystem::remove(env.error_file);
  CHECK(file["message"]["message"] == "label 12");
  CHECK(file["message"]["extraInfo"]["exit_code"] == 65);
  CHECK(file["message"]["extraInfo"]["step"] == 40);
  CHECK(std::stol(file["message"]["extraInfo"]["timestamp"].get<std::string>()) > 1700000000);
}
