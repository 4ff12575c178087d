#include "lib/train/loop/integrity.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/process/time_ledger.h"
#include "lib/core/text/shell_word.h"
#include "lib/train/build/build.h"
#include "lib/train/integrity/first_finding.h"
#include "lib/train/state/go_back.h"

namespace scaletrain::train {

Integrity::Integrity(Run& run, Reporter& reporter) : run_(run), reporter_(reporter) {
  if (!run.recipe.integrity) return;
  replicas_.emplace(run);
  const std::string why = replicas_->not_applicable();
  if (!why.empty()) {
    replicas_.reset();
    reporter.note("integrity: replicas are not compared: " + why);
  }
  const std::string& products = run.recipe.integrity->products;
  if (products == "off") return;
  if (run.learner.precision->linear_product() || run.pipeline) {
    reporter.note("integrity: products are not checked with fp8 or pipeline parallelism");
    return;
  }
  products_.emplace(*run.learner.model, products == "every", run.state.step + 1, run.mesh->rank());
}

void Integrity::count(const StepResult& result) {
  is_suspicious_ = is_suspicious_ || !std::isfinite(result.loss);
}

bool Integrity::is_due(std::int64_t step, bool before_use) const {
  if (!replicas_ && !products_) return false;
  return before_use || is_suspicious_ || step % run_.recipe.integrity->every == 0;
}

void Integrity::backward_ended(std::int64_t step) {
  if (products_) products_->begin(step + 2);
}

std::string Integrity::find_product() {
  const std::optional<WrongProduct> own = products_->take();
  const int rank = run_.group->job_rank();
  std::string text;
  if (own) {
    text = fmt::format(
        "rank {} computed a wrong matrix product in step {}: layer {}, {:.3g} times "
        "the tolerance of its checksums",
        rank, own->step, own->layer, own->ratio);
  }
  text = first_finding(*run_.group, text, "checksums of products");
  if (!text.empty()) reporter_.wrong_product(text);
  return text;
}

std::string Integrity::find() {
  const core::TimeScope time(core::TimeRow::kCommunication);
  const core::SteadyTime begin = core::now();
  std::string found;
  if (products_) found = find_product();
  if (replicas_) {
    const std::optional<ReplicaDifference> difference = replicas_->compare();
    reporter_.replicas_compared(core::seconds_since(begin), difference);
    if (difference && found.empty()) {
      found = fmt::format("replicas differ: {}; {}", difference->text(), difference->verdict());
    }
  }
  is_suspicious_ = false;
  if (!found.empty() && run_.recipe.integrity->action == "stop") {
    stop(found, "/integrity/action is stop");
  }
  return found;
}

void Integrity::stop(const std::string& found, const std::string& why) const {
  throw core::DataError(
      fmt::format("step {}", run_.state.step), fmt::format("{}; {}", found, why),
      fmt::format("the checkpoints of the run are verified: check the hardware of the nodes, then "
                  "continue with scaletrain resume {}",
                  core::shell_word(run_.recipe.output)));
}

bool Integrity::went_back(Saves& saves) {
  const std::string found = find();
  if (found.empty()) {
    has_gone_back_ = false;
    return false;
  }
  if (std::exchange(has_gone_back_, true)) {
    stop(found, "so soon after the run has gone back to a checkpoint");
  }
  const std::optional<std::filesystem::path> checkpoint = saves.wait_for_newest();
  if (!checkpoint) stop(found, "there is no checkpoint to go back to");
  const std::int64_t step = run_.state.step;
  go_back(run_, *checkpoint);
  describe_run(run_);
  run_.sets.train.stream->seek({run_.state.epoch, run_.state.step_in_epoch});
  if (products_) products_->begin(run_.state.step + 1);
  reporter_.went_back(step);
  return true;
}

bool Integrity::allows_save() { return (!replicas_ && !products_) || find().empty(); }

}  // namespace scaletrain::train
