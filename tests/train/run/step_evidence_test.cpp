#include "lib/train/run/step_evidence.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "lib/core/error.h"
#include "lib/recipe/describe.h"
#include "tests/train/step_fakes.h"

namespace scaletrain::train::step_evidence_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Names its samples; that at position 7 cannot be read any more.
class Named : public Counting {
 public:
  Named() : Counting(0, false, [](const char*, const at::Tensor&) {}) {}
  std::string key(std::int64_t epoch, std::int64_t position) const override {
    if (position == 7) throw core::DataError("a.tar", "is gone", "restore it");
    return fmt::format("a.tar/{}.{}", epoch, position);
  }
};

struct Bench {
  Evidence of(const StepEvidence& evidence, std::int64_t step, bool looks) {
    return evidence.examine(step, looks, engine, batches, model.buffers());
  }

  Note note = [](const char*, const at::Tensor&) {};
  Named batches;
  Weighted task{1, 1, at::kFloat, note};
  Line model{1, note};
  dist::Group group{core::WorkerEnv(), at::kCPU, std::chrono::seconds(1)};
  dist::Mesh mesh{group, core::MeshPlan(1)};
  std::unique_ptr<precision::Precision> precision =
      precision::make_precision(recipe::blank_recipe().precision, {});
  std::unique_ptr<parallel::Placement> placement =
      parallel::make_placement({{.name = "weight", .tensor = model.parameters()[0]}}, mesh);
  engine::Engine engine{{model, task, *precision, *placement, mesh}, 1};
};

void add(StepEvidence& evidence, std::int64_t position, std::int64_t count, double input) {
  data::Batch batch;
  batch.epoch = 2;
  batch.position = position;
  batch.count = count;
  evidence.add(batch);
  evidence.add(task::Example{.input = at::full({count}, input), .target = {}});
}

}  // namespace

TEST_CASE("a step's evidence has the keys of its samples, its loss and the first unit not finite") {
  Bench bench;
  StepEvidence evidence(2);
  evidence.begin(3);
  add(evidence, 4, 2, 1);
  add(evidence, 6, 3, kNan);
  evidence.set_loss(at::full({}, 2.5, at::kDouble));
  evidence.begin(4);
  add(evidence, 0, 1, 1);

  const Evidence found = bench.of(evidence, 3, /*looks=*/true);
  CHECK(found.keys == std::vector<std::string>{"a.tar/2.4", "a.tar/2.5", "a.tar/2.6", "a.tar/2.8"});
  CHECK(found.samples == 5);
  CHECK(found.loss == 2.5);
  CHECK(found.unit == "input");
  CHECK(bench.model.buffers()[0].item<double>() == 0);  // BatchNorm's statistics, say
  CHECK(bench.of(evidence, 3, /*looks=*/false).unit.empty());
  CHECK(bench.of(evidence, 4, /*looks=*/true).unit.empty());
}

TEST_CASE("only the newest steps are kept, and nothing without the section") {
  Bench bench;
  StepEvidence one(1), none(0);
  for (StepEvidence* const evidence : {&one, &none}) {
    for (const std::int64_t step : {0, 1}) {
      evidence->begin(step);
      add(*evidence, step, 1, 1);
    }
  }
  CHECK(bench.of(one, 0, true).keys.empty());
  CHECK(bench.of(one, 1, true).keys.size() == 1);
  CHECK_FALSE(none.is_kept());
  CHECK(bench.of(none, 1, true).keys.empty());
}

TEST_CASE("the first keys of many samples are kept, and all samples are counted") {
  Bench bench;
  StepEvidence evidence(1);
  evidence.begin(0);
  add(evidence, 10, 100, 1);
  const Evidence found = bench.of(evidence, 0, false);
  CHECK(found.keys.size() == StepEvidence::kMostKeys);
  CHECK(found.samples == 100);
}

}  // namespace scaletrain::train::step_evidence_test
