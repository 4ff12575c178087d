#include "lib/core/disk/lease.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

nlohmann::json read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

void write(const std::filesystem::path& file, const nlohmann::json& json) {
  std::ofstream(file.string() + ".new") << json.dump();
  std::filesystem::rename(file.string() + ".new", file);
}

// A lease as this process would write it.
nlohmann::json ours(const test::TemporaryFolder& folder) {
  const Lease lease(folder.file("lease.json"), 0);
  return read(folder.file("lease.json"));
}

TEST_CASE("a lease names its owner, is renewed, and is removed when it is released") {
  const test::TemporaryFolder folder;
  {
    Lease lease(folder.file("lease.json"), 3);
    nlohmann::json content = read(folder.file("lease.json"));
    CHECK(content.at("pid") == getpid());
    CHECK(content.at("attempt") == 3);
    CHECK(content.at("beat") == 0);
    CHECK(lease.beat());
    CHECK(read(folder.file("lease.json")).at("beat") == 1);
  }
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("the lease of a live process of this host is refused at once") {
  const test::TemporaryFolder folder;
  const Lease first(folder.file("lease.json"), 0);
  const std::string host = read(folder.file("lease.json")).at("host");
  try {
    const Lease second(folder.file("lease.json"), 0, seconds(100));
    FAIL("taken twice");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()) ==
          fmt::format("{}: belongs to the running job with pid {} on host {}\n"
                      "  stop that job first, or give this one another folder: --set output=FOLDER",
                      folder.path.string(), getpid(), host));
  }
}

TEST_CASE("the lease of a dead process of this boot is taken over at once") {
  const test::TemporaryFolder folder;
  nlohmann::json content = ours(folder);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  content["pid"] = child;
  write(folder.file("lease.json"), content);
  const Lease lease(folder.file("lease.json"), 0, seconds(100));
  CHECK(read(folder.file("lease.json")).at("pid") == getpid());
}

TEST_CASE("a process that has ended and waits for its parent holds no lease") {
  const test::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    const Lease lease(folder.file("lease.json"), 0);
    _exit(0);  // leaves the file
  }
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  REQUIRE(read(folder.file("lease.json")).at("pid") == child);
  const Lease lease(folder.file("lease.json"), 0, seconds(100));
  CHECK(read(folder.file("lease.json")).at("pid") == getpid());
  CHECK(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a process number that is used again is not mistaken for the owner") {
  const test::TemporaryFolder folder;
  nlohmann::json content = ours(folder);
  content["started"] = content["started"].get<std::int64_t>() - 1;
  write(folder.file("lease.json"), content);
  const Lease lease(folder.file("lease.json"), 7, seconds(100));
  CHECK(read(folder.file("lease.json")).at("attempt") == 7);
}

TEST_CASE("the lease of another container of this host is watched: its numbers say nothing") {
  const test::TemporaryFolder folder;
  nlohmann::json content = ours(folder);
  content["pid"] = 1 << 30;        // nobody's here
  content.erase("pid_namespace");  // written by an earlier version
  write(folder.file("lease.json"), content);
  CHECK(view_lease(folder.file("lease.json"))->alive == false);
  content["pid_namespace"] = "pid:[1]";
  write(folder.file("lease.json"), content);
  CHECK_FALSE(view_lease(folder.file("lease.json"))->alive.has_value());
  std::atomic<bool> done = false;
  std::thread owner([&] {
    for (int beat = 1; !done; ++beat) {
      content["beat"] = beat;
      write(folder.file("lease.json"), content);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  CHECK_THROWS_AS(Lease(folder.file("lease.json"), 0, seconds(60)), UsageError);
  done = true;
  owner.join();
}

TEST_CASE("another host's lease is taken over when it does not change, damaged ones too") {
  const test::TemporaryFolder folder;
  nlohmann::json content = ours(folder);
  content["host"] = "elsewhere";
  for (const nlohmann::json& found :
       {content, nlohmann::json("damaged"), nlohmann::json::object()}) {
    write(folder.file("lease.json"), found);
    const Lease lease(folder.file("lease.json"), 0, milliseconds(100));
    CHECK(read(folder.file("lease.json")).at("pid") == getpid());
  }
}

TEST_CASE("another host's lease is refused while it is renewed") {
  const test::TemporaryFolder folder;
  nlohmann::json content = ours(folder);
  content["host"] = "elsewhere";
  content["pid"] = 77;
  write(folder.file("lease.json"), content);
  std::atomic<bool> done = false;
  std::thread owner([&] {
    for (int beat = 1; !done; ++beat) {
      content["beat"] = beat;
      write(folder.file("lease.json"), content);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  std::string text;
  try {
    const Lease lease(folder.file("lease.json"), 0, seconds(60));
  } catch (const UsageError& error) {
    text = error.found();
  }
  done = true;
  owner.join();
  CHECK(text == "belongs to the running job with pid 77 on host elsewhere");
}

TEST_CASE("an owner notices that its lease was taken, and leaves the new lease unchanged") {
  const test::TemporaryFolder folder;
  nlohmann::json content = ours(folder);
  {
    Lease lease(folder.file("lease.json"), 0);
    content["host"] = "elsewhere";
    write(folder.file("lease.json"), content);
    CHECK_FALSE(lease.beat());
  }
  CHECK(read(folder.file("lease.json")).at("host") == "elsewhere");
}

TEST_CASE("a lease that somebody removed is refused to others and written again by its owner") {
  const test::TemporaryFolder folder;
  Lease first(folder.file("lease.json"), 3);
  std::filesystem::remove(folder.path / "lease.json");
  std::string text;
  try {
    const Lease second(folder.file("lease.json"), 0);
  } catch (const UsageError& error) {
    text = error.what();
  }
  CHECK(text == folder.path.string() +
                    ": belongs to another running job\n"
                    "  stop that job first, or give this one another folder: --set output=FOLDER");
  CHECK_FALSE(std::filesystem::exists(folder.path / "lease.json"));
  CHECK(first.beat());
  CHECK(read(folder.file("lease.json")).at("attempt") == 3);
}

TEST_CASE("a lease whose folder was removed makes and holds it again, unless another has it") {
  const test::TemporaryFolder folder;
  const std::filesystem::path run = folder.path / "run";
  std::filesystem::create_directory(run);
  Lease first(run / "lease.json", 3);
  std::filesystem::remove_all(run);
  CHECK(first.beat());
  std::filesystem::remove(run / "lease.json");
  CHECK_THROWS_AS(Lease(run / "lease.json", 0), UsageError);
  CHECK(first.beat());
  std::filesystem::remove_all(run);
  std::filesystem::create_directory(run);
  const Lease second(run / "lease.json", 4);
  CHECK_FALSE(first.beat());
  CHECK(read(run / "lease.json").at("attempt") == 4);
}

TEST_CASE("a folder that does not exist is a storage error") {
  CHECK_THROWS_AS(Lease("/no/such/folder/lease.json", 0), StorageError);
}

}  // namespace
}  // namespace scaletrain::core
