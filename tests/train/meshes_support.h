// Models on meshes of several axes against the whole model in one process: layout x model, as a
// run lays them out, without its data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/train/build/build.h"
#include "lib/units/token_cut.h"

namespace scaletrain::testing {

using ModelOptions = std::map<std::string, recipe::Component::Value>;

struct MeshLayout {
  const char* name;
  recipe::Parallel parallel;
  int ranks = 4;  // or 8
};

struct MeshCase {
  const char* name;
  const char* model;
  ModelOptions options;
  std::vector<std::string> frozen = {};
  bool recomputes = false;
  std::int64_t chunk = 0;
  bool on_tensors = true;  // whether tensor ranks may share it
  bool in_doubles = false;
  double clip = 0;
  double lr = 0.05;
  std::string_view only = "";                    // layouts that begin so
  std::optional<std::int64_t> end_of_text = {};  // documents are kept apart
  const char* precision = "fp32";

  bool is_for(const MeshLayout& layout) const {
    return (on_tensors || layout.parallel.tensor == 1) &&
           std::string_view(layout.name).starts_with(only);
  }
};

// Returns what a layout combines: "schedule 1f1b", "shard level parameters", "tensor" or
// "sequence", "context", "replica".
std::vector<std::string> axes_shown(const MeshLayout& layout);

// Small ones, of 4 blocks and 11 tokens, which are no multiple of 2: with a tied head, and with one
// of its own.
ModelOptions small_gpt2();
ModelOptions small_llama();

inline constexpr int kMeshRanks = 8;
inline constexpr int kMeshSteps = 2;

// A rank's part of a case, its steps of SGD and its evaluation.
struct MeshJob {
  MeshJob(const MeshCase& given, const recipe::Parallel& parallel,
          std::unique_ptr<dist::Group> group);

  // This rank's share of the micro-batches that `readers` take in a step; alone, all in turn.
  void step(int step, std::int64_t readers);
  // All of what is trained, by name; each rank of a replica calls it.
  std::map<std::string, at::Tensor> whole_gradients() const;
  void update();
  // The sums of one batch more than there are readers, so that one of them has two.
  at::Tensor evaluate(std::int64_t readers);

  const MeshCase& one;
  train::Run run;
  std::map<std::string, std::vector<std::int64_t>> shapes;  // of what is trained
  double loss = 0, norm = 0;

 private:
  task::Example example(int step, std::int64_t block) const;
  task::Example own_tokens(const task::Example& whole) const;

  std::optional<units::TokenCut> cut_;
};

// Which pairs of a layout and a case the short form has. Each case, each combination of axes and
// each pair of values of two axes is in one of them; with kPairs each case with each value too.
enum class CaseChoice { kEach, kPairs };

// Each of kMeshRanks ranks calls it: the cases on the layouts, those of 4 ranks on either half; ""
// where gradients, norm, loss and evaluation are those of one process at the first step and the
// last.
std::string against_one_process(const core::WorkerEnv& env, const std::vector<MeshLayout>& layouts,
                                const std::vector<MeshCase>& cases, CaseChoice choice);

}  // namespace scaletrain::testing
