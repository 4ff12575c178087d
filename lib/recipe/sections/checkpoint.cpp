#include "lib/recipe/sections/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/core/text/url.h"
#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/catalog/paths.h"

namespace scaletrain::recipe {

namespace {

constexpr const char* kByCost = "auto";
constexpr double kMostHours = 1e6;

NamedValues all_measures() {
  NamedValues values;
  for (const TaskRow& task : tasks()) {
    for (const Measure& measure : task.measures) {
      const bool is_known = std::any_of(values.begin(), values.end(), [&](const NamedValue& value) {
        return value.name == measure.name;
      });
      if (is_known) continue;
      const bool is_higher = measure.better == Measure::Better::kHigher;
      values.emplace_back(measure.name, fmt::format("{}; {} is better.", measure.label,
                                                    is_higher ? "higher" : "lower"));
    }
  }
  return values;
}

// An interval, or "auto".
class CadenceOrAuto : public Type {
 public:
  explicit CadenceOrAuto(Checkpoint& value)
      : value_(value), every_(duration(value.every, any_unit())) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const word = node.text();
    value_.automatic = word != nullptr;
    if (word == nullptr) return every_->read(node, pointer, problems);
    if (*word == kByCost) return;
    problems.add(node, pointer, in_quotes(*word) + " is not a length of training",
                 "use " + phrase());
  }
  Json write() const override { return value_.automatic ? Json(kByCost) : every_->write(); }
  Json schema() const override { return {{"anyOf", {every_->schema(), {{"const", kByCost}}}}}; }
  std::string phrase() const override { return every_->phrase() + R"(, or "auto")"; }

 private:
  Checkpoint& value_;
  TypePtr every_;
};

TypePtr describe_best(Best& value) {
  auto keys = std::make_unique<Object>();
  keys->add("metric", measure_name(value.metric),
            "Validation metric that ranks checkpoints. Default: the first metric of the task, for "
            "example top1.")
      .add("mode", choice(value.mode, {{"max", "Higher is better."}, {"min", "Lower is better."}}),
           "Direction of the metric. Default: that of the metric, for example max for top1.")
      .add("weights",
           choice(value.weights, {{"ema", "EMA weights."}, {"model", "Trained weights."}}),
           "Weights whose metrics select the best checkpoint and drive early stopping and plateau. "
           "Default: ema if there is one, otherwise model.")
      .set_short_for("metric");
  return keys;
}

TypePtr describe_replicate(std::optional<Replicate>& value) {
  constexpr std::int64_t kMostNodes = 16;
  return optional(value, [](Replicate& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("nodes", integer(inner.nodes, from(1).to(kMostNodes)),
              "Number of other nodes that hold a copy. Default: 1.");
    return keys;
  });
}

}  // namespace

