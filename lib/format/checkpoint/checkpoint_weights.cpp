#include "lib/format/checkpoint/checkpoint_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/stored_tensors.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEmaOf = "ema:";
constexpr std::string_view kEmaFileOf = "ema-";
constexpr std::string_view kEnd = ".safetensors";
constexpr const char* kSwaFile = "swa.safetensors";

std::optional<double> decay_of(std::string_view name) {
  if (!name.starts_with(kEmaOf)) return std::nullopt;
  double decay = -1;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kEmaOf.size(), end, decay);
  const bool is_whole = read.ec == std::errc() && read.ptr == end;
  return is_whole && decay >= 0 && decay < 1 ? std::optional(decay) : std::nullopt;
}

// The decays of the recipe in a checkpoint, the first that of ema.safetensors.
std::vector<double> decays_in(const fs::path& checkpoint) {
  constexpr std::int64_t kMaxBytes = 16 << 20;
  const fs::path file = checkpoint / kRecipeFile;
  if (core::type_at(file) != fs::file_type::regular) return {};
  const std::string text = core::read_file(file, kMaxBytes, core::ExitCode::kData);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto found = json.is_object() ? json.find("ema") : json.end();
  if (found == json.end() || !found->is_object() || !found->contains("decay")) return {};
  std::vector<double> decays;
  const nlohmann::json& written = found->at("decay");
  if (written.is_number()) decays.push_back(written.get<double>());
  for (const nlohmann::json& one : written) {
    if (written.is_array() && one.is_number()) decays.push_back(one.get<double>());
  }
  return decays;
}

std::optional<fs::path> file_in(const fs::path& checkpoint, std::string_view file) {
  fs::path path = checkpoint / file;
  return has_tensors(path) ? std::optional(std::move(path)) : std::nullopt;
}

}  // namespace

std::string mean_file(std::string_view name) {
  if (const auto decay = decay_of(name)) return fmt::format("{}{}{}", kEmaFileOf, *decay, kEnd);
  return fmt::format("{}{}", name, kEnd);
}

bool is_mean_file(std::string_view file) {
  if (file == kEmaFile || file == kSwaFile) return true;
  if (!file.starts_with(kEmaFileOf) || !file.ends_with(kEnd)) return false;
  return decay_of(weights_name(file)).has_value();
}

std::string weights_name(const fs::path& file) {
  std::string stem = file.stem().string();
  if (!stem.starts_with(kEmaFileOf)) return stem;
  return fmt::format("{}{}", kEmaOf, stem.substr(kEmaFileOf.size()));
}

std::optional<fs::path> find_weights(const fs::path& checkpoint, std::string_view name) {
  if (name == "model") return checkpoint / kModelFile;
  if (name.empty()) {
    for (const char* const mean : {kEmaFile, kSwaFile}) {
      if (auto found = file_in(checkpoint, mean)) return found;
    }
    return checkpoint / kModelFile;
  }
  if (auto found = file_in(checkpoint, mean_file(name))) return found;
  const auto decay = decay_of(name);
  if (!decay) return std::nullopt;
  const std::vector<double> decays = decays_in(checkpoint);
  const bool is_first = !decays.empty() && decays.front() == *decay;
  return is_first ? file_in(checkpoint, kEmaFile) : std::nullopt;
}

fs::path weights_file(const fs::path& checkpoint, std::string_view name) {
  if (auto found = find_weights(checkpoint, name)) return *found;
  const std::vector<double> decays = decays_in(checkpoint);
  const bool has_others = decay_of(name) && !decays.empty();
  throw core::CheckpointError(
      checkpoint.string(), fmt::format("has no {} weights", core::printable(name)),
      has_others ? fmt::format("use one of: ema:{}", fmt::join(decays, ", ema:"))
                 : fmt::format("use its model, or a checkpoint of a run whose recipe has an {}",
                               name == "swa" ? "swa" : "ema"));
}

}  // namespace scaletrain::format
