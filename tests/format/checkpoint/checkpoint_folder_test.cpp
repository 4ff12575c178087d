#include "lib/format/checkpoint/checkpoint_folder.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using test::message_of;

namespace {

constexpr const char* kVerifyRemedy =
    "\n  use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";

fs::path publish(const fs::path& run, std::int64_t step, const std::string& text = "weights",
                 core::Disk& disk = core::system_disk()) {
  return publish_checkpoint(
      disk, run / "checkpoints", {.program = "scaletrain 0.1.0", .step = step}, 1000,
      [&](const fs::path& folder) {
        return FileEntries{
            {"model.safetensors", write_hashed(disk, folder / "model.safetensors", text)},
            {"state.json", write_hashed(disk, folder / "state.json", std::string(250, 's'))}};
      });
}

void damage(const fs::path& checkpoint) {
  test::write_bytes(checkpoint / "model.safetensors", "WEIGHTS");
}

std::string error_of_verify(const fs::path& checkpoint) {
  return message_of<core::CheckpointError>([&] { verify_checkpoint(checkpoint); });
}

}  // namespace

TEST_CASE("a published checkpoint has its name, its manifest and its files, and verifies") {
  const test::TemporaryFolder run;
  const fs::path checkpoint = publish(run.path, 1200);
  CHECK(checkpoint == run.path / "checkpoints" / "step-00001200");
  const Manifest manifest = verify_checkpoint(checkpoint);
  CHECK(manifest.format == kCheckpointFormat);
  CHECK(manifest.program == "scaletrain 0.1.0");
  CHECK(manifest.step == 1200);
  REQUIRE(manifest.files.size() == 2);
  CHECK(manifest.files.at("model.safetensors").bytes == 7);
  // printf weights | xxhsum -H128
  CHECK(manifest.files.at("model.safetensors").sum == "bdbda1eb6e05adc4800d98e5524fefbc");
  CHECK(core::names_in(run.path / "checkpoints") == std::vector<std::string>{"step-00001200"});
}

TEST_CASE("a flipped byte anywhere in any file is refused, naming the file and both sums") {
  const test::TemporaryFolder run;
  const fs::path checkpoint = publish(run.path, 1);
  for (const std::string& name : core::names_in(checkpoint)) {
    const std::string bytes = test::read_bytes(checkpoint / name);
    for (std::size_t hundredth = 0; hundredth < 100; ++hundredth) {
      std::string flipped = bytes;
      flipped[bytes.size() * hundredth / 100] ^= 0x10;
      test::write_bytes(checkpoint / name, flipped);
      const std::string message = error_of_verify(checkpoint);
      CAPTURE(name);
      CAPTURE(hundredth);
      CHECK(message.starts_with((checkpoint / name).string() + ": "));
      if (name == kManifestName) continue;  // may also be no JSON any more
      CHECK(message == (checkpoint / name).string() +
                           fmt::format(": has the XXH3-128 {}, its manifest says {}",
                                       sum_up(flipped, Sum::kXxh3).sum,
                                       sum_up(bytes, Sum::kXxh3).sum) +
                           kVerifyRemedy);
    }
    test::write_bytes(checkpoint / name, bytes);
  }
  CHECK_NOTHROW(verify_checkpoint(checkpoint));
}

TEST_CASE("a truncated, empty, missing or extra file is refused") {
  const test::TemporaryFolder run;
  const fs::path checkpoint = publish(run.path, 1);
  const fs::path model = checkpoint / "model.safetensors";
  test::write_bytes(model, "weight");
  CHECK(error_of_verify(checkpoint) ==
        model.string() + ": has 6 bytes, its manifest says 7" + kVerifyRemedy);
  test::write_bytes(model, "");
  CHECK(error_of_verify(checkpoint) ==
        model.string() + ": has 0 bytes, its manifest says 7" + kVerifyRemedy);
  test::write_bytes(model, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n");
  CHECK(error_of_verify(checkpoint).starts_with(model.string() + ": is a git-lfs pointer"));
  fs::remove(model);
  CHECK(error_of_verify(checkpoint) == model.string() + ": is missing" + kVerifyRemedy);
  fs::create_symlink("state.json", model);
  CHECK(error_of_verify(checkpoint) == model.string() + ": is not a regular file" + kVerifyRemedy);
  fs::remove(model);
  test::write_bytes(model, "weights");
  CHECK_NOTHROW(verify_checkpoint(checkpoint));
  test::write_bytes(checkpoint / "extra", "");
  CHECK(error_of_verify(checkpoint) == (checkpoint / "extra").string() +
                                           ": is not in the manifest\n  move it out of the "
                                           "checkpoint's folder");
}

TEST_CASE("a checkpoint is called step-N.old only where that is what there is") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  CHECK(checkpoint_path(checkpoints, 7) == checkpoints / "step-00000007");
  const fs::path published = publish(run.path, 7);
  CHECK(checkpoint_path(checkpoints, 7) == published);
  fs::rename(published, published.string() + kOldSuffix);
  CHECK(checkpoint_path(checkpoints, 7) == checkpoints / "step-00000007.old");
}