TypePtr describe(Checkpoint& value) {
  auto keys = std::make_unique<Object>();
  keys->add("every", std::make_unique<CadenceOrAuto>(value),
            "Checkpoint interval in steps, epochs or minutes. Default: 1 epoch. \"auto\" minimizes "
            "the time lost to saves and to repeated work after failures.")
      .add("mtbf_hours", number(value.mtbf_hours, above(0).to(kMostHours)),
           "Mean time between failures of the job in hours, for \"every\": \"auto\". Default: 24. "
           "For N nodes, that of one node divided by N.")
      .add("async", flag(value.async),
           "Asynchronous checkpoints: copies tensors to host memory and writes them while training "
           "goes on. Default: true.")
      .add("on_failure",
           choice(value.on_failure, {{"stop", "Ends the run with an error (exit code 74)."},
                                     {"continue", "Logs a warning and continues."}}),
           "Action when a checkpoint cannot be written. Default: stop. The last checkpoint of a "
           "run must always be written.")
      .add("writers",
           choice(value.writers,
                  {{"auto",
                    "All ranks if they see the same folder and at least 256 MiB are to be written, "
                    "otherwise rank 0."},
                   {"rank_0", "Rank 0 writes everything."},
                   {"all", "Each rank writes its share; all ranks must see the run folder."}}),
           "Ranks that write a checkpoint. Default: auto.")
      .add("incremental", flag(value.incremental),
           "Incremental checkpoints: hard-links tensors that have not changed instead of writing "
           "them again. Default: false. Useful with frozen layers.")
      .add("keep_last", integer(value.keep_last, from(1).to(kMostCount)),
           "Number of newest checkpoints to keep. Default: 3.")
      .add("keep_best", integer(value.keep_best, from(0).to(kMostCount)),
           "Number of best checkpoints by validation to keep as well. Default: 1. Of equal ones "
           "the earlier is kept.")
      .add("keep_every",
           optional(value.keep_every,
                    [](Duration& inner) {
                      return duration(inner, {Duration::Unit::kSteps, Duration::Unit::kEpochs});
                    }),
           "Keeps checkpoints at least this many steps or epochs apart forever, for example "
           "{\"epochs\": 10}. Default: none.")
      .add("keep_hours",
           optional(value.keep_hours,
                    [](double& inner) { return number(inner, above(0).to(kMostHours)); }),
           "Keeps checkpoints that are younger than this many hours. Default: no rule by age.")
      .add("best", describe_best(value.best), "Metric and weights that select the best checkpoint.")
      .add("mirror", folder_or_bucket(value.mirror),
           "Remote copy of each checkpoint, written while training goes on: a folder or "
           "s3://BUCKET/PREFIX. Resume looks there too. Default: none.")
      .add("replicate", describe_replicate(value.replicate),
           "Peer checkpoints: each checkpoint is also kept in the memory of its own and other "
           "nodes, for a restart after the loss of a node. Default: off.");
  return keys;
}

TypePtr measure_name(std::string& value) { return choice(value, all_measures()); }

void check_measure(const std::string& name, const TaskRow& task, const Node& node,
                   const std::string& pointer, Problems& problems) {
  if (name.empty() || task.measure(name) != nullptr) return;
  std::vector<std::string> names;
  for (const Measure& measure : task.measures) names.push_back(measure.name);
  problems.add(node, pointer, fmt::format("{} does not measure {}", task.name, name),
               fmt::format("use one of: {}", fmt::join(names, ", ")));
}

void check_best(const Best& best, const TaskRow& task, bool has_ema, const Node& tree,
                Problems& problems) {
  check_measure(best.metric, task, written_at(tree, {"checkpoint", "best"}),
                "/checkpoint/best/metric", problems);
  if (best.weights != "ema" || has_ema) return;
  problems.add(written_at(tree, {"checkpoint", "best", "weights"}), "/checkpoint/best/weights",
               "there is no ema", R"(add "ema": {}, or leave it out)");
}

void check_mirror(const std::string& mirror, const std::string& output, const Node& tree,
                  Problems& problems) {
  if (mirror.empty() || core::is_url(mirror)) return;
  const auto lies_in = [](const std::string& path, const std::string& folder) {
    const bool ends = path.size() == folder.size() || folder.ends_with('/');
    return path.starts_with(folder) && (ends || path[folder.size()] == '/');
  };
  if (!lies_in(mirror, output) && !lies_in(output, mirror)) return;
  problems.add(written_at(tree, {"checkpoint", "mirror"}), "/checkpoint/mirror",
               fmt::format("{} and the run's own folder, {}, contain each other", in_quotes(mirror),
                           in_quotes(output)),
               "use a folder on another disk, or s3://BUCKET/PREFIX");
}

void complete(Best& best, const TaskRow& task) {
  if (best.metric.empty()) best.metric = task.measures.front().name;
  if (!best.mode.empty()) return;
  const bool higher = task.measure(best.metric)->better == Measure::Better::kHigher;
  best.mode = higher ? "max" : "min";
}

}  // namespace scaletrain::recipe
