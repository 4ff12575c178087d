// Loads libscaletrain_parquet.so, which contains Arrow, only when a Parquet file is imported, so
// that scaletrain-data neither links nor loads Arrow.
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
    kBytes,   // bytes, or the bytes of a struct {bytes, path}, as Hugging Face's datasets write
              // images
    kText,    // UTF-8
    kNumber,  // an integer or boolean
    kJson,    // anything else
  };
  Kind kind = Kind::kNull;
  std::string text;         // integer or boolean as JSON
  std::int64_t number = 0;  // kNumber only
};

// Reads the rows of one file in order, by one thread. Throws std::runtime_error, without the file's
// name, for a damaged file.
class ParquetRows {
 public:
  virtual ~ParquetRows() = default;

  // Returns the columns that are read, in the file's order.
  virtual const std::vector<std::string>& columns() const = 0;
  // Metadata that Hugging Face's datasets wrote about the columns, JSON; "" if there are none.
  virtual std::string huggingface() const = 0;
  // Reads a row with a cell for each column; returns false after the last row.
  virtual bool next(std::vector<ParquetCell>& row) = 0;
};

struct ParquetLibrary {
  // `only`: names of columns to read, if they exist; {}: all. Throws std::runtime_error like
  // ParquetRows.
  std::unique_ptr<ParquetRows> (*open)(const std::string& path,
                                       const std::vector<std::string>& only);
};

}  // namespace scaletrain::app

// The library's one symbol.
extern "C" const scaletrain::app::ParquetLibrary* scaletrain_parquet_library();
