// Every optimizer on every layout, with tied weights and without, in fp32, bf16 and fp64: the run
// saves, its checkpoint verifies, a resume on the same layout ends with the same bits, and one rank
// goes on from it; or the recipe is refused with the reason. A row that is added to
// lib/recipe/catalog/optimizers.def is tested by being there. SCALETRAIN_CELLS="100-149" runs these
// cells of the table alone, so that the long form can be divided.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/catalog/lists.h"
#include "tests/format/checkpoint_support.h"
#include "tests/long_form.h"
#include "tests/temporary_folder.h"
#include "tests/train/saved_runs_support.h"

namespace scaletrain::testing::optimizer_layouts_test {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 4, kCut = 2;
// Of losses: the first behind the cut, of the same weights, and those behind updates.
constexpr double kSameWeights = 1e-6, kUpdated = 1e-5;
constexpr double kRounded = 1e-2;  // with sums of bf16 products in another order

struct Layout {
  const char* name;
  int ranks;
  const char* parallel;
  bool has_experts = false;
  bool divides_tensors = false;  // so that an optimizer of whole tensors is refused
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {"pipeline 2", 2, R"({"pipeline": 2})"},
      {"expert 2", 2, R"({"expert": 2})", /*has_experts=*/true},
      {"pipeline 2 x shard 2", 4, R"({"pipeline": 2, "shard": 2})"},
      {"shard 2, optimizer", 2, R"({"shard": 2, "shard_level": "optimizer"})"},
      {"shard 2, gradients", 2, R"({"shard": 2, "shard_level": "gradients"})"},
      {"shard 2, parameters", 2, R"({"shard": 2})"},
      {"one rank", 1, "{}"},
      {"data parallel 2", 2, "{}"},
      {"replica 2 x pipeline 2", 4, R"({"pipeline": 2})"},
      {"pipeline 2 x context 2", 4, R"({"pipeline": 2, "context": 2})"},
      {"pipeline 2 x expert 2", 4, R"({"pipeline": 2, "expert": 2})", /*has_experts=*/true},
      {"pipeline 2 x shard 2, optimizer", 4,
       R"({"pipeline": 2, "shard": 2, "shard_level": "optimizer"})"},
  };
  return all;
}

// Axes that divide tensors or sequences; in the short form each is tested in all precisions.
const std::vector<Layout>& dividing_layouts() {
  static const std::vector<Layout> all{
      {"tensor 2", 2, R"({"tensor": 2})", /*has_experts=*/false, /*divides_tensors=*/true},
      {"context 2", 2, R"({"context": 2})"},
      {"expert 2 x shard 2", 2, R"({"expert": 2, "shard": 2})", /*has_experts=*/true,
       /*divides_tensors=*/true},
  };
  return all;
}

struct Cell {
  std::string optimizer;
  const Layout* layout;
  bool tied;
  bool centralized = false;  // so that any optimizer looks at whole tensors
  std::string precision = "fp32";

  std::string name() const {
    return fmt::format("{}, {}{}{}, {}", optimizer, layout->name, tied ? ", tied" : "",
                       centralized ? ", centralized" : "", precision);
  }
};

bool is_whole(const recipe::Row& row) { return row.has_rule(recipe::Rule::Kind::kWholeTensors); }

// Calls `visit` for each optimizer on each layout that `is_refused` says is refused or not.
void for_each_pair(bool is_refused, const auto& visit) {
  for (const recipe::Row& row : recipe::optimizers().rows) {
    for (const std::vector<Layout>* some : {&layouts(), &dividing_layouts()}) {
      for (const Layout& layout : *some) {
        if ((is_whole(row) && layout.divides_tensors) == is_refused) visit(row, layout);
      }
    }
  }
}

std::vector<Cell> all_cells() {
  std::vector<Cell> result;
  for_each_pair(/*is_refused=*/false, [&](const recipe::Row& row, const Layout& layout) {
    for (const bool tied : {false, true}) {
      for (const char* const precision : {"fp32", "bf16", "fp64"}) {
        result.push_back({row.name, &layout, tied, /*centralized=*/false, precision});
      }
    }
  });
  return result;
}

