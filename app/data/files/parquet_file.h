// Reads a Parquet file row by row with Arrow (app/parquet/parquet_library.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/parquet/parquet_library.h"

namespace scaletrain::app {

class ParquetFile {
 public:
  // `only`: names of columns to read, if they exist; {}: all. Throws core::UsageError if Arrow is
  // missing, and core::DataError naming a damaged file, as next() does.
  explicit ParquetFile(const std::string& path, const std::vector<std::string>& only = {});

  const std::vector<std::string>& columns() const { return rows_->columns(); }
  std::string huggingface() const { return rows_->huggingface(); }  // as ParquetRows has it

  // Reads a row with a cell for each column; returns false after the last row.
  bool next(std::vector<ParquetCell>& row);

 private:
  template <class Body>
  void named(const Body& body) const;

  std::string path_;
  std::unique_ptr<ParquetRows> rows_;
};

}  // namespace scaletrain::app
