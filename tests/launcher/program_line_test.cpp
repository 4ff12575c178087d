#include "launcher/program_line.h"

#include <doctest/doctest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>

#include "launcher/launch_options.h"

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
}

}  // namespace
}  // namespace scaletrain::launcher