// Shows each dividing layout in each precision, and both on layouts whose stages share a tensor.
std::vector<Cell> cells_of_precisions() {
  const std::vector<Layout>& some = dividing_layouts();
  const Layout &tensor = some[0], &context = some[1], &expert = some[2];
  return {
      {"adamw", &tensor, /*tied=*/true, /*centralized=*/false, "fp32"},
      {"lion", &tensor, /*tied=*/false, /*centralized=*/false, "bf16"},
      {"schedule_free_adamw", &tensor, /*tied=*/false, /*centralized=*/false, "fp64"},
      {"muon", &context, /*tied=*/true, /*centralized=*/false, "fp32"},
      {"adamw_8bit", &context, /*tied=*/false, /*centralized=*/false, "bf16"},
      {"soap", &context, /*tied=*/false, /*centralized=*/false, "fp64"},
      {"rmsprop", &expert, /*tied=*/true, /*centralized=*/false, "fp32"},
      {"adam", &expert, /*tied=*/false, /*centralized=*/false, "bf16"},
      {"adagrad", &expert, /*tied=*/false, /*centralized=*/false, "fp64"},
      {"soap", &layouts()[0], /*tied=*/true, /*centralized=*/false, "bf16"},
      {"adafactor", &layouts()[2], /*tied=*/true, /*centralized=*/false, "fp64"},
  };
}

// In the short form each optimizer of whole tensors is on one of the first three layouts with tied
// weights and on one of the others, and every second of the rest on one of all.
std::vector<Cell> cells() {
  const std::vector<Layout>& all = layouts();
  std::vector<Cell> result = is_long_form() ? all_cells() : cells_of_precisions();
  constexpr std::size_t kPipelines = 3;
  std::size_t whole = 0, rest = 0;
  for (const recipe::Row& row : recipe::optimizers().rows) {
    if (is_long_form()) break;
    if (is_whole(row)) {
      const std::size_t other = kPipelines + whole % (all.size() - kPipelines);
      result.push_back({row.name, &all[whole % kPipelines], /*tied=*/true});
      result.push_back({row.name, &all[other], /*tied=*/false});
      ++whole;
    } else if (rest++ % 2 == 0) {
      result.push_back({row.name, &all[rest % all.size()], /*tied=*/rest % 4 == 1});
    }
  }
  result.push_back({"schedule_free_adamw", &all[5], /*tied=*/false, /*centralized=*/true});
  return result;
}

// Returns the cells that SCALETRAIN_CELLS="FIRST-LAST" names; all cells without it.
std::vector<Cell> asked_cells() {
  std::vector<Cell> all = cells();
  const char* const asked = std::getenv("SCALETRAIN_CELLS");
  if (asked == nullptr) return all;
  std::size_t first = 0, last = 0;
  REQUIRE_MESSAGE(std::sscanf(asked, "%zu-%zu", &first, &last) == 2, asked);
  REQUIRE_MESSAGE((first <= last && first < all.size()), "the table has ", all.size(), " cells");
  all.resize(std::min(all.size(), last + 1));
  return {all.begin() + static_cast<std::ptrdiff_t>(first), all.end()};
}

// With states in 8 bits and bases that change within the few steps.
std::string optimizer_change(const Cell& cell) {
  const std::string& name = cell.optimizer;
  const bool is_coded = name.ends_with("_8bit");
  return fmt::format(R"(optimizer={{"name": "{}", "lr": 0.01, "centralize_gradients": {}{}}})",
                     name, cell.centralized,
                     is_coded         ? R"(, "min_8bit_size": 64)"
                     : name == "soap" ? R"(, "frequency": 2)"
                                      : "");
}

std::string model_change(const Cell& cell) {
  return fmt::format(
      R"(model={{"name": "{}", "vocab_size": 52, "positions": 8, "dim": 16, "depth": 2, "heads": 4,
                 "kv_heads": 4, "hidden": 24, "tied": {}{}}})",
      cell.layout->has_experts ? "mixtral" : "llama", cell.tied,
      cell.layout->has_experts ? R"(, "experts": 4, "router_aux_loss": 0)" : "");
}

class Table {
 public:
  Table()
      : runs_({fmt::format("steps={}", kSteps), "data.train=null", "data.val=null",
               "data.context=8", tokens("data.train", "train.bin"), tokens("data.val", "val.bin"),
               R"(batch={"global": 8, "per_device": 1})", R"(log.every={"steps": 1})",
               fmt::format(R"(validate.every={{"steps": {}}})", kSteps),
               fmt::format(
                   R"(checkpoint={{"every": {{"steps": {}}}, "keep_last": 9, "keep_best": 0}})",
                   kCut)}) {
    for (const auto& [name, count] : {std::pair("train.bin", 1000), std::pair("val.bin", 130)}) {
      std::ofstream file(folder_.file(name), std::ios::binary);  // tokens of 2 bytes
      for (int i = 0; i < count; ++i) file << static_cast<char>((i * i + i / 7) % 50) << '\0';
    }
  }

