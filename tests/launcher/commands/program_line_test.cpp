#include "launcher/commands/program_line.h"

#include <doctest/doctest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>

#include "launcher/flags/launch_options.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using Words = std::vector<std::string>;

// What is left of the words, "|", and the program.
Words cut(Words words) {
  LaunchOptions options;
  CLI::App launch;
  add_launch_flags(launch, options);
  add_program_flags(launch, options);
  setenv("PYTHON_EXEC", "/the/python", 1);
  const std::optional<Words> program = cut_program(words, launch);
  unsetenv("PYTHON_EXEC");
  words.emplace_back(program ? "|" : "no program");
  if (program) words.insert(words.end(), program->begin(), program->end());
  return words;
}

TEST_CASE("what follows -- is a program") {
  CHECK(cut({"launch", "--nproc", "2", "--", "sh", "-c", "x -- y"}) ==
        Words{"launch", "--nproc", "2", "|", "sh", "-c", "x -- y"});
  CHECK(cut({"launch", "--"}) == Words{"launch", "|"});
}

TEST_CASE("a recipe is no program, and flags may follow it") {
  CHECK(cut({"launch", "recipe.json", "--nproc", "2"}) ==
        Words{"launch", "recipe.json", "--nproc", "2", "no program"});
}

TEST_CASE("a Python script begins a program, as under torchrun") {
  CHECK(cut({"launch", "--nproc", "2", "train.py", "--lr", "3", "--", "x"}) ==
        Words{"launch", "--nproc", "2", "|", "/the/python", "-u", "train.py", "--lr", "3", "--",
              "x"});
  // A value is no script.
  CHECK(cut({"launch", "--role", "a.py", "recipe.json"}) ==
        Words{"launch", "--role", "a.py", "recipe.json", "no program"});
  CHECK(cut({"launch", "-r", "3", "-t3", "--tee=1", "--standalone", "train.py"}) ==
        Words{"launch", "-r", "3", "-t3", "--tee=1", "--standalone", "|", "/the/python", "-u",
              "train.py"});
}

TEST_CASE("a module and a plain program are named by their flags") {
  CHECK(cut({"launch", "-m", "pkg.train", "--lr", "3"}) ==
        Words{"launch", "-m", "|", "/the/python", "-u", "-m", "pkg.train", "--lr", "3"});
  CHECK(cut({"launch", "--no-python", "/bin/true", "x"}) ==
        Words{"launch", "--no-python", "|", "/bin/true", "x"});
  CHECK_THROWS_WITH(cut({"launch", "--no-python", "-m", "pkg"}),
                    "--no-python: and --module exclude each other\n"
                    "  give one: a module is run by Python");
}

TEST_CASE("--run-path runs a script of any name by runpy, and wins over --no-python") {
  for (const Words& flags : {Words{"--run-path"}, Words{"--run_path", "--no-python"}}) {
    Words words{"launch"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"/the/script", "x"});
    Words found = cut(words);
    REQUIRE(found.size() == 8 + flags.size());
    CHECK(found[found.size() - 3].find("runpy.run_path") != std::string::npos);
    found.erase(found.end() - 3);
    Words expected{"launch"};
    expected.insert(expected.end(), flags.begin(), flags.end());
    expected.insert(expected.end(), {"|", "/the/python", "-u", "-c", "/the/script", "x"});
    CHECK(found == expected);
  }
}

TEST_CASE("PET_MODULE, PET_NO_PYTHON and PET_RUN_PATH stand for their flags, 1 or 0") {
  const auto with = [](const char* variable, const char* value) {
    setenv(variable, value, 1);
    Words result;
    try {
      result = cut({"launch", "pkg", "x"});
    } catch (const core::UsageError& error) {
      result = {error.what()};
    }
    unsetenv(variable);
    return result;
  };
  CHECK(with("PET_MODULE", "1") == Words{"launch", "|", "/the/python", "-u", "-m", "pkg", "x"});
  CHECK(with("PET_NO_PYTHON", "1") == Words{"launch", "|", "pkg", "x"});
  CHECK(with("PET_RUN_PATH", "1").size() == 8);
  CHECK(with("PET_MODULE", "0") == Words{"launch", "pkg", "x", "no program"});
  CHECK(with("PET_MODULE", "") == Words{"launch", "pkg", "x", "no program"});
  CHECK(with("PET_MODULE", "yes") == Words{"PET_MODULE: is \"yes\"\n  set it to 0 or 1"});
}

}  // namespace
}  // namespace scaletrain::launcher