TEST_CASE("a checkpoint of the same step is replaced, whether it was whole or damaged") {
  const test::TemporaryFolder run;
  const fs::path checkpoint = publish(run.path, 1, "first");
  publish(run.path, 1, "second");
  CHECK(test::read_bytes(checkpoint / "model.safetensors") == "second");
  damage(checkpoint);
  publish(run.path, 1, "third");
  CHECK(test::read_bytes(checkpoint / "model.safetensors") == "third");
  CHECK(core::names_in(run.path / "checkpoints") == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("what a killed save left under the names that a save uses is not in its way") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  const fs::path checkpoint = publish(run.path, 1, "first");
  fs::copy(checkpoint, checkpoint.string() + kOldSuffix);
  fs::create_directory(checkpoints / core::temporary_name("step-00000001"));
  test::write_bytes(checkpoints / core::temporary_name("step-00000001") / "stale", "");
  fs::create_directory(checkpoints / core::temporary_name("step-00000001.old.removed"));
  test::write_bytes(checkpoints / core::temporary_name("step-00000001.old.removed") / "stale", "");
  test::CrashDisk disk(run.path);
  CHECK(test::warnings_of([&] { publish(run.path, 1, "second"); }).empty());
  CHECK_NOTHROW(verify_checkpoint(checkpoint));
  CHECK(test::read_bytes(checkpoint / "model.safetensors") == "second");
  CHECK(core::names_in(checkpoints) == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("too little free space is reported before anything is written") {
  const test::TemporaryFolder run;
  test::CrashDisk disk(run.path);
  disk.free = 1199;
  const fs::path checkpoints = run.path / "checkpoints";
  CHECK(message_of<core::StorageError>([&] { publish(run.path, 7, "weights", disk); }) ==
        checkpoints.string() +
            ": the checkpoint of step 7 needs 1200 bytes, 1199 are free\n  free space on this "
            "disk, keep fewer checkpoints (/checkpoint/keep_last) or choose another /output");
  CHECK(core::names_in(checkpoints).empty());
  disk.free = 1200;
  CHECK_NOTHROW(publish(run.path, 7, "weights", disk));
}

TEST_CASE("a failure of one operation is tried once more, in a new folder") {
  for (const std::string failing : {"create", "write", "sync", "sync_folder", "rename"}) {
    CAPTURE(failing);
    const test::TemporaryFolder run;
    test::CrashDisk disk(run.path);
    publish(run.path, 1, "weights", disk);
    int failures = 0;
    disk.before = [&](const std::string& operation, const fs::path& path) {
      // The first sync_folder is that of the run's folder, outside of the attempts.
      if (operation != failing || failures > 0 || path == run.path) return;
      ++failures;
      throw core::StorageError(path.string(), "cannot " + operation + ": EIO");
    };
    fs::path checkpoint;
    CHECK(test::warnings_of([&] {
            checkpoint = publish(run.path, 2, "weights", disk);
          }).ends_with(": EIO; the checkpoint of step 2 is written once more; "));
    CHECK(failures == 1);
    CHECK_NOTHROW(verify_checkpoint(checkpoint));
    CHECK(list_checkpoints(run.path / "checkpoints") == std::vector<std::int64_t>{1, 2});
  }
}

TEST_CASE("a disk that keeps failing leaves the earlier checkpoint and no temporary folder") {
  for (const std::string failing : {"create", "write", "sync", "rename"}) {
    CAPTURE(failing);
    const test::TemporaryFolder run;
    test::CrashDisk disk(run.path);
    const fs::path first = publish(run.path, 1, "weights", disk);
    int failures = 0;
    disk.before = [&](const std::string& operation, const fs::path&) {
      if (operation != failing) return;
      ++failures;
      throw core::StorageError("the file", "cannot " + operation + ": ENOSPC", "free some space");
    };
    disk.free = 5000;
    CHECK(message_of<core::StorageError>([&] { publish(run.path, 2, "weights", disk); }) ==
          "the file: cannot " + failing +
              ": ENOSPC (the checkpoint of step 2 needs 1200 bytes, 5000 are free)\n  free some "
              "space");
    CHECK(failures == 2);
    CHECK(core::names_in(run.path / "checkpoints") == std::vector<std::string>{"step-00000001"});
    CHECK_NOTHROW(verify_checkpoint(first));
  }
}

TEST_CASE("a disk that keeps failing and removes nothing either warns of what stays") {
  const test::TemporaryFolder run;
  test::CrashDisk disk(run.path);
  publish(run.path, 1, "weights", disk);
  disk.before = [&](const std::string& operation, const fs::path&) {
    if (operation == "sync") throw core::StorageError("the file", "cannot be synced");
    if (operation == "remove") throw core::StorageError("the folder", "cannot be removed");
  };
  std::string error;
  const std::string warnings = test::warnings_of([&] {
    error = message_of<core::StorageError>([&] { publish(run.path, 2, "weights", disk); });
  });
  CHECK(warnings.ends_with("; warning: the folder: cannot be removed; "));
  CHECK(error.starts_with("the folder: cannot be removed (the checkpoint of step 2 needs "));
}

TEST_CASE("the digest is over name, dtype, dimensions and bytes in the order of names") {
  const test::TemporaryFolder folder;
  const std::string a = "abcd", b = "xy";
  write_safetensors(core::system_disk(), folder.path / "model.safetensors",
                    {{"z.weight", "U8", {2}, std::as_bytes(std::span(b))},
                     {"a", "F32", {1, 1}, std::as_bytes(std::span(a))}},
                    {});
  const std::string expected = std::string("a\0F32\0", 6) + std::string("1,1\0", 4) + "abcd" +
                               "z.weight" + std::string("\0U8\0", 4) + std::string("2\0", 2) + "xy";
  CHECK(model_digest(folder.path) == core::Sha256().update(expected).hex());
}
