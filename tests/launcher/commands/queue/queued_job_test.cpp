#include "launcher/commands/queue/queued_job.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

QueuedJob job_of(const std::string& output) {
  return {
      .name = "n", .recipe = "/r.json", .set = {"a=1"}, .values = {{"a", "1"}}, .output = output};
}

TEST_CASE("a job is read back as it was written") {
  QueuedJob job = job_of("/runs/a");
  job.number = 3;
  job.state = QueuedJob::State::kFailed;
  job.starts = 2;
  job.exit_code = 75;
  job.devices = "0,GPU-1";
  const QueuedJob read = parse_job(to_json(job), "0003.json");
  CHECK(to_json(read) == to_json(job));
  CHECK(read.values == job.values);
  CHECK(read.state == QueuedJob::State::kFailed);
}

TEST_CASE("a file that is no job is named") {
  for (const char* text : {"", "{", "[]", "{\"number\": 1}"}) {
    CHECK_THROWS_AS(parse_job(text, "0001.json"), core::DataError);
  }
  std::string other = to_json(job_of("/runs/a"));
  other.replace(other.find("waiting"), 7, "dancing");
  CHECK_THROWS_AS(parse_job(other, "0001.json"), core::DataError);
}

TEST_CASE("jobs are numbered in their order and found again by their number") {
  const test::TemporaryFolder folder;
  std::vector<QueuedJob> jobs;
  add_jobs(jobs, {job_of("/runs/a"), job_of("/runs/b")});
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) save_job(folder.path, *job);
  const std::vector<QueuedJob> found = load_jobs(folder.path);
  REQUIRE(found.size() == 2);
  CHECK(found[0].output == "/runs/a");
  CHECK(found[1].number == 2);
  CHECK(load_jobs(folder.path / "absent").empty());
}

TEST_CASE("a job that exists already keeps its state; another run in its folder is refused") {
  std::vector<QueuedJob> jobs;
  add_jobs(jobs, {job_of("/runs/a")});
  jobs[0].state = QueuedJob::State::kDone;
  add_jobs(jobs, {job_of("/runs/b"), job_of("/runs/a")});
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].state == QueuedJob::State::kDone);
  CHECK(jobs[1].number == 2);

  QueuedJob other = job_of("/runs/a");
  other.set = {"a=2"};
  CHECK_THROWS_WITH(add_jobs(jobs, {other}),
                    "/r.json: has the same output folder as job 1: /runs/a\n"
                    "  each run needs its own folder: give the recipe another name or output");
  CHECK_THROWS_AS(add_jobs(jobs, {job_of("/runs/c"), job_of("/runs/c")}), core::UsageError);
}

}  // namespace
}  // namespace scaletrain::launcher
