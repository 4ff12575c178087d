#include "lib/track/sqlite.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/core/error.h"
#include "lib/track/feed/sink.h"
#include "tests/temporary_folder.h"

namespace scaletrain::track {
namespace {

// A database with one table of one column.
struct Table : test::TemporaryFolder {
  Table() { database.run("CREATE TABLE t (x UNIQUE)"); }

  // True if the row is there: a second one like it would be refused.
  bool has(std::int64_t value) {
    try {
      const SqlTransaction probe(database);
      database.run("INSERT INTO t VALUES (?)", {value});
      return false;  // and rolled back
    } catch (const core::StorageError&) {
      return true;
    }
  }

  Sqlite database{path / "a.db"};
};

}  // namespace

TEST_CASE("a transaction that is not committed leaves nothing") {
  Table table;
  {
    const SqlTransaction dropped(table.database);
    table.database.run("INSERT INTO t VALUES (?)", {std::int64_t{1}});
  }
  CHECK_FALSE(table.has(1));
  SqlTransaction kept(table.database);
  table.database.run("INSERT INTO t VALUES (?)", {std::int64_t{1}});
  kept.commit();
  CHECK(table.has(1));
}

TEST_CASE("a mistake is an error with SQLite's text") {
  Table table;
  CHECK_THROWS_WITH_AS(table.database.run("INSERT INTO u VALUES (1)"),
                       (table.file("a.db") + ": SQLite: no such table: u").c_str(),
                       core::StorageError);
}

TEST_CASE("a database that another one has locked asks to try again") {
  Table table;
  Sqlite other(table.path / "a.db");
  const SqlTransaction holder(other);
  CHECK_THROWS_AS(SqlTransaction{table.database}, TryAgain);
}

TEST_CASE("a file that was removed is noticed") {
  Table table;
  table.database.check_file();
  std::filesystem::remove(table.path / "a.db");
  CHECK_THROWS_AS(table.database.check_file(), core::StorageError);
}

TEST_CASE("a database in a folder that is not there is an error") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(Sqlite(folder.path / "absent" / "a.db"), core::StorageError);
}

}  // namespace scaletrain::track
