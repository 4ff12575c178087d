#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "app/data/files/image_kind.h"
#include "app/data/files/parquet_file.h"
#include "app/data/files/unique_keys.h"
#include "app/data/import/import_fields.h"
#include "app/data/import/import_sources.h"
#include "lib/core/error.h"
#include "lib/core/text/lookup.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {
namespace {

using Kind = ParquetCell::Kind;

// Returns the requested column, otherwise the first usual one that exists, otherwise "".
std::string choose_column(const std::string& path, const std::vector<std::string>& columns,
                          const std::string& asked, const std::vector<std::string>& usual) {
  const auto is_there = [&](const std::string& name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (!asked.empty() && !is_there(asked)) {
    throw core::DataError(path, fmt::format("has no column \"{}\"", asked),
                          fmt::format("its columns are: {}", fmt::join(columns, ", ")));
  }
  if (!asked.empty()) return asked;
  const auto found = std::find_if(usual.begin(), usual.end(), is_there);
  return found == usual.end() ? "" : *found;
}

std::string image_column(const std::string& path, const std::vector<std::string>& columns,
                         const FieldNames& names) {
  return choose_column(path, columns, names.image, {"image", "img", "jpg", "png"});
}

std::string label_column(const std::string& path, const std::vector<std::string>& columns,
                         const FieldNames& names) {
  return choose_column(path, columns, names.label, {"label", "cls"});
}

// Returns the names of a ClassLabel in the metadata of Hugging Face's datasets; empty if there are
// none.
std::vector<std::string> noted_names(const std::string& note, const std::string& column) {
  const auto json = nlohmann::json::parse(note, nullptr, /*allow_exceptions=*/false);
  const auto names = nlohmann::json::json_pointer("/info/features") / column / "names";
  std::vector<std::string> result;
  if (!json.is_object() || !json.contains(names)) return result;
  for (const auto& name : json[names]) {
    if (name.is_string()) result.push_back(name);
  }
  return result;
}

// Classes over all files.
struct ParquetClasses {
  std::vector<std::string> names;
  bool in_text = false;  // labels are names, and not numbers
};

// Shifts `names` with the labels: the first `first_class` names have no label left. `place`: file
// with the labels; "" if no file has any.
void shift_names(ParquetClasses& classes, std::int64_t first_class, const std::string& place) {
  const auto refuse = [&](const std::string& found, const std::string& remedy) {
    throw core::UsageError("--first-class", found, remedy);
  };
  if (first_class == 0) return;
  if (place.empty()) refuse("no file has a column of labels", "--label-field names it");
  if (classes.in_text) {
    refuse(fmt::format("the labels of {} are names, which are numbered from 0 on", place),
           "leave it out");
  }
  if (classes.names.empty()) return;
  if (first_class < 0) {
    refuse(fmt::format("{} would leave the first labels without a name: {} names its classes from "
                       "0 on",
                       first_class, place),
           "leave it out, and remove samples without a label, which are -1 in Hugging Face's "
           "datasets, from the files");
  }
  const auto count = static_cast<std::int64_t>(classes.names.size());
  if (first_class >= count) {
    refuse(fmt::format("{} leaves none of the {} classes that {} names", first_class, count, place),
           "name the lowest label of the set");
  }
  classes.names.erase(classes.names.begin(), classes.names.begin() + first_class);
}

// Reads the labels of every file, which Parquet stores separately from the images.
ParquetClasses find_classes(const std::vector<std::string>& paths, const FieldNames& fields) {
  ParquetClasses classes;
  std::set<std::string> texts;
  std::string place;
  for (const std::string& path : paths) {
    const std::string label = label_column(path, ParquetFile(path).columns(), fields);
    if (label.empty()) continue;
    if (place.empty()) place = fmt::format("\"{}\" of {}", label, path);
    ParquetFile file(path, {label});
    const std::vector<std::string> noted = noted_names(file.huggingface(), label);
    if (!noted.empty() && !classes.names.empty() && noted != classes.names) {
      throw core::DataError(path, "has other classes than the files before it",
                            "import files of one set together");
    }
    if (!noted.empty()) classes.names = noted;
    std::vector<ParquetCell> row;
    while (file.next(row)) {
      if (row[0].kind == Kind::kText) texts.insert(row[0].text);
    }
  }
  if (!texts.empty()) classes = {{texts.begin(), texts.end()}, true};
  shift_names(classes, fields.first_class, place);
  return classes;
}

// The field's name up to the last dot: one that a tar's member may have.
std::string field_stem(const std::string& column) {
  std::string stem = core::lower_case(column);
  for (char& c : stem) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '.' || c == '/') c = '_';
  }
  return stem;
}

