#include "app/data/files/pack_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "app/data/files/unique_keys.h"
#include "app/foreign/foreign_image.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/format/tar/label_text.h"
#include "lib/format/tar/sample_list.h"
#include "lib/format/tar/tar.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxListBytes = std::int64_t{4} << 30;
constexpr std::int64_t kMaxNumberedClasses = 10'000'000;

struct NamedItem {
  std::string path, key;
  std::vector<std::string> labels;  // in text: one, or those of a list
  std::string place;                // for messages
  bool has_list = false;
};

// A folder with one folder of images for each class.
class ClassFolders {
 public:
  explicit ClassFolders(const std::string& root) : root_(root) {
    above_.push_back(identity_of(root));
    for (const auto& entry : storage::file_storage().list(root)) {
      if (entry.name.starts_with('.')) continue;
      if (!entry.folder) {
        ++left_alone[data::file_extension(entry.name)];
        continue;
      }
      const std::size_t before = items.size();
      list(entry.name, entry.name);
      if (items.size() == before) {
        throw core::DataError(
            (root_ / entry.name).string(),
            "has no .jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff or .rgb8 file", kLayout);
      }
      classes.push_back(entry.name);
    }
    if (items.empty() && left_alone.contains(".tar")) {
      throw core::DataError(root, "has shards, but no class folder",
                            "shards need no packing: training reads them as they are; scaletrain "
                            "data import tar, split and dedup write new ones");
    }
    if (items.empty()) throw core::DataError(root, "has no class folder", kLayout);
  }

  std::vector<NamedItem> items;
  std::vector<std::string> classes;
  data::LeftAlone left_alone;

 private:
  using Identity = std::pair<dev_t, ino_t>;

  static constexpr const char* kLayout =
      "a folder source holds one folder of images for each class";

  static Identity identity_of(const fs::path& folder) {
    struct stat status {};
    return ::stat(folder.c_str(), &status) == 0 ? Identity{status.st_dev, status.st_ino}
                                                : Identity{};
  }

  // The images in `inside` and below it.
  void list(const fs::path& inside, const std::string& label) {
    const Identity identity = identity_of(root_ / inside);
    if (std::find(above_.begin(), above_.end(), identity) != above_.end()) {
      throw core::DataError((root_ / inside).string(), "is a link to a folder that contains it",
                            "remove the link");
    }
    above_.push_back(identity);
    for (const auto& entry : storage::file_storage().list((root_ / inside).string())) {
      if (entry.name.starts_with('.')) continue;
      const fs::path path = inside / entry.name;
      if (entry.folder) {
        list(path, label);
      } else if (data::is_image_file(entry.name) || is_foreign_file(entry.name)) {
        items.push_back({(root_ / path).string(),
                         (path.parent_path() / path.stem()).string(),
                         {label},
                         (root_ / path).string()});
      } else {
        ++left_alone[data::file_extension(entry.name)];
      }
    }
    above_.pop_back();
  }

  fs::path root_;
  std::vector<Identity> above_;  // the folders that list() is in
};

std::vector<NamedItem> read_list(const std::string& source) {
  const std::string text = core::read_file(source, kMaxListBytes, core::ExitCode::kData);
  core::refuse_placeholder(source, text);
  const auto listed = source.ends_with(".csv") ? format::parse_csv_list(text, source)
                                               : format::parse_jsonl_list(text, source);
  if (listed.empty())
    throw core::DataError(source, "lists no sample", "write one line for each sample");
  std::vector<NamedItem> items;
  for (const format::ListedSample& sample : listed) {
    const fs::path path(sample.path);
    items.push_back({(fs::path(source).parent_path() / path).string(),
                     (path.relative_path().parent_path() / path.stem()).lexically_normal().string(),
                     sample.has_list ? sample.labels : std::vector{sample.label},
                     fmt::format("{}:{}", source, sample.line), sample.has_list});
  }
  return items;
}

std::int64_t number_or_minus_one(const std::string& text) {
  const std::int64_t number = core::parse_number<std::int64_t>(text).value_or(-1);
  return number >= 0 && number < kMaxNumberedClasses ? number : -1;
}

