#include "launcher/commands/queue/hand_over.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using SplitWords = std::vector<std::string>;

TEST_CASE("words are cut as a shell cuts them") {
  CHECK(split_words("").empty());
  CHECK(split_words(" --nodes  2\t--time 1:00 ") == SplitWords{"--nodes", "2", "--time", "1:00"});
  CHECK(split_words(R"(--name 'my  "run"' --x="it's" '' a\ b)") ==
        SplitWords{"--name", "my  \"run\"", "--x=it's", "", "a b"});
  CHECK(split_words(R"('a\b' "c\"d" e\\f)") == SplitWords{"a\\b", "c\"d", "e\\f"});
  CHECK(split_words("$HOME `x` ;") == SplitWords{"$HOME", "`x`", ";"});
}

TEST_CASE("a quote that is not closed is refused") {
  CHECK_THROWS_WITH_AS(split_words("--name 'my run"),
                       "--slurm: a quote is not closed\n"
                       "  quote as in a shell: --slurm=\"--job-name 'my run'\"",
                       core::UsageError);
}

}  // namespace
}  // namespace scaletrain::launcher