// Rows of one file to samples.
class RowImport {
 public:
  // The keys begin with `stem`.
  RowImport(std::string path, std::string stem, const std::vector<std::string>& columns,
            const FieldNames& fields, const ParquetClasses& classes)
      : path_(std::move(path)),
        key_(std::move(stem)),
        columns_(columns),
        image_(image_column(path_, columns, fields)),
        label_(label_column(path_, columns, fields)),
        first_class_(fields.first_class),
        classes_(classes) {
    std::set<std::string> stems;
    for (const std::string& column : columns_) {
      if (!stems.insert(field_stem(column)).second) {
        throw core::DataError(path_, fmt::format("has two columns \"{}\"", field_stem(column)),
                              "rename one of them");
      }
    }
  }

  ImportedSample sample(std::int64_t number, std::vector<ParquetCell> row) const {
    ImportedSample sample{fmt::format("{}-{:08}", key_, number), {}};
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string place = fmt::format("{}: row {}", path_, number);
      if (columns_[i] == image_) {
        sample.fields.push_back(image_of(std::move(row[i]), place));
      } else if (columns_[i] == label_) {
        sample.fields.push_back({"cls", std::to_string(label_of(row[i], place))});
      } else if (row[i].kind != Kind::kNull) {
        const std::string extension = extension_of(row[i]);
        sample.fields.push_back(
            {fmt::format("{}.{}", field_stem(columns_[i]), extension), std::move(row[i].text)});
      }
    }
    if (sample.fields.empty()) {
      throw core::DataError(fmt::format("{}: row {}", path_, number), "holds no value",
                            "remove such rows");
    }
    return sample;
  }

 private:
  ImportedField image_of(ParquetCell cell, const std::string& place) const {
    const std::string kind = cell.kind == Kind::kBytes ? take_image(cell.text, place) : "";
    if (kind.empty()) {
      throw core::DataError(
          place,
          cell.kind == Kind::kBytes
              ? fmt::format("its \"{}\" is not in a known image format", image_)
              : fmt::format("its \"{}\" has no bytes", image_),
          "--image-field names another column; images must be in the file, not beside it");
    }
    return {kind, std::move(cell.text)};
  }

  std::int64_t label_of(const ParquetCell& cell, const std::string& place) const {
    if (classes_.in_text && cell.kind == Kind::kText) {
      const auto& names = classes_.names;
      return std::lower_bound(names.begin(), names.end(), cell.text) - names.begin();
    }
    std::optional<std::int64_t> stored, label;
    if (cell.kind == Kind::kNumber && !classes_.in_text) stored = cell.number;
    if (stored) label = class_number(*stored, first_class_);
    if (!label) {
      const bool is_null = cell.kind == Kind::kNull;
      throw core::DataError(place,
                            fmt::format("its \"{}\" is not a class: {}", label_,
                                        is_null ? "null" : format::shown_name(cell.text)),
                            label_remedy(is_null ? -1 : stored, first_class_));
    }
    return *label;
  }

  static std::string extension_of(const ParquetCell& cell) {
    if (cell.kind == Kind::kText) return "txt";
    if (cell.kind != Kind::kBytes) return "json";
    const std::string kind = image_kind(cell.text);
    return kind.empty() ? "bin" : kind;
  }

  std::string path_, key_;
  std::vector<std::string> columns_;
  std::string image_, label_;
  std::int64_t first_class_;
  const ParquetClasses& classes_;
};

}  // namespace

ImportedSet import_parquet(const std::vector<std::string>& paths, const FieldNames& names,
                           const UseSample& use) {
  const ParquetClasses classes = find_classes(paths, names);
  UniqueKeys stems;  // Hive's layout has part-0.parquet in each folder
  for (const std::string& path : paths) {
    ParquetFile file(path);
    const RowImport rows(path, stems.take(key_stem(path)), file.columns(), names, classes);
    std::vector<ParquetCell> row;
    for (std::int64_t number = 0; file.next(row); ++number) {
      use(rows.sample(number, std::move(row)));
      row.clear();
    }
  }
  return {.classes = classes.names};
}

}  // namespace scaletrain::app
