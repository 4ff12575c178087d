#include "lib/recipe/weights_flag.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <string_view>
#include <system_error>

#include "lib/core/printable.h"

namespace scaletrain::recipe {
namespace {

// Returns what is wrong with the name; "" if nothing is.
std::string mistake_in(const std::string& name) {
  constexpr std::string_view kEmaOf = "ema:";
  if (name == "model" || name == "ema" || name == "swa") return "";
  if (name.starts_with(kEmaOf)) {
    double decay = -1;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kEmaOf.size(), end, decay);
    if (read.ec == std::errc() && read.ptr == end && decay >= 0 && decay < 1) return "";
  }
  return fmt::format("{} is not model, ema, ema:DECAY such as ema:0.999, or swa",
                     core::printable(name));
}

}  // namespace

void add_weights_flag(CLI::App& command, std::string& weights) {
  command
      .add_option("--weights", weights,
                  "Weights to use: the trained ones (model), the EMA weights (ema, or ema:DECAY if "
                  "there are several), or the SWA weights (swa). Default: EMA or SWA weights if "
                  "the checkpoint has them.")
      ->check(CLI::Validator(mistake_in, "model|ema|ema:DECAY|swa"));
}

}  // namespace scaletrain::recipe
