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
#include "lib/core/text/shell_word.h"
#include "lib/core/text/text.h"
#include "lib/format/csv.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = FoundData::Json;

constexpr std::int64_t kMostListBytes = std::int64_t{1} << 30;
constexpr std::size_t kHeadBytes = 1 << 16;

// Column of a header; -1: it has none.
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

std::vector<std::string> labels_of_csv(const fs::path& file) {
  const std::string place = file.string();
  const std::string text = core::read_file(file, kMostListBytes, core::ExitCode::kData);
  format::CsvReader reader(text, place);
  const format::CsvRow header = reader.next().value();
  const auto label = static_cast<std::size_t>(column(header, "label"));
  std::vector<std::string> labels;
  while (const auto row = reader.next()) {
    format::check_width(*row, header, place);
    labels.push_back(row->fields[label]);
  }
  return labels;
}

// The kind of `data import` for a path; "": none.
std::string import_kind(const GivenData& given) {
  static const std::map<std::string, std::string> kKinds{{".parquet", "parquet"},
                                                         {".tfrecord", "tfrecord"},
                                                         {".tfrecords", "tfrecord"},
                                                         {".lmdb", "lmdb"},
                                                         {".mdb", "lmdb"}};
  std::error_code ignored;
  if (given.is_folder && fs::exists(given.path / "data.mdb", ignored)) return "lmdb";
  const auto kind = kKinds.find(given.path.extension().string());
  return kind == kKinds.end() || !(given.is_file || given.is_folder) ? "" : kind->second;
}

// The Parquet or TFRecord files of a folder as one pattern of the shell; "": it has none.
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
  return given.is_file && given.path.extension() == ".csv" && is_image_csv(given.path);
}

FoundData fill_image_list(const GivenData& given) {
  FoundData found;
  found.name = name_of_data(given);
  const std::string folder = found.name + "-shards";
  found.commands = {fmt::format("scaletrain data pack {} {}", core::shell_word(given.text),
                                core::shell_word(folder))};
  const std::vector<std::string> labels = labels_of_csv(given.path);
  found.samples = std::ssize(labels);
  found.classes = std::ssize(std::set<std::string>(labels.begin(), labels.end()));
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
  std::string kind = import_kind(given), source = core::shell_word(given.text);
  if (kind.empty()) source = pattern_in(given, kind);
  const std::string folder = core::shell_word(found.name + "-shards");
  found.commands = {fmt::format("scaletrain data import {} {} --out {}", kind, source, folder),
                    "scaletrain recipe new --data " + folder};
  return found;
}

}  // namespace scaletrain::launcher
