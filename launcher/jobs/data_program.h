// Questions to scaletrain-data: what speaks to object stores is not linked here.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

struct DataQuestion {
  std::vector<std::string> arguments;  // of scaletrain-data
  std::string key;                     // of the recipe: the place of an error
  std::string place;                   // what is looked at, for messages
  std::string what;                    // "its checkpoints": what is looked at there
};

// What it prints. Its warnings are passed on. With a `recipe` it gets --recipe FILE. Throws
// core::Error of its status, and core::StoppedError for a signal that asks to stop meanwhile.
std::string ask_data_program(DataQuestion question, const recipe::Recipe* recipe = nullptr);

}  // namespace scaletrain::launcher
