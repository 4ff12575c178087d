#include "lib/train/build/initial_weights.h"

#include <optional>
#include <string>

#include "lib/checkpoint/weights.h"
#include "lib/core/disk/disk.h"
#include "lib/core/log.h"
#include "lib/core/text/glob.h"
#include "lib/core/text/url.h"
#include "lib/dist/replicate.h"
#include "lib/exchange/compare_weights.h"
#include "lib/exchange/weights_classes.h"
#include "lib/format/tar/class_names.h"
#include "lib/format/tokens/token_card.h"
#include "lib/storage/stores.h"
#include "lib/train/build/initial_weights_head.h"
#include "lib/train/state/reshard.h"

namespace scaletrain::train {

namespace {

void load(Run& run, const NamedTensors& tensors) {
  const recipe::Weights& weights = *run.recipe.model.weights;
  format::ClassNames classes{.owner = weights.path};
  const checkpoint::WeightReport report = checkpoint::load_weights(
      weights, run.learner.model->weight_rules(), tensors,
      [&run] { run.beat.enter(core::Phase::kStarting); },
      [&](const format::WeightFiles& files) {
        check_tokenizer_at_url(run.recipe, files);
        run.weights_differences = exchange::differences_from_weights(run.recipe, files);
        const bool by_number = run.sets.train.set->classes().empty() ||
                               core::matches_any(weights.allow_other, "class_names");
        if (!by_number) classes.names = exchange::classes_of_weights(files);
      });
  match_head(run, classes, report, tensors);
  run.weights_loaded = {.path = weights.path,
                        .loaded = std::ssize(report.taken),
                        .adapted = std::ssize(report.adapted),
                        .initialized = std::ssize(report.initial) + std::ssize(report.missing)};
  core::log("{}: {}", weights.path, checkpoint::summary(report));
  if (!run.weights_differences.empty()) {
    core::warn("{}", exchange::weights_warning(weights.path, run.weights_differences));
  }
  run.housekeeping->attempt("the run goes on without that file", [&] {
    core::WatchedDisk disk = run.disk();
    disk.make_folders(run.recipe.output);
    core::write_durably(disk, std::filesystem::path(run.recipe.output) / "weights.json",
                        checkpoint::to_json(report));
  });
  run.beat.enter(core::Phase::kStarting);  // the disk has shown a save
}

}  // namespace

void check_tokenizer_at_url(const recipe::Recipe& recipe, const format::WeightFiles& files) {
  const storage::Stores stores(recipe.storage, std::nullopt);
  exchange::check_tokenizer_at_url(
      recipe, files, [&stores](const std::string& path) -> std::optional<std::string> {
        // The output of a command or a query has no files beside it.
        if (core::url_scheme(path) == "pipe" || path.find('?') != std::string::npos) {
          return std::nullopt;
        }
        return storage::read_if_there(stores.of(path), path, format::kMaxTokenCardBytes);
      });
}

void take_weights(Run& run) {
  if (!run.recipe.model.weights) return;
  if (run.learner.parts.empty()) {  // the others get them as every initial model
    if (run.group->rank() == 0) load(run, run.learner.tensors());
    return;
  }
  // Not blank: the weights may leave some tensors as they were initialised.
  const units::Shards own = run.learner.shards();
  const units::Shards full = gather_full(run.mesh->group(core::Axis::kTensor), own);
  if (run.group->rank() == 0) load(run, local_tensors(full));
  dist::replicate(*run.group, values(local_tensors(full)), "initial weights");
  for (const auto& [name, shard] : own) {
    if (!shard.is_full()) copy_from_full(full.at(name).tensor, shard);
  }
}

}  // namespace scaletrain::train
