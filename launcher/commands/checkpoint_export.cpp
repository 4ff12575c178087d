#include "launcher/commands/checkpoint_export.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/exchange/companion_files.h"
#include "lib/exchange/export_plan.h"
#include "lib/exchange/new_folder.h"
#include "lib/exchange/tokenizer_files.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/hashed_file.h"
#include "lib/format/weights/weight_cast.h"
#include "lib/format/weights/weight_set.h"
#include "lib/format/weights/weight_write.h"
#include "lib/recipe/load.h"
#include "lib/recipe/weights_flag.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInt8 = "int8";

struct ExportArguments {
  std::string checkpoint, weights, out, to, tokenizer;
  std::string dtype = "fp32";
  bool overwrite = false;
};

const std::map<std::string, std::string>& dtypes() {
  static const std::map<std::string, std::string> all{
      {"fp32", "F32"}, {"bf16", "BF16"}, {"fp16", "F16"}, {kInt8, "F32"}};
  return all;
}

// Throws core::UsageError if the files of --tokenizer are not those of the run's tokens.
void check_tokenizer(const exchange::Companions& given, const fs::path& run,
                     const recipe::Recipe& recipe) {
  const std::string own = exchange::tokenizer_files(recipe, run).name;
  if (own.empty()) return;
  exchange::Companions same = given;
  exchange::keep_tokenizer(same, own);
  if (same.files.size() == given.files.size()) return;
  throw core::UsageError("--tokenizer",
                         fmt::format("is not {}, of whose tokens the run is", core::printable(own)),
                         "name the folder of the run's own, or leave it out");
}

// Returns the folder of --tokenizer or of its file; for a run, its own.
exchange::Companions companions_of(const fs::path& checkpoint, const recipe::Recipe& recipe,
                                   const std::string& tokenizer) {
  const fs::path run = checkpoint.parent_path().parent_path();
  if (tokenizer.empty()) return exchange::companions_of_run(run, recipe);
  std::error_code ignored;
  const bool is_folder = fs::is_directory(tokenizer, ignored);
  exchange::Companions given =
      exchange::companions_in(is_folder ? fs::path(tokenizer) : fs::path(tokenizer).parent_path());
  const bool has_any = std::any_of(given.files.begin(), given.files.end(), [](const auto& file) {
    return file.first != "generation_config.json";
  });
  if (has_any) check_tokenizer(given, run, recipe);
  if (has_any) return given;
  throw core::UsageError(
      "--tokenizer", fmt::format("{} has no tokenizer of Hugging Face", core::printable(tokenizer)),
      "name a folder with tokenizer.json, or vocab.json and merges.txt");
}

exchange::ExportSource read_source(const fs::path& checkpoint, const std::string& tokenizer) {
  const format::Manifest manifest = format::read_manifest(checkpoint);
  exchange::ExportSource source;
  source.recipe_text = format::read_listed_file(checkpoint, manifest, format::kRecipeFile);
  source.recipe =
      recipe::parse_recipe(source.recipe_text, (checkpoint / format::kRecipeFile).string());
  source.run = checkpoint.parent_path().parent_path();
  source.classes = format::read_class_names(checkpoint, manifest);
  if (recipe::reads_tokens(source.recipe.model)) {
    source.companions = companions_of(checkpoint, source.recipe, tokenizer);
  }
  return source;
}

// Reads all tensors into memory.
std::vector<format::OwnedTensor> tensors_of(const format::WeightSet& weights,
                                            const recipe::Model& model, const std::string& dtype,
                                            const std::string& prefix) {
  std::vector<format::OwnedTensor> tensors;
  tensors.reserve(2 * weights.tensors().size());
  for (const format::WeightTensor& tensor : weights.tensors()) {
    format::OwnedTensor owned = read_tensor(weights, tensor);
    owned.name = prefix + owned.name;
    if (dtype == kInt8 && is_quantised(owned)) {
      auto [values, scales] = quantise_tensor(owned, exchange::output_dim(model, tensor.name));
      tensors.push_back(std::move(values));
      tensors.push_back(std::move(scales));
    } else {
      tensors.push_back(cast_tensor(std::move(owned), dtypes().at(dtype)));
    }
  }
  return tensors;
}

void export_checkpoint(const ExportArguments& arguments) {
  if (arguments.dtype == kInt8 && !exchange::takes_int8(arguments.to)) {
    throw core::UsageError("--dtype int8",
                           fmt::format("{} cannot load int8 weights with scales", arguments.to),
                           "use --to safetensors or --to pt");
  }
  const fs::path checkpoint = format::checkpoint_at(arguments.checkpoint);
  const exchange::ExportSource source = read_source(checkpoint, arguments.tokenizer);
  const format::WeightSet weights(format::weights_file(checkpoint, arguments.weights), "",
                                  [](const std::string&) {});
  const exchange::ExportPlan plan =
      plan_export(arguments.to, source, weights, dtypes().at(arguments.dtype));
  core::Disk& disk = core::system_disk();
  std::size_t count = 0;
  exchange::publish_folder(disk, arguments.out, arguments.overwrite, [&](const fs::path& folder) {
    const auto tensors = tensors_of(weights, source.recipe.model, arguments.dtype, plan.prefix);
    count = tensors.size();
    const fs::path file = folder / plan.weights;
    write_weights(disk, file, format::is_pytorch_name(file), tensors);
    for (const auto& [name, text] : plan.files) format::write_hashed(disk, folder / name, text);
  });
  if (!plan.note.empty()) core::warn("{}", plan.note);
  std::printf("%s: %s for %s, %zu tensors in %s\n", core::printable(arguments.out).c_str(),
              source.recipe.model.name.c_str(), arguments.to.c_str(), count,
              arguments.dtype.c_str());
}

}  // namespace

void add_checkpoint_export(CLI::App& checkpoint, int& exit_status) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* const exporting = checkpoint.add_subcommand(
      "export", "export a model as a folder for timm, torchvision, Hugging Face or PyTorch");
  exporting
      ->add_option("CHECKPOINT", arguments->checkpoint,
                   "Checkpoint, run folder, or its `latest` or `best`.")
      ->type_name("CHECKPOINT")
      ->required();
  recipe::add_weights_flag(*exporting, arguments->weights);
  exporting->add_option("OUT", arguments->out, "New folder.")->required();
  exporting
      ->add_option("--to", arguments->to,
                   "Format: the library that loads it. pt and safetensors hold any model, with the "
                   "parameter names of scaletrain.")
      ->required()
      ->check(CLI::IsMember(exchange::export_kinds()));
  exporting
      ->add_option("--dtype", arguments->dtype,
                   "Data type of floating-point tensors. int8 stores weights as integers with one "
                   "scale for each output channel; only for pt and safetensors.")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", kInt8}))
      ->capture_default_str();
  exporting->add_option(
      "--tokenizer", arguments->tokenizer,
      "Folder of the tokenizer that goes with a language model for Hugging Face. Default: the "
      "tokenizer of the training tokens, or of the initial weights.");
  exporting->add_flag("--overwrite", arguments->overwrite, "Replace an earlier export.");
  exporting->callback([arguments, &exit_status] {
    export_checkpoint(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