  // What is wrong with a cell; "" for nothing.
  std::string fault_of(const Cell& cell) const {
    const std::string name = cell.name(), again = name + ", resumed", alone = name + ", alone";
    std::string fault = run(cell, name, cell.layout->parallel, cell.layout->ranks);
    if (!fault.empty()) return fault;
    const fs::path cut = runs_.saved(name, kCut);
    fault = said_apart([&]() -> std::string {
      format::check_checkpoint(cut);
      return "";
    });
    if (!fault.empty()) return fault;
    fault = run(cell, again, cell.layout->parallel, cell.layout->ranks, cut);
    if (!fault.empty()) return fault;
    if (runs_.bytes(again, kSteps) != runs_.bytes(name, kSteps)) fault = "other bits of a resume";
    if (cell.layout->ranks > 1) {
      fault += run(cell, alone, "{}", 1, cut);
      if (fault.empty()) fault = apart(cell, alone, name);
    }
    for (const std::string& output : {name, again, alone}) fs::remove_all(runs_.path(output));
    return fault;
  }

  // Returns what the checks of recipes say of a cell; "" where they accept it.
  std::string refusal(const Cell& cell) const {
    return test::message_of<core::RecipeError>(
        [&] { recipe(cell, cell.name(), cell.layout->parallel); });
  }

 private:
  recipe::Recipe recipe(const Cell& cell, const std::string& output, const char* parallel) const {
    return runs_.recipe(output,
                        {model_change(cell), optimizer_change(cell), "precision=" + cell.precision,
                         std::string("parallel=") + parallel});
  }

  std::string tokens(const char* set, const char* file) const {
    return fmt::format(R"({}={{"tokens": "{}"}})", set, folder_.file(file));
  }

  std::string run(const Cell& cell, const std::string& output, const char* parallel, int ranks,
                  const std::optional<fs::path>& resume = {}) const {
    const recipe::Recipe asked = recipe(cell, output, parallel);
    const std::string ended = SavedRuns::run(asked, {.ranks = ranks}, resume)[0].text;
    return ended.starts_with(fmt::format("code 0 after step {}", kSteps)) ? "" : ended;
  }

  // Compares the losses behind the cut; "" where they are near.
  std::string apart(const Cell& cell, const std::string& alone, const std::string& name) const {
    const std::vector<double> found = runs_.course(alone).losses;
    const std::vector<double> expected = runs_.course(name).losses;
    constexpr auto kCount = static_cast<std::size_t>(kSteps - kCut);
    if (found.size() < kCount || expected.size() < kCount) return "losses are missing";
    const auto last = [](const std::vector<double>& all) {
      return std::vector<double>(all.end() - (kSteps - kCut), all.end());
    };
    const std::vector<double> a = last(found), b = last(expected);
    const double first = largest_apart({a.front()}, {b.front()}), all = largest_apart(a, b);
    const bool is_rounded = cell.precision == "bf16";
    if (first <= (is_rounded ? kRounded : kSameWeights) &&
        all <= (is_rounded ? kRounded : kUpdated)) {
      return "";
    }
    return fmt::format("losses on one rank off by {:.1e}, then {:.1e}", first, all);
  }

  test::TemporaryFolder folder_;
  SavedRuns runs_;
};

}  // namespace

TEST_CASE("every optimizer saves and resumes on every layout, with tied weights too") {
  const Table table;
  for (const Cell& cell : asked_cells()) {
    CAPTURE(cell.name());
    CHECK(table.fault_of(cell) == "");
  }
}

TEST_CASE("an optimizer of whole tensors is refused where tensors are divided, with the reason") {
  const Table table;
  for_each_pair(/*is_refused=*/true, [&](const recipe::Row& row, const Layout& layout) {
    const Cell cell{row.name, &layout, /*tied=*/false};
    CAPTURE(cell.name());
    CHECK(table.refusal(cell).find("needs full tensors") != std::string::npos);
  });
}

}  // namespace scaletrain::testing::optimizer_layouts_test
