#include "launcher/agents/journal.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("every event is a line, after what was there before") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path / "agents" / "a.jsonl";
  Journal(file, "a").write("lead", {{"generation", 1}});
  Journal(file, "a").write("leave");
  std::ifstream text(file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["event"] == "lead");
  CHECK(lines[0]["agent"] == "a");
  CHECK(lines[0]["generation"] == 1);
  CHECK(lines[1]["event"] == "leave");
  CHECK(lines[1]["time"].get<double>() >= lines[0]["time"].get<double>());
}

TEST_CASE("a journal that cannot be written is no error") {
  Journal("/proc/no/such/file", "a").write("lead");
  Journal().write("lead");
}

}  // namespace
}  // namespace scaletrain::launcher
