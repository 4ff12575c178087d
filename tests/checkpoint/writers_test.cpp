#include "lib/checkpoint/writers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "tests/checkpoint/team_support.h"
#include "tests/format/checkpoint_support.h"

using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

format::FolderFiles one_file(const std::string& name, std::int64_t bytes) {
  return format::FileEntries{{name, {bytes, "sum"}}};
}

// What rank 0 has of all ranks, as "NAME:BYTES ".
std::string text_of(const format::FolderFiles& files) {
  std::string text;
  for (const auto& [name, entry] : files.files) text += fmt::format("{}:{} ", name, entry.bytes);
  return text;
}

}  // namespace

TEST_CASE("what all ranks have written comes together at rank 0, save after save") {
  std::string said;
  test::as_ranks(3, [&](Writers& writers) {
    for (int save = 1; save <= 3; ++save) {
      if (writers.rank() != 0) {
        writers.follow([&](const std::string& folder) {
          return one_file(fmt::format("{}-{}", folder, writers.rank()), save);
        });
        continue;
      }
      writers.begin();
      if (save != 2) {  // rank 0 has given that one up before it asked
        writers.ask(fmt::format("step{}", save));
        format::FolderFiles files = one_file("own", save);
        writers.collect(files);
        said += text_of(files);
      }
      writers.end();
    }
  });
  CHECK(said == "own:1 step1-1:1 step1-2:1 own:3 step3-1:3 step3-2:3 ");
}

TEST_CASE("pieces come with the files that hold them") {
  std::string said;
  test::as_ranks(2, [&](Writers& writers) {
    if (writers.rank() != 0) {
      writers.follow([](const std::string&) {
        format::FolderFiles files = one_file("b", 10);
        files.tensors["m"]["w"] = {"U8", {4}, {{format::range_piece({4}, 2, 4), "b", 8}}};
        return files;
      });
      return;
    }
    writers.begin();
    writers.ask("folder");
    format::FolderFiles files = one_file("a", 10);
    files.tensors["m"]["w"] = {"U8", {4}, {{format::range_piece({4}, 0, 2), "a", 8}}};
    writers.collect(files);
    format::check_tables(files.tensors, files.files, "here");
    said = text_of(files);
    writers.end();
  });
  CHECK(said == "a:10 b:10 ");
}

TEST_CASE("a rank's error is rank 0's, of its kind, when all have answered; it may ask once more") {
  std::vector<std::string> errors;
  std::string said;
  test::as_ranks(3, [&](Writers& writers) {
    int asked = 0;
    if (writers.rank() != 0) {
      writers.follow([&](const std::string&) -> format::FolderFiles {
        ++asked;
        if (asked == 1 && writers.rank() == 2) throw core::StorageError("/disk", "is full", "free");
        if (asked == 2) throw core::DivergedError("step 3", "is not finite", "lower it");
        if (asked == 3 && writers.rank() == 1) throw std::runtime_error("anything");
        return one_file(fmt::format("{}", writers.rank()), asked);
      });
      return;
    }
    writers.begin();
    for (int attempt = 1; attempt <= 4; ++attempt) {
      writers.ask("folder");
      format::FolderFiles files({});
      try {
        writers.collect(files);
        said = text_of(files);
      } catch (const core::StorageError& error) {
        errors.push_back(std::string("storage: ") + error.what());
      } catch (const core::Error& error) {
        errors.push_back(fmt::format("{}: {}", static_cast<int>(error.exit_code()), error.what()));
      }
    }
    writers.end();
  });
  CHECK(errors == std::vector<std::string>{"storage: rank 2: /disk: is full\n  free",
                                           "76: rank 1: step 3: is not finite\n  lower it",
                                           "1: rank 1: a share of a checkpoint: anything"});
  CHECK(said == "1:4 2:4 ");
}

TEST_CASE("a rank that shows itself no more is not waited for, and is named") {
  const Patience short_one{.silent_s = 0.6, .absent_s = 0.6, .in_haste_s = 0.6};
  std::string found;
  test::as_ranks(
      3,
      [&](Writers& writers) {
        if (writers.rank() == 2) return;  // it never comes
        if (writers.rank() == 1) {
          return writers.follow([](const std::string&) { return one_file("a", 1); });
        }
        writers.begin();
        writers.ask("folder");
        format::FolderFiles files({});
        found = test::message_of<core::StoppedError>([&] { writers.collect(files); });
        writers.end();
      },
      short_one);
  CHECK(found ==
        "rank 0: rank 2 has not responded for 1 s while a checkpoint was written\n  look at the "
        "log of that rank");
}

TEST_CASE("another rank leaves where rank 0 shows itself no more, at once in haste") {
  std::string found;
  test::as_ranks(2,
                 [&](Writers& writers) {
                   if (writers.rank() == 0) return;
                   writers.hurry();
                   found = test::message_of<core::StoppedError>([&] {
                     writers.follow([](const std::string&) { return one_file("a", 1); });
                   });
                 },
                 {.silent_s = 60, .absent_s = 900, .in_haste_s = 0.6});
  CHECK(found.starts_with("rank 1: rank 0 has not responded for 1 s"));
}

TEST_CASE("a rank that takes long is waited for as long as it shows itself") {
  const Patience short_one{.silent_s = 1.6, .absent_s = 1.6, .in_haste_s = 1.6};
  std::string said;
  test::as_ranks(
      2,
      [&](Writers& writers) {
        if (writers.rank() != 0) {
          return writers.follow([](const std::string&) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2500));
            return one_file("late", 1);
          });
        }
        writers.begin();
        writers.ask("folder");
        format::FolderFiles files({});
        writers.collect(files);
        said = text_of(files);
        writers.end();
      },
      short_one);
  CHECK(said == "late:1 ");
}

TEST_CASE("a rank that has begun a save is waited for less long than one that has not") {
  const Patience patience{.silent_s = 0.6, .absent_s = 2.6, .in_haste_s = 60};
  const auto waited_for = [&](const std::string& alive) {
    const auto board = std::make_shared<test::MemoryBoard>();
    board->put("alive/1", alive);
    Writers writers(board, 0, 2, patience);
    writers.begin();
    writers.ask("folder");
    format::FolderFiles files({});
    return test::message_of<core::StoppedError>([&] { writers.collect(files); });
  };
  CHECK(waited_for("1 7").starts_with("rank 0: rank 1 has not responded for 1 s"));
  CHECK(waited_for("0 7").starts_with("rank 0: rank 1 has not responded for 3 s"));
}

TEST_CASE("a rank shows itself from the begin of a save to its end, and not otherwise") {
  const auto board = std::make_shared<test::MemoryBoard>();
  const Patience short_one{.silent_s = 0.6, .absent_s = 0.6, .in_haste_s = 0.6};
  Writers ended(board, 0, 1), idle(board, 1, 5), left(board, 2, 5, short_one), done(board, 3, 5);
  const Writers::WriteShare write = [](const std::string&) { return one_file("a", 1); };
  CHECK_THROWS_AS(left.follow(write), core::StoppedError);
  ended.begin();
  CHECK(board->get("alive/0") == "1 1");
  ended.end();
  done.follow(write);
  std::vector<std::string> before;
  for (const char* const key : {"alive/0", "alive/1", "alive/2", "alive/3"}) {
    before.push_back(board->get(key));
  }
  CHECK(before[1].empty());
  CHECK(!before[2].empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  CHECK(before == std::vector<std::string>{board->get("alive/0"), board->get("alive/1"),
                                           board->get("alive/2"), board->get("alive/3")});
}
