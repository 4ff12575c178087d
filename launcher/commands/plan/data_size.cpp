#include "launcher/commands/plan/data_size.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "launcher/jobs/checks/sample_check.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

std::optional<double> bytes_of_files(const std::vector<std::string>& files) {
  double bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = core::is_url(file) ? 0 : fs::file_size(file, error);
    if (core::is_url(file) || error) return std::nullopt;
    bytes += static_cast<double>(size);
  }
  return bytes;
}

std::optional<double> bytes_of_images(const std::string& folder) {
  double bytes = 0;
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    if (!format::is_image_extension(lower_extension(file->path()))) continue;
    bytes += static_cast<double>(file->file_size(ignored));
  }
  if (error) return std::nullopt;
  return bytes;
}

// Returns the bytes of all files of `source`; nullopt if some are not on this machine.
std::optional<double> stored_bytes(const recipe::Source& source) {
  if (source.sources.empty()) {
    if (!source.folder.empty()) return bytes_of_images(source.folder);
    return bytes_of_files(source.tokens.empty() ? source.shards : source.tokens);
  }
  double sum = 0;
  for (const recipe::Source& inner : source.sources) {
    const std::optional<double> bytes = stored_bytes(inner);
    if (!bytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

// Tokens are stored in two bytes if the vocabulary allows it, otherwise in four.
double bytes_of_token(const recipe::Recipe& recipe) {
  constexpr std::int64_t kTwoBytes = 1 << 16;
  return recipe.model.integer("vocab_size") <= kTwoBytes ? 2 : 4;
}

}  // namespace

DataSize training_data_size(const recipe::Recipe& recipe) {
  const std::optional<double> bytes = stored_bytes(recipe.data.train);
  if (recipe::reads_tokens(recipe.model)) {
    const double of_sample = bytes_of_token(recipe) * static_cast<double>(recipe.data.context);
    const auto samples = static_cast<std::int64_t>(bytes.value_or(0) / of_sample);
    return {.samples = samples, .sample_bytes = of_sample};
  }
  const std::int64_t samples = training_images(recipe).value_or(0);
  if (samples == 0 || !bytes || recipe.data.train.limit) return {.samples = samples};
  return {.samples = samples, .sample_bytes = *bytes / static_cast<double>(samples)};
}

}  // namespace scaletrain::launcher
