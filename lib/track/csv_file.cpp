#include "lib/track/csv_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/table.h"
#include "lib/track/append_file.h"

namespace scaletrain::track {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;  // of a file that gets a new column

class CsvFile : public Exporter {
 public:
  explicit CsvFile(const ExportOptions& options) : file_(options.run / "export" / "metrics.csv") {}

  void write(std::span<const Record> records) override {
    Columns columns = columns_;
    for (const Record& record : records) add_columns(record, columns);
    std::string rows;
    for (const Record& record : records) rows += csv_row(record, columns);
    if (columns.size() == columns_.size()) return file_.append(rows);
    const std::string old = core::read_file(file_.path(), kMaxBytes, core::ExitCode::kStorage);
    file_.replace(csv_header(columns) + widen_rows(old, columns.size() - columns_.size()) + rows);
    columns_ = std::move(columns);
  }

 private:
  AppendFile file_;
  Columns columns_;
};

}  // namespace

void add_columns(const Record& record, Columns& columns) {
  for (const Field& field : record.fields) {
    if (std::find(columns.begin(), columns.end(), field.name) == columns.end()) {
      columns.push_back(field.name);
    }
  }
}

std::string csv_header(const Columns& columns) {
  std::string header = "event,split";
  for (const std::string& column : columns) header += "," + core::csv_cell(column);
  return header + "\n";
}

std::string csv_row(const Record& record, const Columns& columns) {
  std::string row = core::csv_cell(record.event) + "," + core::csv_cell(record.split);
  for (const std::string& column : columns) {
    const auto field =
        std::find_if(record.fields.begin(), record.fields.end(),
                     [&](const Field& candidate) { return candidate.name == column; });
    row += ",";
    if (field != record.fields.end()) row += field->text;
  }
  return row + "\n";
}

std::string widen_rows(std::string_view file, std::size_t count) {
  std::string rows;
  const std::string fields(count, ',');
  std::size_t begin = file.find('\n');
  while (begin != std::string_view::npos && ++begin < file.size()) {
    const std::size_t end = std::min(file.find('\n', begin), file.size());
    rows += file.substr(begin, end - begin);
    rows += fields + "\n";
    begin = end;
  }
  return rows;
}

std::unique_ptr<Exporter> make_csv(const ExportOptions& options) {
  return std::make_unique<CsvFile>(options);
}

}  // namespace scaletrain::track
