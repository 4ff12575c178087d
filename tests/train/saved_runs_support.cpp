#include "tests/train/saved_runs_support.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/stored_tensors.h"

namespace scaletrain::testing {

namespace fs = std::filesystem;

recipe::Recipe SavedRuns::recipe(const std::string& output,
                                 const std::vector<std::string>& more) const {
  std::vector<std::string> all{"output=" + tiny_.path(output)};
  all.insert(all.end(), changes_.begin(), changes_.end());
  all.insert(all.end(), more.begin(), more.end());
  return tiny_.recipe(all);
}

std::vector<RankResult> SavedRuns::run(const recipe::Recipe& asked, const RunBy& by,
                                       const std::optional<fs::path>& resume) {
  return run_ranks({.world_size = by.ranks, .limit_s = 120}, [&](const core::WorkerEnv& env) {
    std::string warned;
    core::set_warning_listener([&](const std::string& line) { warned += "; " + line; });
    by.before(env.rank);
    return ended(asked, resume, env) + warned;
  });
}

fs::path SavedRuns::saved(const std::string& output, std::int64_t step) const {
  return format::checkpoint_path(fs::path(tiny_.path(output)) / "checkpoints", step);
}

nlohmann::json SavedRuns::state(const std::string& output, std::int64_t step) const {
  std::ifstream file(saved(output, step) / "state.json");
  return nlohmann::json::parse(file);
}

std::map<std::string, std::string> SavedRuns::bytes(const std::string& output,
                                                    std::int64_t step) const {
  std::map<std::string, std::string> files;
  for (const auto& file : fs::directory_iterator(saved(output, step))) {
    if (file.path().extension() != ".safetensors") continue;
    std::ifstream stream(file.path(), std::ios::binary);
    files[file.path().filename()] = std::string(std::istreambuf_iterator<char>(stream), {});
  }
  return files;
}

checkpoint::Tensors SavedRuns::tensors(const std::string& output, std::int64_t step,
                                       const char* file) const {
  const format::StoredTensors stored(saved(output, step) / file);
  checkpoint::Tensors result;
  for (const format::TensorInfo& info : stored.tensors()) {
    const at::Tensor tensor = at::empty(info.shape, *checkpoint::type_of(info.dtype));
    stored.read(info, checkpoint::bytes_of(tensor));
    result.emplace(info.name, tensor);
  }
  return result;
}

RunCourse SavedRuns::course(const std::string& output) const {
  RunCourse course;
  std::ifstream stream(fs::path(tiny_.path(output)) / "metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") == "eval") course.validated[json.at("split")].push_back(json.at("loss"));
    if (json.at("event") != "train") continue;
    course.losses.push_back(json.at("loss"));
    course.norms.push_back(json.at("grad_norm"));
    course.order_digests.push_back(json.at("order_digest"));
  }
  return course;
}

std::string tensors_apart(const checkpoint::Tensors& found, const checkpoint::Tensors& expected,
                          double most) {
  std::string text;
  if (found.size() != expected.size()) text = "another number of tensors; ";
  for (const auto& [name, tensor] : expected) {
    const auto one = found.find(name);
    if (one == found.end() || one->second.sizes() != tensor.sizes()) {
      text += name + " is missing, or of another shape; ";
      continue;
    }
    const double off =
        (one->second.to(at::kDouble) - tensor.to(at::kDouble)).abs().max().item<double>();
    const double scale = std::max(tensor.abs().max().to(at::kDouble).item<double>(), 1e-3);
    // What weights of about 1 have learned is known to some 1e-7.
    const double rounded = name.starts_with("outer_momentum/") ? 2.5e-7 : 0;
    if (!(off <= most * scale + (most > 0 ? rounded : 0)))
      text += fmt::format("{} is off by {:.1e}; ", name, off / scale);
  }
  return text;
}

double largest_apart(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return 1;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] / b[i] - 1));
  return largest;
}

}  // namespace scaletrain::testing
