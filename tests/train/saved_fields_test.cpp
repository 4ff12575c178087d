// What training changes is saved, all of it. A run that goes on from a checkpoint ends with every
// field of state.json, every tensor and every line of the run that was not cut; and what is left
// out of the checkpoint, field by field and tensor by tensor, makes it another run or is refused.
// A field or a tensor that is added is tested by being there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train::saved_fields_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Files = std::map<std::string, std::string>;

constexpr int kSteps = 6, kCut = 3;

// By the clock; or functions of the step, which only people read.
const std::set<std::string> kNotTraining{"trained_s", "seen_s", "schedule", "random"};

// Of these the last validation is known by other fields too, unless a stop has cut it short, after
// which it must not count twice: tests/train/rules/early_stopping_test.cpp, plateau_test.cpp.
const std::set<std::string> kOfDueValidations{"plateau_step", "stopping_step"};

// A resume takes it from best_steps.
const std::set<std::string> kOfOtherFields{"best_metric"};

struct Case {
  std::string name;
  std::vector<std::string> changes;
  int ranks = 1;
  bool each_tensor = true;  // otherwise each file
};

std::vector<Case> cases() {
  return {
      {"fp16, means, a plateau, a growing batch",
       {R"(model={"name": "mlp", "num_classes": 3, "hidden": 8, "layers": 2, "dropout": 0.2})",
        R"(optimizer={"name": "adamw", "lr": 0.01})",
        R"(precision={"name": "fp16", "init_scale": 1e6, "growth_interval": 2})",
        R"(ema={"decay": [0.5, 0.9], "warmup": true})",
        R"(schedule={"plateau": {"patience": 0, "threshold": 0.9, "cooldown": 1}})",
        R"(early_stopping={"metric": "loss", "patience": 9, "min_delta": 1})",
        R"(batch={"global": 12, "per_device": 2,
                  "ramp": {"start": 4, "increment": 4, "samples": 20}})"}},
      {"an equal mean of the weights",
       {R"(swa={"start": {"steps": 2}, "every": {"steps": 1}, "lr": 0.2})", "model.dropout=0.5"}},
      {"streamed, mixed images",
       {"data.order=streamed", "data.lanes=4", "data.samples_per_epoch=8",
        R"(early_stopping={"metric": "loss", "patience": 9})", "mix={\"mixup\": 0.2}"}},
      {"steps above a low bound, which reduce the learning rate",
       {R"(anomaly={"policy": "reduce_lr", "spike": 1e-6, "window": 4, "max": 6, "factor": 0.9})"}},
      {"two ranks whose exchange has a state",
       {R"(compress={"name": "powersgd", "rank": 1})", R"(batch={"global": 4, "per_device": 2})"},
       2},
      {"two ranks with statistics of their own",
       {R"(model={"name": "resnet18", "num_classes": 3})", "ema={\"decay\": 0.5}",
        R"(batch={"global": 8, "per_device": 4})"},
       2,
       false},
  };
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a run has come to: how it ended, the last checkpoint, the lines from the cut on.
struct End {
  std::string said;
  Json state = {};
  Files tensors = {};
  std::vector<Json> lines = {};
  bool operator==(const End&) const = default;
};

class Runs {
 public:
  explicit Runs(const Case& one) : case_(one) {}

  recipe::Recipe recipe(const std::string& output) const {
    std::vector<std::string> all{fmt::format("steps={}", kSteps), "validate.every={\"steps\": 1}",
                                 R"(checkpoint={"every": {"steps": 1}, "keep_last": 9,
                                                "keep_best": 2})",
                                 "log.every={\"steps\": 1}", "output=" + tiny_.path(output)};
    all.insert(all.end(), case_.changes.begin(), case_.changes.end());
    return tiny_.recipe(all);
  }

  fs::path checkpoint(const std::string& output, int step) const {
    return format::checkpoint_path(fs::path(tiny_.path(output)) / "checkpoints", step);
  }

  End run(const std::string& output, const std::optional<fs::path>& resume = {}) const {
    const recipe::Recipe asked = recipe(output);
    End end;
    for (const auto& rank :
         testing::run_ranks({.world_size = case_.ranks}, [&](const core::WorkerEnv& env) {
           return testing::ended(asked, resume, case_.ranks == 1 ? core::WorkerEnv{} : env);
         })) {
      end.said += rank.text + "; ";
    }
    if (!fs::exists(checkpoint(output, kSteps))) return end;
    end.state = Json::parse(bytes_of(checkpoint(output, kSteps) / "state.json"));
    for (const auto& file : fs::directory_iterator(checkpoint(output, kSteps))) {
      if (file.path().extension() != ".safetensors") continue;
      end.tensors[file.path().filename()] = bytes_of(file.path());
    }
    for (const std::string& name : kNotTraining) end.state.erase(name);
    add_lines(output, end);
    return end;
  }

  // A folder with the run's checkpoints up to the cut, from which it goes on; `change` makes
  // another of the last one.
  End resumed(const std::function<void(const fs::path& checkpoint)>& change) const {
    const fs::path folder = tiny_.path("again");
    fs::remove_all(folder);
    fs::create_directories(folder / "checkpoints");
    for (int step = 1; step <= kCut; ++step) {
      fs::copy(checkpoint("whole", step), checkpoint("again", step));
    }
    change(checkpoint("again", kCut));
    return run("again", checkpoint("again", kCut));
  }

 private:
  void add_lines(const std::string& output, End& end) const {
    std::ifstream stream(tiny_.path(output) + "/metrics.jsonl");
    for (std::string line; std::getline(stream, line);) {
      const Json json = Json::parse(line);
      if (json.at("step") <= kCut || json.at("event") == "checkpoint") continue;
      if (json.at("event") == "ledger") continue;
      Json kept;
      for (const char* const key : {"event", "split", "weights", "step", "loss", "lr", "grad_norm",
                                    "order_digest", "top1", "samples", "epoch"}) {
        if (json.contains(key)) kept[key] = json.at(key);
      }
      end.lines.push_back(std::move(kept));
    }
  }

  testing::TinyRun tiny_;
  Case case_;
};

