#include "tests/parity/commands.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::parity {
namespace {

struct Outcome {
  int status = 0;
  std::string error;
};

Outcome outcome_of(Command run, const std::vector<std::string>& words) {
  try {
    run(words);
    return {};
  } catch (const std::exception& error) {
    return {.status = static_cast<int>(core::exit_code_of(error)), .error = core::describe(error)};
  }
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
  return words;
}

}  // namespace

int run_commands(int argc, char** argv, Command run) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments != std::vector<std::string>{"serve"}) {
    const Outcome outcome = outcome_of(run, arguments);
    if (outcome.status != 0) fmt::print(stderr, "{}\n", outcome.error);
    return outcome.status;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const Outcome outcome = outcome_of(run, words_of(line));
    fmt::print("\x1f {} {}\n{}", outcome.status, outcome.error.size(), outcome.error);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace scaletrain::parity
