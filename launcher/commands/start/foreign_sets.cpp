// Lists of images and data sets of other formats: a command turns them into shards first.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/commands/start/given_data.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/text.h"
#include "lib/format/csv.h"
#include "lib/format/tar/sample_list.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostListBytes = std::int64_t{1} << 30;
constexpr std::size_t kHeadBytes = 1 << 16;

// Returns the column of a header; -1 if it is absent.
std::ptrdiff_t column(const format::CsvRow& header, const std::string& name) {
  const auto found = std::find(header.fields.begin(), header.fields.end(), name);
  return found == header.fields.end() ? -1 : found - header.fields.begin();
}

bool is_image_csv(const fs::path& file) {
  const std::string place = file.string();
  const std::string head = head_of(file, kHeadBytes);
  format::CsvReader reader(std::string_view(head).substr(0, head.find('\n')), place);
  const auto header = reader.next();
  return header && column(*header, "path") >= 0 && column(*header, "label") >= 0;
}

bool is_image_jsonl(const fs::path& file) {
  const std::string head = head_of(file, kHeadBytes);
  const Json first = Json::parse(head.substr(0, head.find('\n')), nullptr, false);
  return first.is_object() && first.contains("path") && first.contains("label");
}

std::vector<format::ListedSample> read_list(const GivenData& given) {
  const std::string text = core::read_file(given.path, kMostListBytes, core::ExitCode::kData);
  return given.path.extension() == ".csv" ? format::parse_csv_list(text, given.text)
                                          : format::parse_jsonl_list(text, given.text);
}

// Classes as `data pack` counts them: numbers from 0 to the highest, or different names.
void count_classes(const std::vector<format::ListedSample>& samples, FoundData& found) {
  std::set<std::string> names;
  std::int64_t highest = -1;
  for (const format::ListedSample& sample : samples) {
    if (sample.has_list) found.task = "multi_label_classification";
    const auto labels = sample.has_list ? sample.labels : std::vector{sample.label};
    for (const std::string& label : labels) {
      names.insert(label);
      highest = std::max(highest, core::parse_number<std::int64_t>(label).value_or(-1));
    }
  }
  found.samples = std::ssize(samples);
  found.classes = highest >= 0 ? highest + 1 : std::ssize(names);
}

// Returns the kind of `data import` for a path; "" if there is none.
std::string import_kind(const GivenData& given) {
  static const std::map<std::string, std::string> kinds{{".parquet", "parquet"},
                                                        {".tfrecord", "tfrecord"},
                                                        {".tfrecords", "tfrecord"},
                                                        {".lmdb", "lmdb"},
                                                        {".mdb", "lmdb"}};
  std::error_code ignored;
  if (given.is_folder && fs::exists(given.path / "data.mdb", ignored)) return "lmdb";
  const auto kind = kinds.find(given.path.extension().string());
  return kind == kinds.end() || !(given.is_file || given.is_folder) ? "" : kind->second;
}

// Returns the Parquet or TFRecord files of a folder as one shell pattern; "" if there are none.
std::string pattern_in(const GivenData& given, std::string& kind) {
  std::error_code error;
  if (!given.is_folder) return "";
  for (fs::directory_iterator it(given.path, error), end; !error && it != end;
       it.increment(error)) {
    const std::string ending = it->path().extension().string();
    if (ending != ".parquet" && ending != ".tfrecord") continue;
    kind = ending.substr(1);
    return core::shell_word(given.text) + "/*" + ending;
  }
  return "";
}

}  // namespace

bool is_image_list(const GivenData& given) {
  if (!given.is_file) return false;
  const std::string ending = given.path.extension().string();
  return (ending == ".csv" && is_image_csv(given.path)) ||
         (ending == ".jsonl" && is_image_jsonl(given.path));
}

FoundData fill_image_list(const GivenData& given) {
  FoundData found;
  found.name = name_of_data(given);
  const std::string folder = found.name + "-shards";
  found.commands = {fmt::format("scaletrain data pack {} {}", core::shell_word(given.text),
                                core::shell_word(folder))};
  count_classes(read_list(given), found);
  found.train = {{"shards", folder + "/train-*.tar"}};
  return found;
}

bool is_foreign(const GivenData& given) {
  std::string kind;
  return !import_kind(given).empty() || !pattern_in(given, kind).empty();
}

FoundData fill_foreign(const GivenData& given) {
  FoundData found;
  found.name = name_of_data(given);
  if (given.is_file) static_cast<void>(head_of(given.path, core::kPlaceholderBytes));
  std::string kind = import_kind(given), source = core::shell_word(given.text);
  if (kind.empty()) source = pattern_in(given, kind);
  const std::string folder = core::shell_word(found.name + "-shards");
  found.commands = {fmt::format("scaletrain data import {} {} --out {}", kind, source, folder),
                    "scaletrain recipe new --data " + folder};
  return found;
}

}  // namespace scaletrain::launcher
