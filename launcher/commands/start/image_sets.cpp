// Image folders and tar shards.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/commands/start/given_data.h"
#include "launcher/commands/start/image_side.h"
#include "launcher/jobs/checks/sample_check.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/url.h"
#include "lib/format/byte_reader.h"
#include "lib/format/tar/label_text.h"
#include "lib/format/tar/tar.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/recipe/catalog/braces.h"
#include "lib/recipe/catalog/local_shards.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kHeadBytes = 1 << 16;  // of an image, for its size
constexpr std::size_t kImagesLookedAt = 9;   // of the first class
constexpr std::int64_t kMostListBytes = 16 << 20;
constexpr std::array<const char*, 3> kValNames{"val", "valid", "validation"};

std::vector<fs::path> entries_of(const fs::path& folder, bool folders) {
  std::vector<fs::path> found;
  std::error_code error, ignored;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    if (it->is_directory(ignored) == folders) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> images_of(const fs::path& folder) {
  std::vector<fs::path> files = entries_of(folder, /*folders=*/false);
  std::erase_if(files, [](const fs::path& file) {
    return !format::is_image_extension(lower_extension(file));
  });
  return files;
}

bool has_class_folders(const fs::path& folder) {
  const std::vector<fs::path> classes = entries_of(folder, /*folders=*/true);
  return std::any_of(classes.begin(), classes.end(),
                     [](const fs::path& one) { return !images_of(one).empty(); });
}

// Returns the median of the shorter sides that could be read; 0 if there are none.
std::int64_t median_side(std::vector<std::int64_t> sides) {
  if (sides.empty()) return 0;
  std::sort(sides.begin(), sides.end());
  return sides[sides.size() / 2];
}

void count_class_folder(const fs::path& folder, FoundData& found) {
  std::vector<std::int64_t> sides;
  for (const fs::path& one : entries_of(folder, /*folders=*/true)) {
    const std::vector<fs::path> images = images_of(one);
    for (std::size_t i = 0; i < std::min(images.size(), kImagesLookedAt) && found.classes < 1;
         ++i) {
      if (const auto side = shorter_side(head_of(images[i], kHeadBytes))) sides.push_back(*side);
    }
    found.samples += std::ssize(images);
    ++found.classes;
  }
  found.side = median_side(std::move(sides));
}

// `pack` is a command that comes first, "" for none.
void advise_validation(const std::string& pack, const std::string& data, FoundData& found) {
  if (!found.val.is_null()) return;
  const std::string set = core::shell_word(found.name + "-set");
  found.remarks.emplace_back("There is no validation set. To make one:");
  if (!pack.empty()) found.remarks.push_back("  " + pack);
  found.remarks.push_back(
      fmt::format("  scaletrain data split {} --out {} --val 0.1 --test 0.1", data, set));
  found.remarks.push_back("  scaletrain recipe new --data " + set);
}

// Class numbers of a sample.
std::vector<std::int64_t> labels_of(const format::TarSample& sample, const std::string& name,
                                    std::int64_t bytes, const format::ReadAt& read) {
  if (sample.label >= 0) return {sample.label};
  format::TarReader reader(name, bytes, read, sample.labels_begin);
  const auto member = reader.next();
  if (!member || member->bytes > format::kMaxLabelBytes) return {};
  const auto text = reader.bytes(member->data, member->bytes);
  auto labels = format::parse_labels(
      {reinterpret_cast<const char*>(text.data()), text.size()});  // NOLINT: bytes as text
  if (!labels) return {};
  const bool is_multi_hot = format::repeated_label(*labels) && format::is_zeros_and_ones(*labels);
  if (is_multi_hot) return {std::ssize(*labels) - 1};
  return std::move(*labels);
}

// Counts samples and classes of all shards and reads the sizes of the first images.
void count_shards(const std::vector<std::string>& shards, FoundData& found) {
  std::vector<std::int64_t> sides;
  for (const std::string& shard : shards) {
    const format::ByteReader file(shard);
    const format::ReadAt read = [&file](std::int64_t offset, std::span<std::byte> out) {
      file.read(offset, out);
    };
    format::for_each_sample(shard, file.bytes(), read, [&](const format::TarSample& sample) {
      ++found.samples;
      if (sample.label < 0) found.task = "multi_label_classification";
      for (const std::int64_t label : labels_of(sample, shard, file.bytes(), read)) {
        found.classes = std::max(found.classes, label + 1);
      }
      if (sides.size() >= kImagesLookedAt) return;
      std::string head(std::min(kHeadBytes, static_cast<std::size_t>(sample.image.bytes)), '\0');
      file.read(sample.image.data, std::as_writable_bytes(std::span(head)));
      if (const auto side = shorter_side(head)) sides.push_back(*side);
    });
  }
  found.side = median_side(std::move(sides));
}

// Returns the number of names in classes.json beside the shards; 0 if it cannot be read.
std::int64_t named_classes(const fs::path& folder) {
  const fs::path file = folder / "classes.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return 0;
  const std::string text = core::read_file(file, kMostListBytes, core::ExitCode::kData);
  core::refuse_placeholder(file.string(), text);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_array() ? std::ssize(json) : 0;
}

// Returns the shards of `text`, which may have braces, a pattern or a folder; empty if there are
// none.
std::vector<std::string> shards_of(const std::string& text) {
  std::string mistake;
  std::vector<std::string> shards;
  for (const std::string& name : recipe::expand_braces(text, mistake)) {
    const std::vector<std::string> files = recipe::local_shards(name, mistake);
    shards.insert(shards.end(), files.begin(), files.end());
  }
  return mistake.empty() ? shards : std::vector<std::string>();
}

// Returns a source with a pattern for the shards NAME-*.tar of `folder`; null if there are none.
Json source_named(const fs::path& folder, const std::string& name) {
  const std::string pattern = (folder / (name + "-*.tar")).string();
  return shards_of(pattern).empty() ? Json() : Json{{"shards", pattern}};
}

void find_held_out(const fs::path& folder, FoundData& found) {
  for (const char* name : kValNames) {
    if (found.val.is_null()) found.val = source_named(folder, name);
  }
  found.test = source_named(folder, "test");
}

}  // namespace

