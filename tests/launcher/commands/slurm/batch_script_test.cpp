#include "launcher/commands/slurm/batch_script.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

std::string script_error(const std::string& value) {
  try {
    batch_script({{"account", value}});
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

// The script less its #SBATCH lines, and those.
std::pair<std::string, std::vector<std::string>> parts(const std::string& script) {
  std::pair<std::string, std::vector<std::string>> result;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t end = script.find('\n', begin) + 1;
    const std::string line = script.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("#SBATCH ")) {
      result.second.push_back(line);
    } else {
      result.first += line;
    }
  }
  return result;
}

TEST_CASE("a value is one word of its line, in quotes where it has to be") {
  CHECK(parts(batch_script({{"signal", "USR2@120"}})).second[0] == "#SBATCH --signal=USR2@120\n");
  const auto [body, lines] = parts(batch_script(
      {{"job-name", "it's a\\b"}, {"requeue", std::nullopt}, {"comment", "$(x) `y` #"}}));
  CHECK(lines == std::vector<std::string>{"#SBATCH --job-name='it\\'s a\\\\b'\n",
                                          "#SBATCH --requeue\n",
                                          "#SBATCH --comment='$(x) `y` #'\n"});
  CHECK(body == batch_script({}));
}

TEST_CASE("what would leave its line is refused") {
  CHECK(script_error("a\ntouch b") ==
        "--account: \"a\\ntouch b\" holds a control character\n"
        "  leave it out: it would end or change the line of the script");
  CHECK(script_error("") == "--account: is empty\n  give a value, or leave it out");
  CHECK(script_error(std::string(1001, 'x')) ==
        "--account: has 1001 bytes\n  give 1,000 bytes at most: sbatch cuts longer lines");
  CHECK(script_error(std::string(1000, 'x')) == "no error");
  CHECK(script_error("\xc3\xa9\xe2\x80\xa8") == "no error");  // UTF-8, a line separator too
}

TEST_CASE("10,000 hostile values change their own line and nothing else") {
  const std::string empty = batch_script({});
  const std::string letters = "ab '\"\\$`(){};&|<>#!*?~%=\t\r\n\x1b\x7f\xc2\x85\xff-";
  std::mt19937 random(42);
  int written = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string value(1 + random() % 20, ' ');
    for (char& byte : value) byte = letters[random() % letters.size()];
    std::string script;
    try {
      script = batch_script({{"job-name", value}});
    } catch (const core::UsageError&) {
      continue;
    }
    ++written;
    const auto [body, lines] = parts(script);
    CHECK(body == empty);
    REQUIRE(lines.size() == 1);
  }
  CHECK(written > 1000);
  CHECK(written < 10'000);
}

}  // namespace
}  // namespace scaletrain::launcher
