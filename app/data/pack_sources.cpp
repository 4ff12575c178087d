#include "app/data/pack_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/format/sample_list.h"
#include "lib/format/tar.h"
#include "lib/format/tar_samples.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxListBytes = std::int64_t{4} << 30;
constexpr std::int64_t kMaxNumberedClasses = 10'000'000;

struct NamedItem {
  std::string path, key, label;  // the label in text
  std::string place;             // for messages
};

bool is_image_file(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  if (extension.empty()) return false;
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return format::is_image_extension(extension.substr(1));
}

// The images in a class's folder and below it.
void list_images(const fs::path& root, const fs::path& inside, const std::string& label,
                 std::vector<NamedItem>& items) {
  for (const auto& entry : storage::file_storage().list((root / inside).string())) {
    if (entry.name.starts_with('.')) continue;
    const fs::path path = inside / entry.name;
    if (entry.folder) {
      list_images(root, path, label, items);
    } else if (is_image_file(entry.name)) {
      items.push_back({(root / path).string(), (path.parent_path() / path.stem()).string(), label,
                       (root / path).string()});
    }
  }
}

std::vector<NamedItem> list_folder(const std::string& source) {
  std::vector<NamedItem> items;
  for (const auto& entry : storage::file_storage().list(source)) {
    if (entry.folder && !entry.name.starts_with('.')) {
      list_images(source, entry.name, entry.name, items);
    }
  }
  if (items.empty()) {
    throw core::DataError(source, "no class folder with images in it",
                          "a folder source holds one folder of images for each class");
  }
  return items;
}

std::vector<NamedItem> read_list(const std::string& source) {
  const std::string text = core::read_file(source, kMaxListBytes, core::ExitCode::kData);
  const auto listed = source.ends_with(".csv") ? format::parse_csv_list(text, source)
                                               : format::parse_jsonl_list(text, source);
  if (listed.empty()) throw core::DataError(source, "names no sample", "add one a line");
  std::vector<NamedItem> items;
  for (const format::ListedSample& sample : listed) {
    const fs::path path(sample.path);
    items.push_back({(fs::path(source).parent_path() / path).string(),
                     (path.relative_path().parent_path() / path.stem()).lexically_normal().string(),
                     sample.label, fmt::format("{}:{}", source, sample.line)});
  }
  return items;
}

std::int64_t number_or_minus_one(const std::string& text) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && number >= 0 && number < kMaxNumberedClasses ? number : -1;
}

// "0", "1", ... when every label is a number, else the names sorted bytewise.
std::vector<std::string> classes_of(const std::vector<NamedItem>& items, bool may_be_numbers) {
  std::set<std::string> names;
  std::int64_t highest = -1;
  bool numbers = may_be_numbers;
  for (const NamedItem& item : items) {
    names.insert(item.label);
    const std::int64_t number = number_or_minus_one(item.label);
    numbers = numbers && number >= 0;
    highest = std::max(highest, number);
  }
  if (!numbers) return {names.begin(), names.end()};
  std::vector<std::string> classes;
  for (std::int64_t i = 0; i <= highest; ++i) classes.push_back(std::to_string(i));
  return classes;
}

// A key that a tar and WebDataset take, not used before: no dot in the last part, nothing that
// leaves the folder it would be unpacked into, no control characters.
std::string make_key(const std::string& wish, std::unordered_set<std::string>& used) {
  std::string key;
  for (const fs::path& part : fs::path(wish)) {
    if (part == ".." || part == "." || part == "/") continue;
    key += (key.empty() ? "" : "/") + part.string();
  }
  for (std::size_t i = key.rfind('/') == std::string::npos ? 0 : key.rfind('/'); i < key.size();
       ++i) {
    if (key[i] == '.') key[i] = '_';
  }
  for (char& c : key) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '_';
  }
  if (key.empty()) key = "sample";
  std::string unique = key;
  for (int i = 2; !used.insert(unique).second; ++i) unique = fmt::format("{}-{}", key, i);
  return unique;
}

}  // namespace

PackSource read_pack_source(const std::string& source, const std::vector<std::string>& classes) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(source, ignored);
  if (!is_folder && !source.ends_with(".csv") && !source.ends_with(".jsonl") &&
      !source.ends_with(".ndjson")) {
    throw core::DataError(source, "is no folder and no .csv or .jsonl list",
                          "name a folder of class folders, or a list with path and label");
  }
  const std::vector<NamedItem> named = is_folder ? list_folder(source) : read_list(source);
  PackSource result;
  result.classes = classes.empty() ? classes_of(named, !is_folder) : classes;
  std::map<std::string, std::int64_t> numbers;
  for (std::size_t i = 0; i < result.classes.size(); ++i) {
    numbers.emplace(result.classes[i], static_cast<std::int64_t>(i));
  }
  const auto number_of = [&](const std::string& label) {
    const auto named_so = numbers.find(label);
    if (named_so != numbers.end()) return named_so->second;
    const std::int64_t number = is_folder ? -1 : number_or_minus_one(label);
    return number < static_cast<std::int64_t>(result.classes.size()) ? number : -1;
  };
  std::unordered_set<std::string> used;
  for (const NamedItem& item : named) {
    const std::int64_t number = number_of(item.label);
    if (number < 0) {
      throw core::DataError(
          item.place,
          fmt::format("its class \"{}\" is not in classes.json", format::shown_name(item.label)),
          "add it there, or pack into another folder");
    }
    result.items.push_back({item.path, make_key(item.key, used), number});
  }
  return result;
}

}  // namespace scaletrain::app
