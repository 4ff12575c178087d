#include "launcher/commands/slurm/job_record.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

template <class Function>
std::string record_error(const Function& function) {
  try {
    function();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a record is read as it was written") {
  const test::TemporaryFolder run;
  write_job_record(run.path, {.job = "12_3", .log = "/a b/\"c\".out"});
  const JobRecord record = read_job_record(run.path);
  CHECK(record.job == "12_3");
  CHECK(record.log == "/a b/\"c\".out");
}

TEST_CASE("a run without a job, or with a damaged record, says what to do") {
  const test::TemporaryFolder run;
  const std::string file = (run.path / "slurm.json").string();
  const auto read = [&] { read_job_record(run.path); };
  CHECK(record_error(read) ==
        file + ": does not exist\n  submit the run: scaletrain slurm RECIPE --submit");
  fs::create_directories(run.path);
  for (const char* text : {"", "{", "[]", "{}", R"({"job": 3})", R"({"job": "3 --user=root"})"}) {
    CAPTURE(text);
    std::ofstream(file) << text;
    CHECK(record_error(read).find(file + ": has no job number") == 0);
  }
}

TEST_CASE("the log is the file that sbatch makes of the pattern") {
  const std::string here = fs::current_path().string();
  CHECK(log_path("slurm-%j.out", "12", "name") == here + "/slurm-12.out");
  CHECK(log_path("/logs/%x-%A_%a.out", "12_3", "name") == "/logs/name-12_3.out");
  CHECK(log_path("100%%", "12", "name") == here + "/100%");
  CHECK(record_error([] { log_path("%j.out", "12_3", "name"); }) ==
        "--output: \"%j\" cannot be found again in an array\n"
        "  use %j, or %A and %a for an array, %x and %%");
  CHECK(record_error([] { log_path("%N.out", "12", "name"); }).find("--output: \"%N\"") == 0);
  CHECK(record_error([] { log_path("end%", "12", "name"); }).find("--output: \"% \"") == 0);
}

}  // namespace
}  // namespace scaletrain::launcher
