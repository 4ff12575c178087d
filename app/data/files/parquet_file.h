// A Parquet file row by row, read by Arrow (app/parquet/parquet_library.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/parquet/parquet_library.h"

namespace scaletrain::app {

class ParquetFile {
 public:
  // `only`: the columns to read, of those that are there; all where it is empty. Throws
  // core::UsageError where Arrow is not there; core::DataError naming the file for damage, which
  // next() throws too.
  explicit ParquetFile(const std::string& path, const std::vector<std::string>& only = {});

  const std::vector<std::string>& columns() const { return rows_->columns(); }
  std::string huggingface() const { return rows_->huggingface(); }  // as ParquetRows has it

  // A cell for each column; false after the last row.
  bool next(std::vector<ParquetCell>& row);

 private:
  template <class Body>
  void named(const Body& body) const;

  std::string path_;
  std::unique_ptr<ParquetRows> rows_;
};

}  // namespace scaletrain::app
