#include "app/data/files/parquet_file.h"

#include <stdexcept>

#include "lib/core/error.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::app {
namespace {

const ParquetLibrary* open_parquet_library() {
  void* const symbol = core::symbol_beside_us(
      "libscaletrain_parquet.so", "scaletrain_parquet_library", "reading Parquet",
      "run scripts/setup.sh, which installs pyarrow into .deps/venv, and build the target "
      "scaletrain_parquet");
  return reinterpret_cast<decltype(&scaletrain_parquet_library)>(symbol)();
}

}  // namespace

// Errors become ours.
template <class Body>
void ParquetFile::named(const Body& body) const {
  try {
    body();
  } catch (const std::runtime_error& error) {
    core::refuse_placeholder_file(path_);
    throw core::DataError(path_, error.what(), "name a complete Parquet file");
  }
}

ParquetFile::ParquetFile(const std::string& path, const std::vector<std::string>& only)
    : path_(path) {
  static const ParquetLibrary* const library = open_parquet_library();
  named([&] { rows_ = library->open(path, only); });
}

bool ParquetFile::next(std::vector<ParquetCell>& row) {
  bool more = false;
  named([&] { more = rows_->next(row); });
  return more;
}

}  // namespace scaletrain::app
