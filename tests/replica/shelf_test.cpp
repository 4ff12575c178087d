#include "lib/replica/shelf.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/replica/node_support.h"

namespace scaletrain::replica {
namespace {

void put_on(Shelf& shelf, const std::string& save, std::int64_t step, const std::string& name,
            const std::string& text) {
  const auto file = shelf.begin(save, step);
  file->append(test::bytes_of(text));
  shelf.put(save, name, file);
}

std::string names_on(const Shelf& shelf) {
  std::string text;
  for (const HeldSave& save : shelf.list()) {
    text += (text.empty() ? "" : " ") + save.name + (save.manifest.empty() ? "" : "*");
  }
  return text;
}

std::string held_text(const Shelf& shelf, const std::string& save, const std::string& name) {
  const auto file = shelf.find(save, name);
  if (!file) return "none";
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

TEST_CASE("the newest whole save stays until the next one is whole and a third begins") {
  Shelf shelf(1000);
  put_on(shelf, "a", 1, "model", "aaa");
  CHECK(names_on(shelf) == "a");
  put_on(shelf, "b", 2, "model", "bbb");  // a was given up
  CHECK(names_on(shelf) == "b");
  shelf.finish("b", 2, "manifest", "seal");
  put_on(shelf, "c", 3, "model", "ccc");
  CHECK(names_on(shelf) == "b* c");
  put_on(shelf, "d", 4, "model", "ddd");  // c was given up: b is still the newest
  CHECK(names_on(shelf) == "b* d");
  shelf.finish("d", 4, "manifest", "seal");
  CHECK(names_on(shelf) == "b* d*");
  put_on(shelf, "e", 5, "model", "eee");
  CHECK(names_on(shelf) == "d* e");
  CHECK(shelf.held_bytes() == 6);
  CHECK(held_text(shelf, "d", "model") == "ddd");
  CHECK(held_text(shelf, "b", "model") == "none");
  CHECK(held_text(shelf, "d", "state") == "none");
}

TEST_CASE("a file is replaced by the next of its name, and counts when it is put") {
  Shelf shelf(1000);
  put_on(shelf, "a", 1, "model", "first");
  const auto begun = shelf.begin("a", 1);
  begun->append(test::bytes_of("2nd"));
  CHECK(held_text(shelf, "a", "model") == "first");
  shelf.put("a", "model", begun);
  CHECK(held_text(shelf, "a", "model") == "2nd");
  CHECK(shelf.list().front().files.at("model") == 3);
}

TEST_CASE("a save of a whole one's name is another one") {
  Shelf shelf(1000);
  put_on(shelf, "a", 1, "model", "first");
  shelf.finish("a", 1, "manifest", "seal");
  put_on(shelf, "a", 1, "model", "2nd");
  CHECK(names_on(shelf) == "a* a");
  CHECK(held_text(shelf, "a", "model") == "2nd");
  shelf.finish("a", 1, "another", "seal");
  CHECK(shelf.list().back().manifest == "another");
}

TEST_CASE("a file whose save is gone meanwhile is dropped") {
  Shelf shelf(1000);
  const auto late = shelf.begin("a", 1);
  late->append(test::bytes_of("late"));
  put_on(shelf, "b", 2, "model", "bbb");
  shelf.put("a", "model", late);
  CHECK(names_on(shelf) == "b");
  shelf.finish("b", 2, "manifest", "seal");
  shelf.put("b", "model", late);
  CHECK(held_text(shelf, "b", "model") == "bbb");
}

TEST_CASE("what lies beyond the step that a run goes on from is forgotten") {
  Shelf shelf(1000);
  for (const int step : {1, 2}) {
    put_on(shelf, std::to_string(step), step, "model", "aaa");
    shelf.finish(std::to_string(step), step, "manifest", "seal");
  }
  shelf.forget_beyond(2);
  CHECK(names_on(shelf) == "1* 2*");
  shelf.forget_beyond(1);
  CHECK(names_on(shelf) == "1*");
  shelf.forget_beyond(-1);
  CHECK(names_on(shelf).empty());
  CHECK(shelf.held_bytes() == 0);
}

TEST_CASE("it takes so many bytes and no more") {
  Shelf shelf(10);
  put_on(shelf, "a", 1, "model", "0123456789");
  const auto file = shelf.begin("a", 1);
  std::string said;
  try {
    file->append(test::bytes_of("x"));
  } catch (const core::OutOfMemoryError& error) {
    said = error.what();
  }
  CHECK(said == "the memory for other nodes' checkpoints: may take 10 bytes and no more");
}

}  // namespace scaletrain::replica
