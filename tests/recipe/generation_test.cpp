#include "lib/recipe/generation.h"

#include <doctest/doctest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

namespace scaletrain::recipe {
namespace {

Generation asked(const std::string& words) {
  CLI::App command("test");
  Generation result;
  add_generation_flags(command, result);
  command.parse(words);
  return result;
}

}  // namespace

TEST_CASE("a checkpoint is enough, and every flag has its place") {
  const Generation plain = asked("runs/a");
  CHECK(plain.checkpoint == "runs/a");
  CHECK(plain.prompt.empty());
  CHECK(plain.temperature == 1);
  CHECK(plain.max_tokens == 256);

  const Generation all = asked(
      "runs/a --prompt 'In the' --max-tokens 5 --temperature 0 --top-k 3 --top-p 0.5 --seed 9 "
      "--tokenizer bytes --end-of-text E --device cpu --worker w");
  CHECK(all.prompt == "In the");
  CHECK(all.max_tokens == 5);
  CHECK(all.temperature == 0);
  CHECK(all.top_k == 3);
  CHECK(all.top_p == 0.5);
  CHECK(all.seed == 9);
  CHECK(all.tokenizer == "bytes");
  CHECK(all.end_of_text == "E");
  CHECK(all.device == "cpu");
  CHECK(all.worker == "w");
}

TEST_CASE("values out of range are refused") {
  for (const char* const words :
       {"", "a --temperature -1", "a --temperature nan", "a --top-k -1", "a --top-p 1.5",
        "a --max-tokens 0", "a --seed -3", "a --device tpu", "a --cold"}) {
    CAPTURE(words);
    CHECK_THROWS_AS(asked(words), CLI::ParseError);
  }
}

}  // namespace scaletrain::recipe