// The checkpoint written anew, without what `write` does not write of a file; it may leave the file
// out and return nullopt.
using WriteFile =
    std::function<std::optional<format::FileEntry>(const fs::path& from, const fs::path& to)>;

void rewrite(const fs::path& checkpoint, const std::string& name, const WriteFile& write) {
  const format::Manifest manifest = format::read_manifest(checkpoint);
  const fs::path before = checkpoint.parent_path() / "before";
  fs::rename(checkpoint, before);
  format::publish_checkpoint(core::system_disk(), checkpoint.parent_path(),
                             {.program = manifest.program, .step = manifest.step}, 1000,
                             [&](const fs::path& folder) {
                               format::FileEntries files = manifest.files;
                               for (const auto& [file, entry] : manifest.files) {
                                 if (file != name) fs::copy(before / file, folder / file);
                               }
                               files.erase(name);
                               if (const auto entry = write(before / name, folder / name))
                                 files[name] = *entry;
                               return format::FolderFiles(files, manifest.tensors);
                             });
  fs::remove_all(before);
}

void leave_out_field(const fs::path& checkpoint, const std::string& field) {
  rewrite(checkpoint, "state.json", [&](const fs::path& from, const fs::path& to) {
    Json state = Json::parse(bytes_of(from));
    const Json fresh = Json::parse(format::render_state({}));
    state[field] = fresh.at(field);
    return format::write_hashed(core::system_disk(), to, state.dump());
  });
}

