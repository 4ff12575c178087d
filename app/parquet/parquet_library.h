// The door to Arrow: libscaletrain_parquet.so, opened only when a Parquet file is imported, so that
// scaletrain-data neither links nor loads Arrow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace scaletrain::app {

// One value of a row.
struct ParquetCell {
  enum class Kind {
    kNull,
    kBytes,   // bytes, or those of a struct {bytes, path}, as Hugging Face's datasets write images
    kText,    // UTF-8
    kNumber,  // a whole number, or a truth value
    kJson,    // anything else
  };
  Kind kind = Kind::kNull;
  std::string text;         // a number or a truth value as JSON
  std::int64_t number = 0;  // kNumber only
};

// The rows of one file, from the first to the last; one thread. Throws std::runtime_error, without
// the file's name, for a damaged file.
class ParquetRows {
 public:
  virtual ~ParquetRows() = default;

  // The columns that are read, in the file's order.
  virtual const std::vector<std::string>& columns() const = 0;
  // Metadata that Hugging Face's datasets wrote about the columns, JSON; "" if there are none.
  virtual std::string huggingface() const = 0;
  // A cell for each column; false after the last row.
  virtual bool next(std::vector<ParquetCell>& row) = 0;
};

struct ParquetLibrary {
  // `only`: the columns to read, of those that are there; all where it is empty. Throws
  // std::runtime_error as ParquetRows does.
  std::unique_ptr<ParquetRows> (*open)(const std::string& path,
                                       const std::vector<std::string>& only);
};

}  // namespace scaletrain::app

// The library's one symbol.
extern "C" const scaletrain::app::ParquetLibrary* scaletrain_parquet_library();
