#include "launcher/commands/doctor/machine.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

using State = Finding::State;

TEST_CASE("limits are judged for a run of several workers") {
  CHECK(check_open_files(65536, 65536).state == State::kOk);
  CHECK(check_open_files(kNoLimit, kNoLimit).state == State::kOk);
  CHECK(check_open_files(1024, 4096).state == State::kWarning);
  CHECK(check_open_files(64, 64).state == State::kFailed);
  CHECK(check_open_files(64, 1024).found == "64 (hard limit 1024)");
  CHECK(check_processes(kNoLimit).state == State::kOk);
  CHECK(check_processes(1000).state == State::kWarning);
  CHECK(check_processes(100).state == State::kFailed);
  CHECK(check_locked_memory(8 << 20, false).state == State::kOk);
  CHECK(check_locked_memory(8 << 20, true).state == State::kWarning);
  CHECK(check_locked_memory(kNoLimit, true).state == State::kOk);
  CHECK(check_limits(false).size() == 3);
}

TEST_CASE("a disk that takes what a checkpoint does is fine, and nothing stays on it") {
  const test::TemporaryFolder folder;
  const Findings findings = check_disk(folder.path / "not" / "there" / "yet");
  CHECK(findings[0].state == State::kOk);
  CHECK(findings[0].found.starts_with(folder.path.string() + ": "));
  CHECK(findings[1].found == "symbolic and hard links can be made");
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a disk that takes nothing fails") {
  const Findings findings = check_disk("/proc");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].state == State::kFailed);
}

TEST_CASE("shared memory that is not there fails") {
  CHECK(check_shared_memory("/nowhere").state == State::kFailed);
  CHECK(check_shared_memory("/tmp").state != State::kFailed);
}

TEST_CASE("a machine on which others run is warned of") {
  CHECK(check_load(0.9, 2).state == State::kOk);
  CHECK(check_load(14, 2).state == State::kWarning);
  CHECK(check_load(14, 2).found == "14.0 threads run or wait on 2 cores");
  CHECK(check_load(3, 64).state == State::kOk);
  CHECK(check_load(7, 64).state == State::kWarning);
}

TEST_CASE("the clock of a machine that runs tests is not before 2024") {
  CHECK(check_clock().state != State::kFailed);
}

}  // namespace
}  // namespace scaletrain::launcher