void leave_out_tensor(const fs::path& checkpoint, const std::string& file,
                      const std::string& tensor) {
  rewrite(checkpoint, file, [&](const fs::path& from, const fs::path& to) {
    const format::SafetensorsFile stored(from);
    std::vector<std::vector<std::byte>> bytes;
    bytes.reserve(stored.tensors().size());
    std::vector<format::TensorBytes> kept;
    for (const format::TensorInfo& info : stored.tensors()) {
      if (info.name == tensor) continue;
      std::vector<std::byte>& own =
          bytes.emplace_back(static_cast<std::size_t>(info.end - info.begin));
      stored.read(info, own);
      kept.push_back({info.name, info.dtype, info.shape, own});
    }
    return format::write_safetensors(core::system_disk(), to, kept, stored.metadata());
  });
}

// The fields of state.json that are not the same in all checkpoints of the run, and at the cut not
// what a fresh run has.
std::set<std::string> changing_fields(const Runs& runs) {
  std::set<std::string> changing;
  const auto state_of = [&](int step) {
    return Json::parse(bytes_of(runs.checkpoint("whole", step) / "state.json"));
  };
  const Json first = state_of(1);
  for (int step = 2; step <= kSteps; ++step) {
    const Json state = state_of(step);
    for (const auto& [name, value] : state.items()) {
      if (value != first.at(name)) changing.insert(name);
    }
  }
  const Json cut = state_of(kCut), fresh = Json::parse(format::render_state({}));
  std::erase_if(changing, [&](const std::string& name) {
    return kNotTraining.contains(name) || cut.at(name) == fresh.at(name);
  });
  return changing;
}

}  // namespace

TEST_CASE("what a checkpoint lacks of what training changes makes another run, or is refused") {
  std::map<std::string, bool> shown;  // by field, whether any case has shown its lack
  for (const Case& one : cases()) {
    CAPTURE(one.name);
    const Runs runs(one);
    const End whole = runs.run("whole");
    CAPTURE(whole.said);
    REQUIRE(!whole.tensors.empty());
    const End again = runs.resumed([](const fs::path&) {});
    CAPTURE(again.said);
    for (const auto& [name, value] : whole.state.items()) {
      CAPTURE(name);
      CHECK(value == again.state.value(name, Json()));
    }
    CHECK(whole.lines == again.lines);
    const bool is_same = whole == again;
    REQUIRE(is_same);

    for (const std::string& field : changing_fields(runs)) {
      if (shown[field]) continue;
      const End lacking =
          runs.resumed([&](const fs::path& checkpoint) { leave_out_field(checkpoint, field); });
      shown[field] = !(lacking == whole);
    }
    for (const auto& [file, bytes] : whole.tensors) {
      CAPTURE(file);
      if (!one.each_tensor) {
        const End lacking = runs.resumed([&](const fs::path& checkpoint) {
          rewrite(checkpoint, file, [](const auto&, const auto&) { return std::nullopt; });
        });
        const bool shows = !(lacking == whole);
        CHECK(shows);
        continue;
      }
      const format::SafetensorsFile stored(runs.checkpoint("whole", kCut) / file);
      for (const format::TensorInfo& info : stored.tensors()) {
        CAPTURE(info.name);
        const End lacking = runs.resumed(
            [&](const fs::path& checkpoint) { leave_out_tensor(checkpoint, file, info.name); });
        const bool shows = !(lacking == whole);
        CHECK(shows);
      }
    }
  }
  for (const auto& [field, shows] : shown) {
    CAPTURE(field);
    CHECK((shows || kOfDueValidations.contains(field) || kOfOtherFields.contains(field)));
  }
  // That the cases above have in them what they are for.
  for (const std::string field :
       {"step", "epoch", "step_in_epoch", "samples", "position", "order_digest", "best_metric",
        "best_step", "no_better", "plateau_drops", "ema_updates", "swa_updates", "scaler"}) {
    CAPTURE(field);
    CHECK(shown.contains(field));
  }
}

}  // namespace scaletrain::train::saved_fields_test
