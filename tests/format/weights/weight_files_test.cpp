#include "lib/format/weights/weight_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// The names of the files that are found; what() without the folder where none are.
std::string found_files(const test::TemporaryFolder& folder, const std::string& name = "") {
  try {
    const auto ignore = [](const std::string&) {};
    const WeightFiles found = find_weight_files(folder.path / name, ignore);
    std::vector<std::string> names;
    for (const std::filesystem::path& file : found.files) {
      names.push_back(file.lexically_relative(folder.path).string());
    }
    return fmt::format("{}{}", fmt::join(names, " "), found.config ? " + config" : "");
  } catch (const core::CheckpointError& error) {
    return error.found();
  }
}

}  // namespace

TEST_CASE("a folder's weights are found by their known names, in order") {
  const test::TemporaryFolder folder;
  const std::string index = R"({"metadata": {"total_size": 1}, "weight_map": {"a": "FILE"}})";
  CHECK(found_files(folder) ==
        "has no weights: none of model.safetensors, model.safetensors.index.json, "
        "pytorch_model.bin, pytorch_model.bin.index.json, and no .safetensors, .pt, .pth, .ckpt or "
        ".bin");
  folder.write("one.bin", "");
  folder.write("pytorch_model.bin.index.json", test::replaced(index, "FILE", "one.bin"));
  CHECK(found_files(folder) == "one.bin");
  folder.write("pytorch_model.bin", "");
  CHECK(found_files(folder) == "pytorch_model.bin");
  folder.write("two.safetensors", "");
  folder.write("model.safetensors.index.json", test::replaced(index, "FILE", "two.safetensors"));
  CHECK(found_files(folder) == "two.safetensors");
  folder.write("config.json", "{}");
  folder.write("model.safetensors", "");
  CHECK(found_files(folder) == "model.safetensors + config");
  CHECK(found_files(folder, "one.bin") == "one.bin + config");
  CHECK(found_files(folder, "model.safetensors.index.json") == "two.safetensors + config");
  CHECK(found_files(folder, "absent") == "does not exist");
}

TEST_CASE("another file is taken where it is the only one") {
  const test::TemporaryFolder folder;
  folder.write("notes.txt", "");
  folder.write("resnet.pth", "");
  for (const char* const name : {"optimizer.pt", "scheduler.pt", "rng_state_0.pth", "scaler.pt",
                                 "training_args.bin", "trainer_state.json"}) {
    folder.write(name, "");
  }
  CHECK(found_files(folder) == "resnet.pth");
  folder.write("vit.safetensors", "");
  CHECK(found_files(folder) == "has 2 files of weights: resnet.pth, vit.safetensors");
}

TEST_CASE("a LoRA adapter is named, and a folder with the merged weights is taken") {
  const test::TemporaryFolder folder;
  folder.write("adapter_config.json", "{}");
  folder.write("adapter_model.safetensors", "");
  const char* const adapter = "is a LoRA adapter of PEFT, not the weights of a model";
  CHECK(found_files(folder) == adapter);
  CHECK(found_files(folder, "adapter_model.safetensors") == adapter);
  folder.write("model.safetensors", "");
  CHECK(found_files(folder) == "model.safetensors");
}

TEST_CASE("an index names files beside it") {
  const test::TemporaryFolder folder;
  const auto problem = [&](const std::string& text) {
    folder.write("model.safetensors.index.json", text);
    return found_files(folder);
  };
  folder.write("x.safetensors", "");
  folder.write("y.safetensors", "");
  CHECK(
      problem(
          R"({"weight_map": {"b": "y.safetensors", "a": "x.safetensors", "c": "x.safetensors"}})") ==
      "x.safetensors y.safetensors");
  CHECK(problem("{}") == "has no weight_map");
  CHECK(problem(R"({"weight_map": []})") == "has no weight_map");
  CHECK(problem(R"({"weight_map": {}})") == "has no weight_map");
  CHECK(problem(R"({"weight_map": {"a": "z.safetensors"}})") ==
        "names the file \"z.safetensors\", which is missing");
  const std::string outside = "says that \"a\" is in {}, which does not exist beside it";
  for (const char* const name : {"\"../x\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "3", "null"}) {
    CHECK(problem(fmt::format(R"({{"weight_map": {{"a": {}}}}})", name)) ==
          test::replaced(outside, "{}", name));
  }
}

TEST_CASE("the path of a run means the model of its newest complete checkpoint") {
  const test::TemporaryFolder folder;
  test::publish_sensible(folder.path / "run", 3);
  const auto newest = test::publish_sensible(folder.path / "run", 5);
  const std::string third = "run/checkpoints/step-00000003/model.safetensors";
  const std::string fifth = "run/checkpoints/step-00000005/model.safetensors";
  CHECK(found_files(folder, "run") == fifth);
  CHECK(found_files(folder, "run/checkpoints") == fifth);
  CHECK(found_files(folder, "run/checkpoints/step-00000003") == third);
  test::write_bytes(newest / "model.safetensors", "damaged");
  CHECK(found_files(folder, "run") == third);
  CHECK(found_files(folder, "run/checkpoints/step-00000005").starts_with("has 7 bytes"));
}

TEST_CASE("latest may be a file that holds the name, where there are no symbolic links") {
  const test::TemporaryFolder folder;
  test::publish_sensible(folder.path / "run", 3);
  folder.write("run/checkpoints/latest", "step-00000003\n");
  CHECK(found_files(folder, "run/checkpoints/latest") ==
        "run/checkpoints/step-00000003/model.safetensors");
}

TEST_CASE("a checkpoint with a mean of the weights is that mean, and its model has a name") {
  const test::TemporaryFolder folder;
  test::Sensible contents(3);
  contents.has_mean = true;
  test::publish(folder.path / "run", contents, 3);
  const std::string checkpoint = "run/checkpoints/step-00000003/";
  CHECK(found_files(folder, "run") == checkpoint + "ema.safetensors");
  CHECK(found_files(folder, checkpoint + "model.safetensors") == checkpoint + "model.safetensors");
}

TEST_CASE("a folder of somebody else may be called best or latest") {
  const test::TemporaryFolder folder;
  folder.write("best/model.safetensors", "");
  folder.write("latest/pytorch_model.bin", "");
  CHECK(found_files(folder, "best") == "best/model.safetensors");
  CHECK(found_files(folder, "latest") == "latest/pytorch_model.bin");
  folder.write("step-00000007/model.safetensors", "");
  CHECK(found_files(folder, "step-00000007").starts_with("has no manifest.json"));
}