bool is_split_folder(const GivenData& given) {
  return given.is_folder && has_class_folders(given.path / "train");
}

bool is_class_folder(const GivenData& given) {
  return given.is_folder && has_class_folders(given.path);
}

bool is_shards(const GivenData& given) {
  if (given.is_folder) return !shards_of(given.text).empty();
  const bool is_several = given.text.find_first_of("*{") != std::string::npos;
  return recipe::is_shard_name(given.text) && (given.is_file || is_several);
}

FoundData fill_split_folder(const GivenData& given) {
  FoundData found;
  found.train = {{"folder", (given.path / "train").string()}};
  for (const char* name : kValNames) {
    const fs::path folder = given.path / name;
    if (found.val.is_null() && has_class_folders(folder)) found.val = {{"folder", folder.string()}};
  }
  if (has_class_folders(given.path / "test")) {
    found.test = {{"folder", (given.path / "test").string()}};
  }
  count_class_folder(given.path / "train", found);
  return found;
}

FoundData fill_class_folder(const GivenData& given) {
  FoundData found;
  found.name = name_of_data(given);
  found.train = {{"folder", given.text}};
  count_class_folder(given.path, found);
  const std::string packed = core::shell_word(found.name + "-packed");
  advise_validation(fmt::format("scaletrain data pack {} {}", core::shell_word(given.text), packed),
                    packed, found);
  return found;
}

FoundData fill_shards(const GivenData& given) {
  FoundData found;
  found.name = name_of_data(given);
  std::vector<std::string> shards = shards_of(given.text);
  const fs::path folder = given.is_folder ? given.path : given.path.parent_path();
  if (given.is_folder) found.train = source_named(folder, "train");
  if (found.train.is_null()) {
    found.train = {{"shards", given.text}};
  } else {
    shards = shards_of(found.train["shards"].get<std::string>());
  }
  if (shards.empty()) {
    throw core::DataError(given.text, "matches no shard", "check the pattern or the braces");
  }
  const bool is_train = given.is_folder ? found.train["shards"] != Json(given.text)
                                        : given.path.filename().string().starts_with("train");
  if (is_train) find_held_out(folder, found);
  if (std::any_of(shards.begin(), shards.end(), core::is_compressed)) {
    const std::string out = core::shell_word(found.name + "-shards");
    found.commands = {
        fmt::format("scaletrain data import tar {} --out {}", core::shell_word(given.text), out),
        "scaletrain recipe new --data " + out};
    return found;
  }
  count_shards(shards, found);
  found.classes = std::max(found.classes, named_classes(folder));
  advise_validation("", core::shell_word(given.text), found);
  return found;
}

}  // namespace scaletrain::launcher
