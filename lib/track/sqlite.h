// An SQLite database: statements with bound values.
//
// A database that another process has locked is TryAgain, any other fault core::StorageError.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

struct sqlite3;

namespace scaletrain::track {

using SqlValue = std::variant<std::int64_t, std::string>;

class Sqlite {
 public:
  // Opens or makes the file, with write-ahead logging.
  explicit Sqlite(std::filesystem::path path);

  // Executes one statement whose parameters "?" are `values`.
  void run(const std::string& sql, const std::vector<SqlValue>& values = {});

  // Throws core::StorageError if the file was removed or replaced, since SQLite would continue with
  // the unlinked file.
  void check_file() const;

 private:
  [[noreturn]] void fail(int code) const;

  struct Closer {
    void operator()(sqlite3* handle) const;
  };

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Closer> handle_;
  ino_t inode_ = 0;
};

// Begins a transaction for writing; rolled back unless committed.
class SqlTransaction {
 public:
  explicit SqlTransaction(Sqlite& database);
  ~SqlTransaction();
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;
  void commit();

 private:
  Sqlite& database_;
  bool is_open_ = true;
};

}  // namespace scaletrain::track
