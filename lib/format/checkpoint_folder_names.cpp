#include "lib/format/checkpoint_folder_names.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "lib/core/text.h"
#include "lib/format/checkpoint_folder.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";
constexpr std::string_view kTemporary = ".tmp.";

template <class Number>
std::optional<Number> parse_digits(std::string_view text) {
  const auto value = core::parse_number<Number>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

std::optional<std::int64_t> step_of_name(const std::string& name) {
  std::string_view rest = name;
  if (rest.ends_with(kOldSuffix)) rest.remove_suffix(std::string_view(kOldSuffix).size());
  if (!rest.starts_with(kStep)) return std::nullopt;
  const auto step = parse_digits<std::int64_t>(rest.substr(kStep.size()));
  // A hand-made "step-7" is no name of ours: nothing would find it by its step.
  return step && checkpoint_name(*step) == rest ? step : std::nullopt;
}

std::string temporary_name(const std::string& name) {
  return fmt::format("{}{}{}", name, kTemporary, ::getpid());
}

std::optional<int> pid_of_temporary(const std::string& name) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string::npos) return std::nullopt;
  return parse_digits<int>(std::string_view(name).substr(at + kTemporary.size()));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;  // what cannot be listed has no names
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace scaletrain::format
