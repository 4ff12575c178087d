#include "lib/engine/recompute.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/glob.h"
#include "lib/engine/saved_tensors.h"
#include "lib/units/flops.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::engine {
namespace {

using torch::autograd::SavedVariableHooks;

// Thrown out of a second run once it has saved as many tensors as the first run.
struct AllThere {};

// A checkpointed run: its input, and after the second run the tensors that backward has still to
// use.
class Rerun {
 public:
  Rerun(RunUnit run, const units::Flow& input) : run_(std::move(run)) {
    for (const at::Tensor& tensor : input) {
      inputs_.push_back({.tensor = tensor.detach(), .requires_grad = tensor.requires_grad()});
    }
  }

  std::size_t add() { return count_++; }
  at::Tensor take(std::size_t number);
  void drop(std::size_t number) {
    if (number < saved_.size()) saved_[number].reset();
  }

 private:
  struct Input {
    at::Tensor tensor;  // detached, as its graph would keep this object alive
    bool requires_grad;
  };
  void run_again();

  RunUnit run_;
  std::vector<Input> inputs_;
  std::size_t count_ = 0;  // number of tensors that the first run has saved
  std::vector<at::Tensor> saved_;
};

// Replaces a tensor that the first run saves by its number.
class Forgotten : public SavedVariableHooks {
 public:
  explicit Forgotten(std::shared_ptr<Rerun> rerun) : rerun_(std::move(rerun)) {}
  ~Forgotten() override { rerun_->drop(number_); }
  Forgotten(const Forgotten&) = delete;
  Forgotten& operator=(const Forgotten&) = delete;

  void call_pack_hook(const at::Tensor& /*tensor*/) override { number_ = rerun_->add(); }
  at::Tensor call_unpack_hook() override { return rerun_->take(number_); }

 private:
  std::shared_ptr<Rerun> rerun_;
  std::size_t number_ = std::numeric_limits<std::size_t>::max();
};

// Keeps a tensor that the second run saves; the second run's own graph is never used.
class Kept : public SavedVariableHooks {
 public:
  Kept(std::vector<at::Tensor>& saved, std::size_t wanted) : saved_(saved), wanted_(wanted) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    saved_.push_back(tensor.detach());
    if (saved_.size() == wanted_) throw AllThere();
  }
  at::Tensor call_unpack_hook() override {
    throw core::InternalError("recompute", "a second run has no backward of its own");
  }

 private:
  std::vector<at::Tensor>& saved_;
  std::size_t wanted_;
};

at::Tensor Rerun::take(std::size_t number) {
  if (number >= saved_.size() || !saved_[number].defined()) run_again();
  return saved_[number];
}

void Rerun::run_again() {
  const units::MemoryPhase phase(units::MemoryKind::kActivations);
  const units::FlopPassScope pass(units::FlopPass::kRecomputed);
  const at::AutoGradMode with_grad(true);
  units::Flow input;
  for (const Input& one : inputs_) {
    input.push_back(one.tensor.detach());
    if (one.requires_grad) input.back().requires_grad_();
  }
  saved_.clear();
  const SavedTensorsScope scope([this] { return std::make_unique<Kept>(saved_, count_); });
  try {
    run_(std::move(input), /*again=*/true);
  } catch (const AllThere&) {
    return;
  }
  throw core::InternalError(
      "recompute",
      fmt::format("a unit saved {} tensors, and {} when it ran again", count_, saved_.size()),
      "what a unit computes must depend on nothing but its input and the generator");
}

}  // namespace

units::Flow run_for_recompute(RunUnit run, const units::Flow& input) {
  const auto rerun = std::make_shared<Rerun>(run, input);
  std::vector<std::uint32_t> versions;
  versions.reserve(input.size());
  for (const at::Tensor& tensor : input) versions.push_back(tensor._version());
  const SavedTensorsScope scope([&rerun] { return std::make_unique<Forgotten>(rerun); });
  units::Flow output = run(input, /*again=*/false);
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (input[i]._version() == versions[i]) continue;
    throw core::InternalError("recompute", "a unit changes its input in place",
                              "it must leave it as it is, or not be run again");
  }
  return output;
}

std::vector<bool> recomputed_units(const std::optional<recipe::Recompute>& recompute,
                                   const std::vector<units::Unit>& units) {
  std::vector<bool> result(units.size(), false);
  if (!recompute || recompute->is_none() || units.empty()) return result;
  for (const std::string& pattern : recompute->match) {
    const bool fits = std::any_of(units.begin(), units.end(), [&](const units::Unit& unit) {
      return core::matches(pattern, unit.name);
    });
    if (fits) continue;
    std::vector<std::string> names;
    for (const units::Unit& unit : units) names.push_back(unit.name);
    throw core::RecipeError("/recompute/match", fmt::format("no unit is named \"{}\"", pattern),
                            fmt::format("the model has: {}", fmt::join(names, ", ")));
  }
  const auto every = static_cast<std::size_t>(recompute->every.value_or(1));
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    result[i] = recompute->match.empty() ? i % every == 0
                                         : core::matches_any(recompute->match, units[i].name);
  }
  if (std::find(result.begin(), result.end(), true) == result.end()) {
    throw core::RecipeError("/recompute", "there is no unit to recompute before the last one",
                            "leave it out");
  }
  return result;
}

}  // namespace scaletrain::engine
