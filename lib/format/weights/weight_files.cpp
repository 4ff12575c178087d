#include "lib/format/weights/weight_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/name_link.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/stored_tensors.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

constexpr std::string_view kIndexEnd = ".index.json";
constexpr std::array<const char*, 4> kKnownFiles{
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json"};
constexpr std::array<std::string_view, 5> kWeightEnds{".safetensors", ".pt", ".pth", ".ckpt",
                                                      ".bin"};
// PEFT's files of a LoRA adapter.
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr std::string_view kAdapterBegin = "adapter_model.";
// Files that Hugging Face's Trainer writes beside a model.
constexpr std::array<std::string_view, 6> kOtherFiles{
    "optimizer", "scheduler", "rng_state", "scaler", "training_args", "trainer_state"};

bool is_file(const std::filesystem::path& path) {
  return core::type_at(path) == std::filesystem::file_type::regular;
}

bool may_be_weights(const std::string& name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  const auto begins = [&](std::string_view begin) { return name.starts_with(begin); };
  return std::any_of(kWeightEnds.begin(), kWeightEnds.end(), ends) &&
         std::none_of(kOtherFiles.begin(), kOtherFiles.end(), begins);
}

// Other programs' folders may be called latest or best too.
bool is_checkpoint_or_run(const std::filesystem::path& path) {
  const CheckpointsAt found = checkpoints_at(path);
  if (found.folders.empty() || !found.is_one) return !found.folders.empty();
  return step_of_name(name_of(path)).has_value() || is_file(found.folders.front() / kManifestName);
}

// Latest or best of a run on a file system without symbolic links (lib/core/disk/name_link.h).
bool is_name_file(const std::filesystem::path& path) {
  return step_of_name(core::read_name_link(path)).has_value();
}

// Reads {"metadata": {...}, "weight_map": {TENSOR: FILE, ...}}. The sizes in metadata are ignored,
// since conversion programs do not update them.
void read_index(const std::filesystem::path& index, WeightFiles& found) {
  constexpr std::int64_t kMaxBytes = 32'000'000;
  constexpr const char* kRemedy =
      "put all files of the model into one folder, with their original names";
  const std::string text = core::read_file(index, kMaxBytes, core::ExitCode::kData);
  const nlohmann::json json = parse_object(text, index.string());
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty()) {
    throw core::CheckpointError(index.string(), "has no weight_map", kRemedy);
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      throw core::CheckpointError(
          index.string(),
          fmt::format("says that \"{}\" is in {}, which does not exist beside it",
                      core::printable(tensor), file.dump()),
          kRemedy);
    }
    names.insert(name);
    found.file_of.emplace(tensor, name);
  }
  found.index = index;
  for (const std::string& name : names) {
    if (!is_file(index.parent_path() / name)) {
      throw core::CheckpointError(
          index.string(),
          fmt::format("names the file \"{}\", which is missing", core::printable(name)), kRemedy);
    }
    found.files.push_back(index.parent_path() / name);
  }
}

[[noreturn]] void refuse_adapter(const std::filesystem::path& place) {
  throw core::CheckpointError(
      place.string(), "is a LoRA adapter of PEFT, not the weights of a model", kMergeAdapter);
}

void take_file(const std::filesystem::path& file, WeightFiles& found) {
  if (file.filename().string().starts_with(kAdapterBegin)) refuse_adapter(file);
  if (file.filename().string().ends_with(kIndexEnd)) return read_index(file, found);
  found.files.push_back(file);
}

void search_folder(const std::filesystem::path& folder, WeightFiles& found) {
  for (const char* const name : kKnownFiles) {
    if (is_file(folder / name)) return take_file(folder / name, found);
  }
  if (is_file(folder / kAdapterConfig)) refuse_adapter(folder);
  std::vector<std::string> names = core::names_in(folder);
  std::erase_if(names, [](const std::string& name) { return !may_be_weights(name); });
  if (names.size() == 1) return take_file(folder / names.front(), found);
  throw core::CheckpointError(
      folder.string(),
      names.empty()
          ? fmt::format("has no weights: none of {}, and no .safetensors, .pt, .pth, .ckpt or .bin",
                        fmt::join(kKnownFiles, ", "))
          : core::printable(
                fmt::format("has {} files of weights: {}", names.size(), fmt::join(names, ", "))),
      names.empty() ? "name the folder or the file that has them" : "name one of them");
}

}  // namespace

WeightFiles find_weight_files(const std::filesystem::path& path,
                              const std::function<void(const std::string&)>& report) {
  WeightFiles found;
  const auto type = core::type_at(path);
  const bool is_absent = type == std::filesystem::file_type::not_found;
  if (is_absent && !has_tensors(path)) {  // a checkpoint may store it in shards
    throw core::CheckpointError(path.string(), "does not exist", "check the path of the weights");
  }
  if (type != std::filesystem::file_type::directory && !is_name_file(path)) {
    take_file(path, found);
  } else if (is_checkpoint_or_run(path)) {
    found.checkpoint = find_checkpoint(path, report);
    take_file(weights_file(*found.checkpoint, ""), found);
  } else {
    search_folder(path, found);
  }
  const std::filesystem::path config = found.files.front().parent_path() / "config.json";
  if (is_file(config)) found.config = config;
  return found;
}

}  // namespace scaletrain::format
