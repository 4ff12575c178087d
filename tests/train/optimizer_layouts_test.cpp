// Every optimizer on every layout, with tied weights and without: the run saves, its checkpoint
// verifies, a resume on the same layout ends with the same bits, and one rank goes on from it. A
// row that is added to lib/recipe/optimizers.def is tested by being there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/checkpoint_folder.h"
#include "lib/recipe/lists.h"
#include "tests/long_form.h"
#include "tests/temporary_folder.h"
#include "tests/train/saved_runs_support.h"

namespace scaletrain::testing::optimizer_layouts_test {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 4, kCut = 2;
// Of losses: the first behind the cut, of the same weights, and those behind updates.
constexpr double kSameWeights = 1e-6, kUpdated = 1e-5;

struct Layout {
  const char* name;
  int ranks;
  const char* parallel;
  bool has_experts = false;
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

struct Cell {
  std::string optimizer;
  const Layout* layout;
  bool tied;
  bool centralized = false;  // so that any optimizer looks at whole tensors

  std::string name() const {
    return fmt::format("{}, {}{}{}", optimizer, layout->name, tied ? ", tied" : "",
                       centralized ? ", centralized" : "");
  }
};

// In the short form each optimizer of whole tensors is on one of the first three layouts with tied
// weights and on one of the others, and every second of the rest on one of all.
std::vector<Cell> cells() {
  std::vector<Cell> result;
  const std::vector<Layout>& all = layouts();
  constexpr std::size_t kPipelines = 3;
  std::size_t whole = 0, rest = 0;
  for (const recipe::Row& row : recipe::optimizers().rows) {
    if (is_long_form()) {
      for (const Layout& layout : all) {
        for (const bool tied : {false, true}) result.push_back({row.name, &layout, tied});
      }
    } else if (row.has_rule(recipe::Rule::Kind::kWholeTensors)) {
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
      if (fault.empty()) fault = apart(runs_.course(alone).losses, runs_.course(name).losses);
    }
    for (const std::string& output : {name, again, alone}) fs::remove_all(runs_.path(output));
    return fault;
  }

 private:
  std::string tokens(const char* set, const char* file) const {
    return fmt::format(R"({}={{"tokens": "{}"}})", set, folder_.file(file));
  }

  std::string run(const Cell& cell, const std::string& output, const char* parallel, int ranks,
                  const std::optional<fs::path>& resume = {}) const {
    const recipe::Recipe asked = runs_.recipe(
        output, {model_change(cell), optimizer_change(cell), std::string("parallel=") + parallel});
    const std::string ended = SavedRuns::run(asked, {.ranks = ranks}, resume)[0].text;
    return ended.starts_with(fmt::format("code 0 after step {}", kSteps)) ? "" : ended;
  }

  // Of the steps behind the cut.
  static std::string apart(const std::vector<double>& found, const std::vector<double>& expected) {
    constexpr auto kCount = static_cast<std::size_t>(kSteps - kCut);
    if (found.size() < kCount || expected.size() < kCount) return "losses are missing";
    const auto last = [](const std::vector<double>& all) {
      return std::vector<double>(all.end() - (kSteps - kCut), all.end());
    };
    const std::vector<double> a = last(found), b = last(expected);
    const double first = largest_apart({a.front()}, {b.front()}), all = largest_apart(a, b);
    if (first <= kSameWeights && all <= kUpdated) return "";
    return fmt::format("losses on one rank off by {:.1e}, then {:.1e}", first, all);
  }

  test::TemporaryFolder folder_;
  SavedRuns runs_;
};

}  // namespace

TEST_CASE("every optimizer saves and resumes on every layout, with tied weights too") {
  const Table table;
  for (const Cell& cell : cells()) {
    CAPTURE(cell.name());
    CHECK(table.fault_of(cell) == "");
  }
}

}  // namespace scaletrain::testing::optimizer_layouts_test
