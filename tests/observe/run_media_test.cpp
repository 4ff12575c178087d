#include "lib/observe/run_media.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

std::vector<nlohmann::json> media_lines(const std::string& text) {
  std::vector<nlohmann::json> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) found.push_back(nlohmann::json::parse(line));
  return found;
}

}  // namespace

TEST_CASE("a picture is a file and a line of the index") {
  const test::TemporaryFolder folder;
  RunMedia media(folder.path, 2, std::make_shared<core::Housekeeping>());
  media.write({.name = "train/batch", .step = 1, .columns = 4, .captions = {"cat", "dog"}}, "png");
  CHECK(folder.read("media/step-00000001-train-batch.png") == "png");
  const auto lines = media_lines(folder.read("media/index.jsonl"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("file") == "step-00000001-train-batch.png");
  CHECK(lines[0].at("attempt") == 2);
  CHECK(lines[0].at("columns") == 4);
  CHECK(lines[0].at("captions").size() == 2);
  CHECK(lines[0].at("time").is_number());
}

TEST_CASE("the newest pictures of a name are kept") {
  const test::TemporaryFolder folder;
  RunMedia media(folder.path, 0, std::make_shared<core::Housekeeping>());
  media.write({.name = "train/batch", .step = 1, .captions = {}}, "png");
  const auto count = static_cast<std::int64_t>(RunMedia::kKeptPictures);
  for (std::int64_t step = 1; step <= count + 1; ++step) {
    media.write({.name = "val/worst", .step = step, .captions = {}}, "png");
  }
  const auto is_there = [&](const char* file) {
    return std::filesystem::exists(folder.path / "media" / file);
  };
  CHECK(is_there("step-00000001-train-batch.png"));
  CHECK_FALSE(is_there("step-00000001-val-worst.png"));
  CHECK(is_there("step-00000002-val-worst.png"));
}

TEST_CASE("the histograms of a step are one line") {
  const test::TemporaryFolder folder;
  RunMedia media(folder.path, 0, std::make_shared<core::Housekeeping>());
  media.write(100, {{.name = "weights/w", .min = -1, .max = 1, .sum = 0.5, .counts = {2, 0, 1}}});
  const auto lines = media_lines(folder.read("histograms.jsonl"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("step") == 100);
  CHECK(lines[0].at("histograms").at("weights/w").at("counts") == nlohmann::json({2, 0, 1}));
}

TEST_CASE("a picture that cannot be written is a warning and has no line") {
  const test::TemporaryFolder folder;
  folder.write("media", "a file in the place of the folder");
  const auto housekeeping = std::make_shared<core::Housekeeping>();
  RunMedia media(folder.path, 0, housekeeping);
  media.write({.name = "val/worst", .step = 1, .captions = {}}, "png");
  CHECK(housekeeping->failures() == 1);
}

}  // namespace scaletrain::observe
