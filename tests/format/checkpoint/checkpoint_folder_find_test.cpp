// Which checkpoint a path means.
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using test::message_of;
using test::publish_sensible;

namespace {

void ignore(const std::string& /*damage*/) {}

void damage_model(const fs::path& checkpoint) {
  std::string bytes = test::read_bytes(checkpoint / "model.safetensors");
  bytes.back() ^= 1;
  test::write_bytes(checkpoint / "model.safetensors", bytes);
}

std::string damage_of(const fs::path& checkpoint) {
  return message_of<core::CheckpointError>([&] { verify_checkpoint(checkpoint); });
}

}  // namespace

TEST_CASE("a checkpoint without files of its own process is found by run, folder, link and name") {
  const test::TemporaryFolder run;
  CHECK(find_checkpoint(run.path, ignore) == std::nullopt);
  CHECK(find_checkpoint(run.path / "absent", ignore) == std::nullopt);
  const fs::path first = publish_sensible(run.path, 1);
  const fs::path second = publish_sensible(run.path, 2);
  fs::create_symlink("step-00000001", run.path / "checkpoints" / "best");
  CHECK(find_checkpoint(run.path, ignore) == second);
  CHECK(find_checkpoint(run.path.string() + "/", ignore)->lexically_normal() == second);
  CHECK(find_checkpoint(run.path / "checkpoints", ignore) == second);
  CHECK(find_checkpoint(run.path / "checkpoints" / "best", ignore) == first);
  CHECK(find_checkpoint(run.path.string() + "/checkpoints/best/", ignore) == first);
  CHECK(find_checkpoint(first, ignore) == first);
  fs::rename(first, run.path / "kept");
  CHECK(find_checkpoint(run.path / "kept", ignore) == run.path / "kept");
  CHECK(message_of<core::CheckpointError>([&] { find_checkpoint(first, ignore); }) ==
        first.string() +
            ": there is no such checkpoint\n  name the run's folder to use its newest checkpoint");
  const fs::path best = run.path / "checkpoints" / "best";
  CHECK(message_of<core::CheckpointError>([&] { find_checkpoint(best, ignore); }) ==
        best.string() + ": points to " + first.string() +
            ", which does not exist\n  name the run's folder to use its newest checkpoint");
  CHECK(
      message_of<core::CheckpointError>(
          [&] { find_checkpoint(second / "manifest.json", ignore); }) ==
      (second / "manifest.json").string() +
          ": is a file, not a checkpoint's folder\n  name the folder of a checkpoint or of a run");
}

TEST_CASE("checkpoints are listed by number, one that was set aside with its successor once") {
  const test::TemporaryFolder run;
  for (const char* name : {"step-100000000", "step-99999999", "step-00000007.old", "step-00000007",
                           "step-00000003.old", "latest", "step-x"}) {
    fs::create_directory(run.path / name);
  }
  CHECK(list_checkpoints(run.path) == std::vector<std::int64_t>{3, 7, 99'999'999, 100'000'000});
}

TEST_CASE("a damaged checkpoint of a run is reported and the one before is taken") {
  const test::TemporaryFolder run;
  const fs::path first = publish_sensible(run.path, 1);
  const fs::path second = publish_sensible(run.path, 2);
  damage_model(second);
  std::vector<std::string> reports;
  const auto report = [&](const std::string& text) { reports.push_back(text); };
  CHECK(find_checkpoint(run.path, report) == first);
  CHECK(reports == std::vector<std::string>{damage_of(second)});
  CHECK(message_of<core::CheckpointError>([&] { find_checkpoint(second, report); }) ==
        damage_of(second));
  damage_model(first);
  CHECK(message_of<core::CheckpointError>([&] { find_checkpoint(run.path, ignore); }) ==
        run.path.string() +
            ": has 2 checkpoints, and none of them is complete\n  start a new run in another "
            "/output, or restore a checkpoint from a copy");
}

TEST_CASE("one that makes no sense is passed over too, and one that cannot be read is not") {
  const test::TemporaryFolder run;
  const fs::path first = publish_sensible(run.path, 1);
  const fs::path second = publish_sensible(run.path, 2);
  fs::rename(second, run.path / "checkpoints" / "step-00000003");
  std::vector<std::string> reports;
  CHECK(find_checkpoint(run.path, [&](const std::string& text) { reports.push_back(text); }) ==
        first);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].find("/step: is 2, and the folder's name step-00000003 says 3") !=
        std::string::npos);

  // As of a disk that fails: nobody can say what is there.
  fs::create_symlink("step-00000004", run.path / "checkpoints" / "step-00000004");
  CHECK(message_of<core::StorageError>([&] { find_checkpoint(run.path, ignore); })
            .find("step-00000004/manifest.json: cannot be read: Too many levels of symbolic links "
                  "(ELOOP)") != std::string::npos);
}
