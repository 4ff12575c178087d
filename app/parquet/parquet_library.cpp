// Implements parquet_library.h with Arrow. Arrow's types stay in this file: its statuses and
// exceptions become std::runtime_error.
#include "app/parquet/parquet_library.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "lib/core/text/json_text.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kBatchRows = 64;  // in memory at a time, so that a row may have megabytes
constexpr std::int64_t kPageBuffer = 1 << 20;

using Json = nlohmann::ordered_json;

void require(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <class T>
T value_of(arrow::Result<T> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

template <class T>
const T& as(const arrow::Array& array) {
  return static_cast<const T&>(array);
}

// Bytes or text; nullopt for an array of anything else.
std::optional<std::string_view> bytes_at(const arrow::Array& array, std::int64_t row) {
  switch (array.type_id()) {
    case arrow::Type::BINARY:
    case arrow::Type::STRING:
      return as<arrow::BinaryArray>(array).GetView(row);
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::LARGE_STRING:
      return as<arrow::LargeBinaryArray>(array).GetView(row);
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::STRING_VIEW:
      return as<arrow::BinaryViewArray>(array).GetView(row);
    case arrow::Type::FIXED_SIZE_BINARY:
      return as<arrow::FixedSizeBinaryArray>(array).GetView(row);
    default:
      return std::nullopt;
  }
}

bool is_text(const arrow::Array& array) {
  return array.type_id() == arrow::Type::STRING || array.type_id() == arrow::Type::LARGE_STRING ||
         array.type_id() == arrow::Type::STRING_VIEW;
}

Json json_at(const arrow::Array& array, std::int64_t row);

Json list_at(const arrow::Array& values) {
  Json list = Json::array();
  for (std::int64_t i = 0; i < values.length(); ++i) list.push_back(json_at(values, i));
  return list;
}

Json struct_at(const arrow::StructArray& array, std::int64_t row) {
  Json object = Json::object();
  for (int i = 0; i < array.num_fields(); ++i) {
    object[array.struct_type()->field(i)->name()] = json_at(*array.field(i), row);
  }
  return object;
}

// Returns a value as JSON; types that JSON lacks, such as dates, as Arrow prints them.
Json json_at(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return as<arrow::BooleanArray>(array).Value(row);
    case arrow::Type::INT8:
      return as<arrow::Int8Array>(array).Value(row);
    case arrow::Type::UINT8:
      return as<arrow::UInt8Array>(array).Value(row);
    case arrow::Type::INT16:
      return as<arrow::Int16Array>(array).Value(row);
    case arrow::Type::UINT16:
      return as<arrow::UInt16Array>(array).Value(row);
    case arrow::Type::INT32:
      return as<arrow::Int32Array>(array).Value(row);
    case arrow::Type::UINT32:
      return as<arrow::UInt32Array>(array).Value(row);
    case arrow::Type::INT64:
      return as<arrow::Int64Array>(array).Value(row);
    case arrow::Type::UINT64:
      return as<arrow::UInt64Array>(array).Value(row);
    case arrow::Type::FLOAT:
      return as<arrow::FloatArray>(array).Value(row);
    case arrow::Type::DOUBLE:
      return as<arrow::DoubleArray>(array).Value(row);
    case arrow::Type::STRUCT:
      return struct_at(as<arrow::StructArray>(array), row);
    case arrow::Type::MAP:
    case arrow::Type::LIST:
      return list_at(*as<arrow::ListArray>(array).value_slice(row));
    case arrow::Type::LARGE_LIST:
      return list_at(*as<arrow::LargeListArray>(array).value_slice(row));
    case arrow::Type::FIXED_SIZE_LIST:
      return list_at(*as<arrow::FixedSizeListArray>(array).value_slice(row));
    case arrow::Type::DICTIONARY: {
      const auto& coded = as<arrow::DictionaryArray>(array);
      return json_at(*coded.dictionary(), coded.GetValueIndex(row));
    }
    case arrow::Type::EXTENSION:
      return json_at(*as<arrow::ExtensionArray>(array).storage(), row);
    default:
      break;
  }
  const auto bytes = bytes_at(array, row);
  if (bytes && !is_text(array)) {
    throw std::runtime_error("has bytes inside a list or a struct, which JSON cannot represent");
  }
  return bytes ? std::string(*bytes) : value_of(array.GetScalar(row))->ToString();
}

ParquetCell cell_at(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return {};
  if (array.type_id() == arrow::Type::DICTIONARY) {
    const auto& coded = as<arrow::DictionaryArray>(array);
    return cell_at(*coded.dictionary(), coded.GetValueIndex(row));
  }
  if (array.type_id() == arrow::Type::EXTENSION) {
    return cell_at(*as<arrow::ExtensionArray>(array).storage(), row);
  }
  if (const auto bytes = bytes_at(array, row)) {
    const auto kind = is_text(array) ? ParquetCell::Kind::kText : ParquetCell::Kind::kBytes;
    return {kind, std::string(*bytes)};
  }
  if (array.type_id() == arrow::Type::STRUCT) {
    const auto bytes = as<arrow::StructArray>(array).GetFieldByName("bytes");
    if (bytes && bytes_at(*bytes, row) && !is_text(*bytes)) return cell_at(*bytes, row);
  }
  const Json json = json_at(array, row);
  ParquetCell cell{ParquetCell::Kind::kJson, core::json_text(json)};
  const bool fits =
      json.is_number_unsigned() ? json.get<std::uint64_t>() <= INT64_MAX : json.is_number_integer();
  if (fits || json.is_boolean()) {
    cell.kind = ParquetCell::Kind::kNumber;
    cell.number = json.is_boolean() ? std::int64_t{json.get<bool>()} : json.get<std::int64_t>();
  }
  return cell;
}

// The numbers of the leaves below a column, by which Parquet knows columns.
void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

class ArrowRows : public ParquetRows {
 public:
  ArrowRows(const std::string& path, const std::vector<std::string>& only) {
    parquet::ReaderProperties pages;
    pages.enable_buffered_stream();  // reads a column in parts instead of a whole row group at once
    pages.set_buffer_size(kPageBuffer);
    pages.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties rows;
    rows.set_batch_size(kBatchRows);
    rows.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    require(builder.OpenFile(path, /*memory_map=*/false, pages));
    reader_ = value_of(builder.properties(rows)->Build());
    require(reader_->GetSchema(&schema_));
    std::vector<int> groups(static_cast<std::size_t>(reader_->num_row_groups())), leaves;
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    for (const auto& field : reader_->manifest().schema_fields) {
      const std::string& name = field.field->name();
      if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
      columns_.push_back(name);
      add_leaves(field, leaves);
    }
    batches_ = value_of(reader_->GetRecordBatchReader(groups, leaves));
  }

  const std::vector<std::string>& columns() const override { return columns_; }

  std::string huggingface() const override {
    const auto metadata = schema_->metadata();
    const int found = metadata ? metadata->FindKey("huggingface") : -1;
    return found < 0 ? "" : metadata->value(found);
  }

  bool next(std::vector<ParquetCell>& row) override {
    while (!batch_ || row_ == batch_->num_rows()) {
      require(batches_->ReadNext(&batch_));
      if (!batch_) return false;
      require(batch_->ValidateFull());
      row_ = 0;
    }
    row.clear();
    for (int i = 0; i < batch_->num_columns(); ++i) {
      row.push_back(cell_at(*batch_->column(i), row_));
    }
    ++row_;
    return true;
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::string> columns_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::int64_t row_ = 0;
};

// Some of Arrow throws: its types stay on this side.
class PlainErrors : public ParquetRows {
 public:
  PlainErrors(const std::string& path, const std::vector<std::string>& only) {
    plainly([&] { rows_ = std::make_unique<ArrowRows>(path, only); });
  }

  const std::vector<std::string>& columns() const override { return rows_->columns(); }
  std::string huggingface() const override { return rows_->huggingface(); }
  bool next(std::vector<ParquetCell>& row) override {
    bool more = false;
    plainly([&] { more = rows_->next(row); });
    return more;
  }

 private:
  template <class Body>
  static void plainly(const Body& body) {
    try {
      body();
    } catch (const parquet::ParquetException& error) {
      throw std::runtime_error(error.what());
    }
  }

  std::unique_ptr<ArrowRows> rows_;
};

std::unique_ptr<ParquetRows> open_rows(const std::string& path,
                                       const std::vector<std::string>& only) {
  return std::make_unique<PlainErrors>(path, only);
}

}  // namespace
}  // namespace scaletrain::app

extern "C" const scaletrain::app::ParquetLibrary* scaletrain_parquet_library() {
  static constexpr scaletrain::app::ParquetLibrary kLibrary{.open = scaletrain::app::open_rows};
  return &kLibrary;
}
