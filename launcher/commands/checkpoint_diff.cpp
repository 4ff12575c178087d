#include "launcher/commands/checkpoint_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/format/weights/weight_diff.h"

namespace scaletrain::launcher {
namespace {

using DiffJson = nlohmann::ordered_json;

struct DiffArguments {
  std::string first, second, part;
  bool as_json = false;
};

// Returns "F32 [2,3]", for both tensors if they differ.
std::string shown_type(const format::TensorDiff& diff) {
  const auto one = [&](std::size_t i) {
    return fmt::format("{} [{}]", diff.dtypes[i], fmt::join(diff.shapes[i], ","));
  };
  if (diff.dtypes[0].empty()) return one(1);
  if (diff.dtypes[1].empty() || one(0) == one(1)) return one(0);
  return fmt::format("{} -> {}", one(0), one(1));
}

std::string shown_diff(const format::TensorDiff& diff) {
  const std::string name = core::printable(diff.name);
  switch (diff.difference) {
    case format::WeightDifference::kOnlyInFirst:
      return fmt::format("only in A   {}: {}\n", name, shown_type(diff));
    case format::WeightDifference::kOnlyInSecond:
      return fmt::format("only in B   {}: {}\n", name, shown_type(diff));
    case format::WeightDifference::kShape:
      return fmt::format("other shape {}: {}\n", name, shown_type(diff));
    case format::WeightDifference::kValues:
      return fmt::format(
          "differs     {}: {}, {} of {} elements, by {:.3g} at most, {:.3g} relative\n", name,
          shown_type(diff), diff.differing, diff.elements, diff.largest, diff.relative);
    case format::WeightDifference::kNone:
      break;
  }
  return "";
}

const char* difference_name(format::WeightDifference difference) {
  switch (difference) {
    case format::WeightDifference::kOnlyInFirst:
      return "only_in_first";
    case format::WeightDifference::kOnlyInSecond:
      return "only_in_second";
    case format::WeightDifference::kShape:
      return "shape";
    case format::WeightDifference::kValues:
      return "values";
    case format::WeightDifference::kNone:
      break;
  }
  return "none";
}

DiffJson diff_as_json(const format::TensorDiff& diff) {
  DiffJson json = {{"name", diff.name},
                   {"difference", difference_name(diff.difference)},
                   {"dtypes", diff.dtypes},
                   {"shapes", diff.shapes}};
  if (diff.difference != format::WeightDifference::kValues) return json;
  // JSON has no infinity: null.
  const auto number = [](double value) {
    return std::isfinite(value) ? DiffJson(value) : DiffJson();
  };
  json["elements"] = diff.elements;
  json["differing"] = diff.differing;
  json["largest"] = number(diff.largest);
  json["relative"] = number(diff.relative);
  return json;
}

void print_diff(const DiffArguments& arguments) {
  const auto report = [](const std::string& damage) { core::warn("{}", damage); };
  const format::WeightSet first(arguments.first, arguments.part, report);
  const format::WeightSet second(arguments.second, arguments.part, report);
  const std::vector<format::TensorDiff> diffs = format::diff_weights(first, second);
  DiffJson different = DiffJson::array();
  std::string text;
  for (const format::TensorDiff& diff : diffs) {
    if (diff.difference == format::WeightDifference::kNone) continue;
    different.push_back(diff_as_json(diff));
    text += shown_diff(diff);
  }
  text += fmt::format("{} of {} {}\n", different.size(), core::counted(std::ssize(diffs), "tensor"),
                      different.size() == 1 ? "differs" : "differ");
  const DiffJson json = {{"tensors", diffs.size()}, {"different", different}};
  const std::string shown = arguments.as_json ? core::json_text(json, 1) + "\n" : text;
  std::fputs(shown.c_str(), stdout);
}

}  // namespace

void add_checkpoint_diff(CLI::App& checkpoint, int& exit_status) {
  const auto arguments = std::make_shared<DiffArguments>();
  CLI::App* const diff =
      checkpoint.add_subcommand("diff", "compare the weights of two models, tensor by tensor");
  constexpr const char* kWeights =
      "a checkpoint, a run's folder, a safetensors or PyTorch file, a folder of Hugging Face or "
      "timm";
  diff->add_option("a", arguments->first, kWeights)->required()->type_name("CHECKPOINT");
  diff->add_option("b", arguments->second, kWeights)->required()->type_name("CHECKPOINT");
  diff->add_option(
      "--part", arguments->part,
      "Key of PyTorch files that holds the model. Default: a known key such as `state_dict`.");
  diff->add_flag("--json", arguments->as_json, "Print one JSON object instead of text.");
  diff->callback([arguments, &exit_status] {
    print_diff(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
