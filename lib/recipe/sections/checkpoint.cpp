#include "lib/recipe/sections/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/core/url.h"
#include "lib/recipe/duration.h"
#include "lib/recipe/paths.h"

namespace scaletrain::recipe {

namespace {

constexpr const char* kByCost = "auto";
constexpr double kMostHours = 1e6;

std::vector<std::string> all_measures() {
  std::vector<std::string> names;
  for (const TaskRow& task : tasks()) {
    for (const Measure& measure : task.measures) {
      const bool is_known = std::find(names.begin(), names.end(), measure.name) != names.end();
      if (!is_known) names.push_back(measure.name);
    }
  }
  return names;
}

// How often, or "auto".
class CadenceOrAuto : public Type {
 public:
  explicit CadenceOrAuto(Checkpoint& value)
      : value_(value), every_(duration(value.every, any_unit())) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const word = node.text();
    value_.automatic = word != nullptr;
    if (word == nullptr) return every_->read(node, pointer, problems);
    if (*word == kByCost) return;
    problems.add(node, pointer, in_quotes(*word) + " is no length of training", "use " + phrase());
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
  keys->add("metric", measure_name(value.metric), "a measure of the task, its first by default")
      .add("mode", choice(value.mode, {"max", "min"}),
           "what is better; without it what is better by that measure")
      .add("weights", choice(value.weights, {"ema", "model"}),
           "whose measure counts, here and wherever a validation decides; without it the ema's "
           "where there is one")
      .set_short_for("metric");
  return keys;
}

TypePtr describe_replicate(std::optional<Replicate>& value) {
  constexpr std::int64_t kMostNodes = 16;
  return optional(value, [](Replicate& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("nodes", integer(inner.nodes, from(1).to(kMostNodes)),
              "on so many nodes behind the one that writes, in a ring");
    return keys;
  });
}

}  // namespace

TypePtr describe(Checkpoint& value) {
  auto keys = std::make_unique<Object>();
  keys->add("every", std::make_unique<CadenceOrAuto>(value),
            "how often one is written; auto: as often as loses the least time to saves and to "
            "failures")
      .add("mtbf_hours", number(value.mtbf_hours, above(0).to(kMostHours)),
           "with every auto: hours from one failure to the next, on average")
      .add("async", flag(value.async),
           "written while training goes on, from a copy in the host's memory")
      .add("on_failure", choice(value.on_failure, {"stop", "continue"}),
           "what a run does that cannot write one; the last one must be written")
      .add("writers", choice(value.writers, {"auto", "rank_0", "all"}),
           "all: each rank writes its share, into one folder that all of them see; auto: all where "
           "they see it and there is much to write, otherwise rank 0")
      .add("incremental", flag(value.incremental),
           "tensors that have not changed since the last one are linked, not written")
      .add("keep_last", integer(value.keep_last, from(1).to(kMostCount)),
           "so many of the newest are kept")
      .add("keep_best", integer(value.keep_best, from(0).to(kMostCount)),
           "so many of the best by validation are kept beside them; of equals the earlier")
      .add("keep_every",
           optional(value.keep_every,
                    [](Duration& inner) {
                      return duration(inner, {Duration::Unit::kSteps, Duration::Unit::kEpochs});
                    }),
           "those at least so far apart are kept for ever")
      .add("keep_hours",
           optional(value.keep_hours,
                    [](double& inner) { return number(inner, above(0).to(kMostHours)); }),
           "those that are younger are kept")
      .add("best", describe_best(value.best), "what makes one the best")
      .add("mirror", folder_or_bucket(value.mirror),
           "each is copied there too while training goes on, and a resume looks there too")
      .add("replicate", describe_replicate(value.replicate),
           "each is in the memory of its own and of other nodes too, where a restart finds what a "
           "lost node had");
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
               fmt::format("{} and the run's own folder, {}, lie in each other", in_quotes(mirror),
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