// True if a person would read it as a number, such as "-1", "1.0" or " 3".
bool looks_like_number(const std::string& label) {
  const std::size_t first = label.find_first_not_of(" \t"), last = label.find_last_not_of(" \t");
  if (first == std::string::npos) return false;
  const std::string text = label.substr(first, last - first + 1);
  if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) return false;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return *end == '\0' && end != text.c_str();
}

// Returns "0", "1", ... if the labels of the list are numbers, else the names sorted bytewise. All
// labels must be of one kind: a number among names would be sorted as text, "10" before "2".
std::vector<std::string> classes_of(const std::vector<NamedItem>& items) {
  std::set<std::string> names;
  std::int64_t highest = -1;
  const auto first = std::find_if(items.begin(), items.end(),
                                  [](const NamedItem& item) { return !item.labels.empty(); });
  if (first == items.end()) {
    throw core::DataError(items.front().place, "has no class, and neither has any other sample",
                          "name the classes with --classes");
  }
  const bool numbers = looks_like_number(first->labels.front());
  const auto add = [&](const NamedItem& item, const std::string& label) {
    const std::string shown = format::shown_name(label);
    if (looks_like_number(label) != numbers) {
      throw core::DataError(
          item.place,
          fmt::format(R"(its label "{}" is {}, and that of {} is {})", shown,
                      numbers ? "a name" : "a number", first->place,
                      numbers ? "a number" : "a name"),
          "write all labels as numbers or all as names, or name the classes by number with "
          "--classes");
    }
    const std::int64_t number = number_or_minus_one(label);
    if (numbers && number < 0) {
      throw core::DataError(item.place,
                            fmt::format(R"(its label "{}" is not a whole number from 0 to {})",
                                        shown, kMaxNumberedClasses - 1),
                            "number the classes from 0 on, or write their names");
    }
    if (!numbers) names.insert(label);
    highest = std::max(highest, number);
  };
  for (const NamedItem& item : items) {
    for (const std::string& label : item.labels) add(item, label);
  }
  if (!numbers) return {names.begin(), names.end()};
  std::vector<std::string> classes;
  for (std::int64_t i = 0; i <= highest; ++i) classes.push_back(std::to_string(i));
  return classes;
}

// Returns a key that tar and WebDataset accept: no dot in the last part, no path outside of the
// folder that it would be unpacked into, no control characters.
std::string make_key(const std::string& wish) {
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
  return key.empty() ? "sample" : key;
}

}  // namespace

PackSource read_pack_source(const std::string& source, const std::vector<std::string>& classes) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(source, ignored);
  if (!is_folder && !source.ends_with(".csv") && !source.ends_with(".jsonl") &&
      !source.ends_with(".ndjson")) {
    throw core::DataError(source, "is neither a folder nor a .csv or .jsonl list",
                          "name a folder of class folders, or a list with path and label");
  }
  PackSource result;
  std::vector<NamedItem> named;
  if (is_folder) {
    ClassFolders folders(source);
    named = std::move(folders.items);
    result.classes = std::move(folders.classes);
    result.left_alone = std::move(folders.left_alone);
  } else {
    named = read_list(source);
    if (classes.empty()) result.classes = classes_of(named);
  }
  if (!classes.empty()) result.classes = classes;
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
  UniqueKeys keys;
  for (const NamedItem& item : named) {
    std::vector<std::int64_t> found;
    found.reserve(item.labels.size());
    for (const std::string& label : item.labels) {
      found.push_back(number_of(label));
      if (found.back() >= 0) continue;
      throw core::DataError(
          item.place,
          fmt::format(R"(its class "{}" is not in classes.json)", format::shown_name(label)),
          "add it there, or pack into another folder");
    }
    if (const auto twice = format::repeated_label(found)) {
      throw core::DataError(
          item.place,
          fmt::format(R"(its label names class "{}" twice)",
                      format::shown_name(result.classes[static_cast<std::size_t>(*twice)])),
          "name each class once; a multi-hot row, as [0, 1, 0, 0, 1], is the classes [1, 4]");
    }
    const std::string text = fmt::to_string(fmt::join(found, ", "));
    result.items.push_back({item.path, keys.take(make_key(item.key)),
                            item.has_list ? fmt::format("[{}]", text) : text});
  }
  return result;
}

}  // namespace scaletrain::app
