#include "lib/format/checkpoint/checkpoint_folder_names.h"

#include <fmt/format.h>

#include "lib/core/text/text.h"

namespace scaletrain::format {
namespace {

constexpr std::string_view kStep = "step-";

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

std::optional<std::int64_t> step_of_name(const std::string& name) {
  std::string_view rest = name;
  if (rest.ends_with(kOldSuffix)) rest.remove_suffix(std::string_view(kOldSuffix).size());
  if (!rest.starts_with(kStep)) return std::nullopt;
  const auto step = core::parse_number<std::int64_t>(rest.substr(kStep.size()));
  // A hand-made "step-7" is not a valid name: look-ups by step would not find it.
  return step && *step >= 0 && checkpoint_name(*step) == rest ? step : std::nullopt;
}

std::string name_of(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace scaletrain::format
