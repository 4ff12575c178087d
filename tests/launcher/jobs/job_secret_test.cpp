#include "launcher/jobs/job_secret.h"

#include <doctest/doctest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv
#include <sys/stat.h>

#include <filesystem>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"

namespace scaletrain::launcher {

TEST_CASE("the first launcher makes a private secret, and the others read it") {
  const test::TemporaryFolder run;
  unsetenv("SCALETRAIN_SECRET_FILE");
  const std::string secret = job_secret(run.path);
  CHECK(secret.size() == 64);
  CHECK(job_secret(run.path) == secret);
  struct stat found {};
  REQUIRE(::stat((run.path / "peer-secret").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
}

TEST_CASE("a secret that others can read, or that is short, is refused") {
  const test::TemporaryFolder run;
  const auto path = run.path / "named";
  run.write("named", std::string(64, 'a') + "\n");
  setenv("SCALETRAIN_SECRET_FILE", path.c_str(), 1);
  ::chmod(path.c_str(), 0644);
  CHECK_THROWS_AS(job_secret(run.path), core::UsageError);
  ::chmod(path.c_str(), 0600);
  CHECK(job_secret(run.path) == std::string(64, 'a'));
  std::filesystem::create_symlink(path, run.path / "link");
  setenv("SCALETRAIN_SECRET_FILE", (run.path / "link").c_str(), 1);
  CHECK_THROWS_AS(job_secret(run.path), core::UsageError);
  run.write("named", "short");
  setenv("SCALETRAIN_SECRET_FILE", path.c_str(), 1);
  CHECK_THROWS_AS(job_secret(run.path), core::UsageError);
  unsetenv("SCALETRAIN_SECRET_FILE");
}

}  // namespace scaletrain::launcher
