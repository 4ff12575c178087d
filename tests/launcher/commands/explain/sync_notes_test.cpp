#include "launcher/commands/explain/sync_notes.h"

#include <doctest/doctest.h>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

std::vector<std::string> notes_of(const recipe::Sync& sync, int replicas) {
  recipe::Recipe recipe;
  recipe.sync = sync;
  return sync_notes(recipe, replicas);
}

}  // namespace

TEST_CASE("explain lists what decoupled replicas do not support, and whose loss ends the job") {
  using Notes = std::vector<std::string>;
  const std::string outlives =
      "sync: a replica that is lost does not end the job, rank 0's does; the job then exits with "
      "77";
  const std::string own =
      "sync: each of 4 replicas exchanges weights after every 8 steps of its own, at most 2 times "
      "more often than the slowest: neither the bits nor the order of samples are those of another "
      "run";
  CHECK(notes_of({.name = "every_step", .steps = 1}, 4).empty());
  CHECK(notes_of({.name = "periodic", .steps = 8}, 4).empty());
  CHECK(notes_of({.name = "async", .steps = 8}, 1).empty());
  const recipe::Sync async{.name = "async", .steps = 8, .staleness = 2};
  CHECK(notes_of(async, 4) == Notes{own, outlives});
  CHECK(notes_of({.name = "diloco", .steps = 8}, 4) == Notes{outlives});
  CHECK(notes_of({.name = "diloco", .steps = 8, .fragments = 2, .overlap = 3}, 4) ==
        Notes{"sync: training goes on for 3 steps while a fragment is exchanged; validations and "
              "saves wait for its end; the loss of any rank ends the job"});
}

TEST_CASE("explain says what replicas of several ranks exchange") {
  const std::string outlives =
      "sync: a replica that is lost, as one of its ranks is, does not end the job, rank 0's does; "
      "the job then exits with 77";
  recipe::Recipe recipe;
  recipe.sync = {.name = "diloco", .steps = 50};
  recipe.parallel.shard = 4;
  recipe.parallel.tensor = 2;
  CHECK(
      sync_notes(recipe, 2) ==
      std::vector<std::string>{
          "sync: each of 2 replicas of 8 ranks trains alone for 50 steps, then each rank exchanges "
          "weights with those that own the same",
          outlives});
  CHECK(sync_notes(recipe, 1).empty());
  recipe.parallel.expert = 8;
  CHECK(sync_notes(recipe, 2) ==
        std::vector<std::string>{
            "sync: each of 2 replicas of 16 ranks trains alone for 50 steps, then each rank "
            "exchanges weights with those that own the same",
            outlives});
  recipe.early_stopping.emplace();
  CHECK(sync_notes(recipe, 2) ==
        std::vector<std::string>{
            "sync: each of 2 replicas of 16 ranks trains alone for 50 steps, then each rank "
            "exchanges weights with those that own the same; the loss of any rank ends the job"});
}

}  // namespace scaletrain::launcher
