#include "lib/recipe/weights_flag.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace scaletrain::recipe {

void add_weights_flag(CLI::App& command, std::string& weights) {
  command
      .add_option("--weights", weights,
                  "the trained ones (model) or their running mean (ema); the mean where the "
                  "checkpoint has one")
      ->check(CLI::IsMember({"ema", "model"}));
}

}  // namespace scaletrain::recipe
