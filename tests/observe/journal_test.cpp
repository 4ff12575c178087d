#include "lib/observe/journal.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/observe/observe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::ifstream text(file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST_CASE("an event is one line with its attempt first and its time last") {
  CHECK(
      journal_line("step_skipped", 2, {{"step", 7}, {"cause", "not finite: loss nan"}}, 1.5) ==
      R"({"event":"step_skipped","attempt":2,"step":7,"cause":"not finite: loss nan","time":1.5})");
}

TEST_CASE("a field that is null is left out, and a cause of several lines stays one line") {
  CHECK(journal_line("attempt_failed", 0, {{"step", nullptr}, {"cause", "a\nb"}}, 2) ==
        R"({"event":"attempt_failed","attempt":0,"cause":"a\nb","time":2.0})");
}

TEST_CASE("two writers of one journal append in turn") {
  const test::TemporaryFolder folder;
  RunJournal launcher(folder.path), rank_0(folder.path);
  launcher.write("attempt_started", 0, {{"ranks", 2}});
  rank_0.write("checkpoint_saved", 0, {{"step", 4}});
  launcher.write("attempt_failed", 0, {{"rank", 1}});
  const std::vector<nlohmann::json> lines = lines_of(folder.path / "journal.jsonl");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["event"] == "attempt_started");
  CHECK(lines[1]["event"] == "checkpoint_saved");
  CHECK(lines[2]["event"] == "attempt_failed");
  CHECK(lines[2]["time"].get<double>() >= lines[0]["time"].get<double>());
}

TEST_CASE("a line that a killed process left incomplete is ended before the next event") {
  const test::TemporaryFolder folder;
  RunJournal journal(folder.path);
  write_text(folder.path / "journal.jsonl", R"({"event":"ch)");
  journal.write("finished", 1, {{"step", 9}});
  CHECK(read_text(folder.path / "journal.jsonl").starts_with("{\"event\":\"ch\n{\"event\":\"fin"));
}

TEST_CASE("a journal that cannot be written is a warning once and is counted") {
  const CapturedStderr captured;
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path / "journal.jsonl");
  const auto housekeeping = std::make_shared<core::Housekeeping>();
  RunJournal journal(folder.path, housekeeping);
  journal.write("finished", 0, {{"step", 9}});
  journal.write("finished", 0, {{"step", 9}});
  CHECK(housekeeping->failures() > 0);
  CHECK(captured.text() == "warning: " + (folder.path / "journal.jsonl").string() +
                               ": Is a directory (EISDIR); training goes on without the lines "
                               "that cannot be written\n");
}

}  // namespace
}  // namespace scaletrain::observe
