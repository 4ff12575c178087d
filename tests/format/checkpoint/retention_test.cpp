#include "lib/format/checkpoint/retention.h"

#include <doctest/doctest.h>

#include <chrono>

#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using Kept = std::map<std::int64_t, std::string>;
using Steps = std::vector<std::int64_t>;

// Of a set of 8 samples in batches of 2: four steps an epoch. The newest names `bests`.
Survey survey_of(const Steps& steps, const Steps& bests = {}) {
  Survey survey;
  for (const std::int64_t step : steps) {
    TrainState& state = survey.states[step];
    state.step = step;
    state.epoch = step / 4;
    state.step_in_epoch = step % 4;
    state.set_samples = 8;
    state.global_batch = 2;
  }
  for (const std::int64_t best : bests) {
    for (auto& [step, state] : survey.states) state.best_steps.push_back({best, 0.5});
  }
  return survey;
}

}  // namespace

TEST_CASE("the newest, the best and the last stay") {
  CHECK(kept_checkpoints(survey_of({1, 2, 3, 4, 5}), 5, {.last = 2}, {}) ==
        Kept{{4, "last"}, {5, "newest"}});
  CHECK(kept_checkpoints(survey_of({1, 2, 3, 4, 5}, {1, 3}), 5, {.last = 2}, {}) ==
        Kept{{1, "best"}, {3, "best"}, {4, "last"}, {5, "newest"}});
  CHECK(kept_checkpoints(survey_of({1, 2, 3}), 3, {.last = 0}, {}) == Kept{{3, "newest"}});
  CHECK(kept_checkpoints(survey_of({1, 2}), 2, {.last = 9}, {}) ==
        Kept{{1, "last"}, {2, "newest"}});
}

TEST_CASE("where a best one was not written, those before it stay") {
  Survey survey = survey_of({100, 200, 300, 400});
  for (const auto& [step, best] :
       std::map<std::int64_t, std::int64_t>{{100, 100}, {200, 100}, {300, 250}, {400, 250}}) {
    survey.states.at(step).best_steps = {{best, 0.5}};
  }
  CHECK(kept_checkpoints(survey, 400, {.last = 1}, {}) ==
        Kept{{100, "best"}, {250, "best"}, {400, "newest"}});
  survey.unread[250] = "unreadable";
  CHECK(kept_checkpoints(survey, 400, {.last = 1}, {}) == Kept{{250, "best"}, {400, "newest"}});
}

TEST_CASE("checkpoints of later steps do not stay: training went back behind them") {
  CHECK(kept_checkpoints(survey_of({10, 20, 30, 40}), 20, {.last = 5}, {}) ==
        Kept{{10, "last"}, {20, "newest"}});
}

TEST_CASE(
    "keep_every keeps checkpoints at least this many steps or epochs apart, from the oldest on") {
  CHECK(kept_checkpoints(survey_of({1, 2, 5, 6, 9}), 9, {.last = 1, .every_steps = 4}, {}) ==
        Kept{{1, "every"}, {5, "every"}, {9, "newest"}});
  // What went before changes nothing of what stays.
  CHECK(kept_checkpoints(survey_of({1, 5, 9, 12}), 12, {.last = 1, .every_steps = 4}, {}) ==
        Kept{{1, "every"}, {5, "every"}, {9, "every"}, {12, "newest"}});
  CHECK(kept_checkpoints(survey_of({4, 6, 8, 12}), 12, {.last = 1, .every_epochs = 2}, {}) ==
        Kept{{4, "every"}, {12, "newest"}});
  CHECK(kept_checkpoints(survey_of({4, 6, 8, 12}), 12, {.last = 1, .every_epochs = 0.5}, {}) ==
        Kept{{4, "every"}, {6, "every"}, {8, "every"}, {12, "newest"}});
  Survey parts = survey_of({2, 3, 4});  // 0.2, 0.3 and 0.4 of an epoch, whose difference is 0.09999
  for (auto& [step, state] : parts.states) {
    state.epoch = 0;
    state.step_in_epoch = step;
    state.set_samples = 20;
  }
  CHECK(kept_checkpoints(parts, 4, {.last = 1, .every_epochs = 0.1}, {}).size() == 3);
}

TEST_CASE("keep_hours keeps checkpoints that are younger") {
  const std::map<std::int64_t, double> hours{{1, 7}, {2, 5.9}};  // the third's is not known
  CHECK(kept_checkpoints(survey_of({1, 2, 3, 4}), 4, {.last = 1, .hours = 6}, hours) ==
        Kept{{2, "age"}, {3, "age"}, {4, "newest"}});
}

TEST_CASE("a checkpoint's age is that of its manifest") {
  const test::TemporaryFolder run;
  const auto path = test::publish_sensible(run.path, 3);
  const auto checkpoints = run.path / "checkpoints";
  std::filesystem::last_write_time(
      path / kManifestName,
      std::filesystem::file_time_type::clock::now() - std::chrono::minutes(90));
  const auto hours = hours_since_written(checkpoints, survey_checkpoints(checkpoints));
  REQUIRE(hours.size() == 1);
  CHECK(hours.at(3) == doctest::Approx(1.5).epsilon(0.01));
}
