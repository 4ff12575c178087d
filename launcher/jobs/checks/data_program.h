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
  std::vector<std::string> arguments;  // passed to scaletrain-data
  std::string key;                     // recipe key: the place of an error
  std::string place;                   // the place examined, for messages
  std::string what;                    // "its checkpoints": the subject examined there
};

// Returns the program's output; passes warnings on. A `recipe` is given as --recipe FILE. Throws
// core::Error of its status, and core::StoppedError for a signal that asks to stop meanwhile.
std::string ask_data_program(DataQuestion question, const recipe::Recipe* recipe = nullptr);

}  // namespace scaletrain::launcher
