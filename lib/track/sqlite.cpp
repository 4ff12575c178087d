#include "lib/track/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <exception>
#include <utility>

#include "lib/core/error.h"
#include "lib/track/feed/sink.h"

namespace scaletrain::track {
namespace {

constexpr int kBusyMs = 2000;

ino_t inode_of(const std::filesystem::path& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

struct StatementCloser {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

int bind_value(sqlite3_stmt* statement, int position, const SqlValue& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, position, *number);
  }
  const auto& text = std::get<std::string>(value);
  return sqlite3_bind_text(statement, position, text.data(), static_cast<int>(text.size()),
                           nullptr);  // SQLITE_STATIC: the value outlives the statement
}

}  // namespace

void Sqlite::Closer::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Sqlite::Sqlite(std::filesystem::path path) : path_(std::move(path)) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path_.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(code);
  sqlite3_busy_timeout(handle, kBusyMs);
  run("PRAGMA journal_mode = WAL");
  run("PRAGMA synchronous = NORMAL");
  inode_ = inode_of(path_);
}

void Sqlite::run(const std::string& sql, const std::vector<SqlValue>& values) {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr);
  const Statement statement(raw);
  for (std::size_t i = 0; code == SQLITE_OK && i < values.size(); ++i) {
    code = bind_value(raw, static_cast<int>(i) + 1, values[i]);
  }
  if (code == SQLITE_OK) code = sqlite3_step(raw);
  if (code != SQLITE_DONE && code != SQLITE_ROW) fail(code);
}

void Sqlite::check_file() const {
  if (inode_of(path_) != inode_) {
    throw core::StorageError(path_.string(), "was removed while it was written");
  }
}

void Sqlite::fail(int code) const {
  const std::string found = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const int kind = code & 0xFF;  // primary error code, without the extended part
  if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) throw TryAgain(path_.string(), found);
  throw core::StorageError(path_.string(), "SQLite: " + found);
}

SqlTransaction::SqlTransaction(Sqlite& database) : database_(database) {
  database_.run("BEGIN IMMEDIATE");
}

SqlTransaction::~SqlTransaction() {
  if (!is_open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const std::exception&) {
    return;  // SQLite has rolled back by itself after the error that is on its way
  }
}

void SqlTransaction::commit() {
  database_.run("COMMIT");
  is_open_ = false;
}

}  // namespace scaletrain::track
