#include "lib/format/checkpoint/checkpoint_weights.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using test::message_of;
using test::publish_sensible;

TEST_CASE("a checkpoint's weights are its mean where it has one, or what is named") {
  const test::TemporaryFolder run;
  const fs::path plain = publish_sensible(run.path, 1);
  test::Sensible contents(2);
  contents.has_mean = true;
  const fs::path averaged = test::publish(run.path, contents, 2);
  CHECK(weights_file(plain, "") == plain / "model.safetensors");
  CHECK(weights_file(plain, "model") == plain / "model.safetensors");
  CHECK(weights_file(averaged, "") == averaged / "ema.safetensors");
  CHECK(weights_file(averaged, "ema") == averaged / "ema.safetensors");
  CHECK(weights_file(averaged, "model") == averaged / "model.safetensors");
  CHECK(find_weights(plain, "ema") == std::nullopt);
  for (const std::string mean : {"ema", "swa"}) {
    CHECK(message_of<core::CheckpointError>([&] { weights_file(plain, mean); }) ==
          fmt::format("{}: has no {} weights\n  use its model, or a checkpoint of a run whose "
                      "recipe has an {}",
                      plain.string(), mean, mean));
  }
}

TEST_CASE("one of several means is named by its decay, the first by that of the recipe") {
  const test::TemporaryFolder folder;
  const fs::path model = folder.path / "model.safetensors", swa = folder.path / "swa.safetensors";
  test::write_bytes(swa, "");
  CHECK(weights_file(folder.path, "") == swa);
  for (const char* const name : {"ema.safetensors", "ema-0.9999.safetensors"}) {
    test::write_bytes(folder.path / name, "");
  }
  test::write_bytes(folder.path / "recipe.json", R"({"ema": {"decay": [0.999, 0.9999]}})");
  CHECK(weights_file(folder.path, "") == folder.path / "ema.safetensors");
  CHECK(weights_file(folder.path, "ema:0.9990") == folder.path / "ema.safetensors");
  CHECK(weights_file(folder.path, "ema:0.9999") == folder.path / "ema-0.9999.safetensors");
  CHECK(weights_file(folder.path, "swa") == swa);
  CHECK(message_of<core::CheckpointError>([&] { weights_file(folder.path, "ema:0.5"); }) ==
        folder.path.string() + ": has no ema:0.5 weights\n  use one of: ema:0.999, ema:0.9999");
  test::write_bytes(folder.path / "recipe.json", R"({"ema": {"decay": 0.5}})");
  CHECK(weights_file(folder.path, "ema:0.5") == folder.path / "ema.safetensors");
}

TEST_CASE("means are known by the names of their files") {
  for (const char* const name : {"ema", "swa", "ema:0.999", "ema:1e-05"}) {
    CHECK(is_mean_file(mean_file(name)));
    CHECK(weights_name(mean_file(name)) == name);
  }
  CHECK(mean_file("ema:0.999") == "ema-0.999.safetensors");
  for (const char* const name : {"model.safetensors", "ema_buffers.safetensors",
                                 "ema-0.999_buffers.safetensors", "ema-x.safetensors"}) {
    CHECK_FALSE(is_mean_file(name));
  }
  CHECK(weights_name("a/model.safetensors") == "model");
}
