#include "launcher/commands/explain/recipe_rows.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

TEST_CASE("every key has its origin; a text that stands for an object wrote one key of it") {
  const std::vector<Explained> rows = recipe_rows(
      R"({"model": {"name": "mlp", "hidden": 256}, "schedule": {"decay": {"name": "cosine",
          "final": 0}}, "shards": ["a", "b"], "lr": 0.5})",
      {{"/model", "r.json:2"},
       {"/schedule", "r.json:3"},
       {"/shards", "base.json:9"},
       {"/lr", "--set lr"}});
  std::string text;
  for (const Explained& row : rows) text += row.name + " " + row.value + " " + row.from + "\n";
  CHECK(text ==
        "model.name mlp r.json:2\n"
        "model.hidden 256 default\n"
        "schedule.decay.name cosine r.json:3\n"
        "schedule.decay.final 0 default\n"
        "shards [\"a\",\"b\"] base.json:9\n"
        "lr 0.5 --set lr\n");
}

TEST_CASE("the table cuts long values, the JSON does not") {
  const Explanation explanation{.launch = {{"nproc", "2", "--nproc"}},
                                .recipe = {},
                                .worker = {{"A", std::string(100, 'x'), "default"}},
                                .notes = {"one"}};
  CHECK(to_text(explanation) ==
        "launch\n"
        "  nproc  2  --nproc\n"
        "variables of the first worker here\n"
        "  A  " +
            std::string(57, 'x') +
            "...  default\n"
            "note: one\n");
  CHECK(to_json(explanation).find(std::string(100, 'x')) != std::string::npos);
}

}  // namespace
}  // namespace scaletrain::launcher
