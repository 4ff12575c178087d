#include "lib/recipe/weights_flag.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace scaletrain::recipe {

TEST_CASE("a command takes the model, its mean, or the one there is") {
  const auto weights = [](const std::string& words) {
    CLI::App command("test");
    std::string result;
    add_weights_flag(command, result);
    command.parse(words);
    return result;
  };
  CHECK(weights("").empty());
  CHECK(weights("--weights ema") == "ema");
  CHECK(weights("--weights model") == "model");
  CHECK(weights("--weights swa") == "swa");
  CHECK(weights("--weights ema:0.999") == "ema:0.999");
  for (const char* const wrong : {"mean", "ema:", "ema:1", "ema:-0.5", "ema:fast"}) {
    CHECK_THROWS(weights(fmt::format("--weights {}", wrong)));
  }
}

}  // namespace scaletrain::recipe
