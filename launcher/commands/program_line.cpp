#include "launcher/commands/program_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

std::string python() {
  const char* const asked = std::getenv("PYTHON_EXEC");
  if (asked != nullptr && *asked != '\0') return asked;
  for (const char* name : {"python", "python3"}) {
    if (core::find_program(name)) return name;
  }
  throw core::UsageError("launch", "there is no python on PATH to run the script",
                         "activate its environment, or name it: PYTHON_EXEC=/path/to/python");
}

// True if a variable enables its flag: 1, not 0.
bool is_on(const char* variable) {
  const char* const value = std::getenv(variable);
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  throw core::UsageError(variable, fmt::format("is \"{}\"", core::printable(text)),
                         "set it to 0 or 1");
}

// Implements torchrun's --run-path: the script runs as __main__ without its folder on Python's
// path, and an exception that ends it goes to the error file.
constexpr const char* kRunPath = R"(import json, os, runpy, sys, time, traceback
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except Exception as error:
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if file and not os.path.exists(file):
        extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
        message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
        with open(file, "w") as out:
            json.dump({"message": message}, out)
    raise
)";

// True if the flag takes the next word as its value.
bool takes_next_word(const CLI::App& launch, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  const bool is_short = !word.starts_with("--");
  const CLI::Option* const option = launch.get_option_no_throw(is_short ? word.substr(0, 2) : word);
  if (option == nullptr || option->get_items_expected_max() == 0) return false;
  return !is_short || word.size() == 2;  // not -r3
}

std::vector<std::string> cut_from(std::vector<std::string>& words, std::size_t first) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<std::string> result(begin, words.end());
  words.erase(begin, words.end());
  return result;
}

}  // namespace

std::optional<std::vector<std::string>> cut_program(std::vector<std::string>& words,
                                                    const CLI::App& launch) {
  bool is_module = is_on("PET_MODULE"), is_plain = is_on("PET_NO_PYTHON");
  bool is_path = is_on("PET_RUN_PATH");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      std::vector<std::string> program = cut_from(words, i + 1);
      words.pop_back();
      return program;
    }
    if (word == "-m" || word == "--module") is_module = true;
    if (word == "--no-python" || word == "--no_python") is_plain = true;
    if (word == "--run-path" || word == "--run_path") is_path = true;
    if (word.starts_with("-")) {
      if (takes_next_word(launch, word)) ++i;
      continue;
    }
    if (!is_module && !is_plain && !is_path && !word.ends_with(".py")) continue;
    if (is_module && is_plain && !is_path) {
      throw core::UsageError("--no-python", "and --module exclude each other",
                             "give one: a module is run by Python");
    }
    std::vector<std::string> program = cut_from(words, i);
    if (is_plain && !is_path) return program;
    std::vector<std::string> start{python(), "-u"};
    if (is_path) {
      start.insert(start.end(), {"-c", kRunPath});
    } else if (is_module) {
      start.emplace_back("-m");
    }
    program.insert(program.begin(), start.begin(), start.end());
    return program;
  }
  return std::nullopt;
}

}  // namespace scaletrain::launcher
