#include "launcher/commands/shell/candidates.h"

#include <algorithm>
#include <map>

#include "launcher/commands/shell/run_paths.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

// Values that are words.
const std::map<std::string, std::vector<std::string>>& words_of_flags() {
  static const std::map<std::string, std::vector<std::string>> result{
      {"--nproc", {"auto", "gpu", "cpu"}},
      {"--nproc-per-node", {"auto", "gpu", "cpu"}},
      {"--rdzv-backend", {"static", "c10d"}},
      {"--event-log-handler", {"null", "console"}},
      {"--start-method", {"spawn", "fork", "forkserver"}},
      {"--numa-binding", {"node", "socket", "exclusive", "core-complex"}},
      {"--redirects", {"0", "1", "2", "3"}},
      {"--tee", {"0", "1", "2", "3"}},
      {"--kind", {"indexed-job", "jobset", "pytorchjob"}},
      {"--weights", {"model", "ema", "swa"}},
      {"--on", {"val", "test"}},
      {"--resume", {"auto"}},
      {"--table", {"text", "csv", "json"}},
      {"--devices", {"cpu"}},
      {"SHELL", {"bash", "zsh", "fish"}}};
  return result;
}

void add_matching(const std::string& word, const std::string& help, const std::string& typed,
                  std::vector<CompletionWord>& result) {
  // The first sentence of a help is enough in a list.
  if (!word.starts_with(typed)) return;
  const std::size_t end = std::min(help.find_first_of(";\n"), help.find(". "));
  result.push_back({word, help.substr(0, end)});
}

// "optimizer.lr=", with the help of the key; after "=" the values of the key.
std::vector<CompletionWord> keys(const std::string& typed) {
  std::vector<CompletionWord> result;
  const std::size_t equals = typed.find('=');
  if (equals != std::string::npos) {
    for (const auto& [value, help] : recipe::values_of_key(typed.substr(0, equals))) {
      add_matching(typed.substr(0, equals + 1) + value, help, typed, result);
    }
    return result;
  }
  for (const auto& [key, help] : recipe::settable_keys()) {
    add_matching(key + "=", help, typed, result);
  }
  return result;
}

std::vector<CompletionWord> key_names(const std::string& typed) {
  std::vector<CompletionWord> result;
  for (const auto& [key, help] : recipe::settable_keys()) add_matching(key, help, typed, result);
  return result;
}

std::vector<CompletionWord> values_of(const core::Flag& flag, const std::string& typed) {
  std::vector<CompletionWord> result;
  for (const std::string& word : flag.allowed) add_matching(word, "", typed, result);
  if (!result.empty()) return result;
  for (const std::string& name : flag.names) {
    if (name == "--set" || name == "AXIS") return keys(typed);
    if (name == "--allow") return key_names(typed);
    if (name == "--precision") {
      for (const auto& [value, help] : recipe::values_of_key("precision")) {
        add_matching(value, help, typed, result);
      }
    }
    const auto found = words_of_flags().find(name);
    if (found == words_of_flags().end()) continue;
    for (const std::string& word : found->second) add_matching(word, "", typed, result);
    break;
  }
  if (flag.value == "RUN" || flag.value == "CHECKPOINT") {
    for (const std::string& path : run_paths(typed, flag.value == "CHECKPOINT")) {
      add_matching(path, "", typed, result);
    }
  }
  return result;
}

struct Cursor {
  const core::Command* command;
  const core::Flag* open_flag = nullptr;  // the last complete word is a flag that takes a value
  bool in_program = false;                // after --
};

Cursor follow(const core::Command& table, const std::vector<std::string>& words) {
  Cursor cursor{.command = &table};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (cursor.open_flag != nullptr) {
      cursor.open_flag = nullptr;
      continue;
    }
    if (i == 0 && words[i] == "help") continue;  // commands follow
    if (words[i] == "--") cursor.in_program = true;
    if (words[i].starts_with("-")) {
      const core::Flag* const flag = cursor.command->find_flag(words[i]);
      if (flag != nullptr && flag->takes_value) cursor.open_flag = flag;
    } else if (const core::Command* const below = cursor.command->find(words[i])) {
      cursor.command = below;
    }
  }
  return cursor;
}

}  // namespace

std::vector<CompletionWord> candidates(const core::Command& table,
                                       const std::vector<std::string>& words) {
  const std::string typed = words.empty() ? "" : words.back();
  const Cursor cursor = follow(table, words);
  std::vector<CompletionWord> result;
  if (cursor.in_program) return result;
  if (cursor.open_flag != nullptr) return values_of(*cursor.open_flag, typed);
  const std::size_t equals = typed.find('=');
  if (typed.starts_with("--") && equals != std::string::npos) {
    const core::Flag* const flag = cursor.command->find_flag(typed.substr(0, equals));
    if (flag == nullptr) return result;
    for (CompletionWord& value : values_of(*flag, typed.substr(equals + 1))) {
      result.push_back({typed.substr(0, equals + 1) + value.word, value.help});
    }
    return result;
  }
  if (typed.starts_with("-")) {
    for (const core::Flag& flag : cursor.command->flags) {
      for (const std::string& name : flag.names) {
        if (name.starts_with("--")) add_matching(name, flag.help, typed, result);
      }
    }
    return result;
  }
  for (const core::Command& below : cursor.command->commands) {
    add_matching(below.name, below.help, typed, result);
  }
  for (const core::Flag& flag : cursor.command->flags) {
    if (!flag.is_positional()) continue;
    for (CompletionWord& value : values_of(flag, typed)) result.push_back(std::move(value));
  }
  return result;
}

}  // namespace scaletrain::launcher
