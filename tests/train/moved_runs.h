// Runs that are saved in mid-epoch on one mesh and go on on another, without a conversion, against
// one rank that was left alone.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "tests/long_form.h"
#include "tests/train/saved_runs_support.h"

namespace scaletrain::testing {

struct MovedMesh {
  const char* name;
  int ranks;
  const char* parallel;
  int readers = 1;       // ranks that train on other samples
  bool is_short = true;  // part of the short form
};

constexpr int kMovedSteps = 4, kMovedCut = 2;
// Of losses and norms; of tensors, as Adam divides a gradient of almost zero by almost zero.
constexpr double kMovedMost = 1e-5, kMovedTensorsMost = 5e-5;

class MovedRuns {
 public:
  // `has_statistics`: of BatchNorm, of each reader its own samples'. They, and what is validated
  // with them, are not those of one rank where there are several readers.
  MovedRuns(const std::vector<std::string>& changes, std::vector<MovedMesh> meshes,
            bool has_statistics = false)
      : runs_(all_changes(changes)), meshes_(std::move(meshes)), has_statistics_(has_statistics) {
    if (!is_long_form()) std::erase_if(meshes_, [](const MovedMesh& one) { return !one.is_short; });
  }

  // Each mesh, of which the first is one rank, and what goes on on the next one of the ring of all
  // meshes: each is left, and entered, once. SCALETRAIN_LONG=1 takes all pairs.
  void check() const {
    for (const MovedMesh& mesh : meshes_) {
      CAPTURE(std::string(mesh.name));
      CHECK(trains_as_one(mesh, nullptr) == "");
    }
    const std::size_t count = meshes_.size();
    const std::size_t farthest = is_long_form() ? count - 1 : 1;
    for (std::size_t from = 0; from < count; ++from) {
      for (std::size_t distance = 1; distance <= farthest; ++distance) {
        const MovedMesh& to = meshes_[(from + distance) % count];
        CAPTURE(std::string(meshes_[from].name));
        CAPTURE(std::string(to.name));
        CHECK(trains_as_one(to, &meshes_[from]) == "");
      }
    }
  }

 private:
  static std::vector<std::string> all_changes(const std::vector<std::string>& changes) {
    std::vector<std::string> all{
        fmt::format("steps={}", kMovedSteps),
        "ema.decay=0.8",
        "clip.norm=1",
        R"(log.every={"steps": 1})",
        fmt::format(R"(validate.every={{"steps": {}}})", kMovedSteps),
        fmt::format(R"(checkpoint={{"every": {{"steps": {}}}, "keep_last": 9, "keep_best": 0}})",
                    kMovedCut)};
    all.insert(all.end(), changes.begin(), changes.end());
    return all;
  }

  // "" where it trains, on `mesh`, what one rank trains, from the start or from the cut of `from`.
  std::string trains_as_one(const MovedMesh& mesh, const MovedMesh* from) const {
    const std::string output =
        from == nullptr ? mesh.name : fmt::format("{} on {}", from->name, mesh.name);
    std::optional<std::filesystem::path> resume;
    if (from != nullptr) resume = runs_.saved(from->name, kMovedCut);
    const auto asked = runs_.recipe(output, {std::string("parallel=") + mesh.parallel});
    const std::string ended = SavedRuns::run(asked, {.ranks = mesh.ranks}, resume)[0].text;
    if (!ended.starts_with(fmt::format("code 0 after step {}", kMovedSteps))) return ended;
    if (&mesh == &meshes_.front() && from == nullptr) return "";
    const bool own_statistics =
        has_statistics_ && (mesh.readers > 1 || (from != nullptr && from->readers > 1));
    const std::string apart = apart_from_one(output, own_statistics);
    if (from != nullptr) std::filesystem::remove_all(runs_.path(output));
    return apart;
  }

  std::string apart_from_one(const std::string& output, bool own_statistics) const {
    const std::string one = meshes_.front().name;
    const RunCourse found = runs_.course(output), expected = runs_.course(one);
    std::string text;
    const auto look = [&](const std::string& what, const std::vector<double>& a,
                          const std::vector<double>& b) {
      const double off = largest_apart(a, b);
      if (!(off <= kMovedMost)) text += fmt::format("{} off by {:.1e}; ", what, off);
    };
    if (found.losses.size() < kMovedSteps - kMovedCut) return "lines are missing";
    if (behind_cut(found.order_digests) != behind_cut(expected.order_digests)) {
      text += "another order of samples; ";
    }
    look("losses", behind_cut(found.losses), behind_cut(expected.losses));
    look("norms", behind_cut(found.norms), behind_cut(expected.norms));
    for (const auto& [split, losses] : expected.validated) {
      if (own_statistics) break;
      const auto seen = found.validated.find(split);
      look(split, seen == found.validated.end() ? std::vector<double>() : seen->second, losses);
    }
    for (const char* const file : {format::kModelFile, format::kEmaFile, format::kOptimizerFile}) {
      const std::string apart =
          tensors_apart(tensors(output, file, own_statistics), tensors(one, file, own_statistics),
                        kMovedTensorsMost);
      if (!apart.empty()) text += fmt::format("{}: {}", file, apart);
    }
    return text;
  }

  // Those of the last checkpoint.
  checkpoint::Tensors tensors(const std::string& output, const char* file,
                              bool own_statistics) const {
    checkpoint::Tensors all = runs_.tensors(output, kMovedSteps, file);
    if (own_statistics) {
      std::erase_if(all, [](const auto& item) {
        return item.first.ends_with("running_mean") || item.first.ends_with("running_var") ||
               item.first.ends_with("num_batches_tracked");
      });
    }
    return all;
  }

  template <typename T>
  static std::vector<T> behind_cut(const std::vector<T>& of_steps) {
    return {of_steps.end() - (kMovedSteps - kMovedCut), of_steps.end()};
  }

  SavedRuns runs_;
  std::vector<MovedMesh> meshes_;
  bool has_statistics_;
};

}  // namespace scaletrain::testing
