// Runs queries in scaletrain-data: the launcher does not link the code for object stores.
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

// Returns the program's output and passes its warnings on. A `recipe` is given as --recipe FILE.
// Throws core::Error with its exit status, and core::StoppedError for a stop signal.
std::string ask_data_program(DataQuestion question, const recipe::Recipe* recipe = nullptr);

}  // namespace scaletrain::launcher
