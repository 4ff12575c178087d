#include "lib/train/simulate/job_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/plan/schedule_proof.h"
#include "lib/engine/recompute_budget.h"
#include "lib/engine/stages.h"
#include "lib/parallel/compress/compression.h"
#include "lib/parallel/layout.h"
#include "lib/train/model/expert_layout.h"
#include "lib/train/model/number_types.h"
#include "lib/train/rules/shard_types.h"
#include "lib/train/simulate/copy_traffic.h"
#include "lib/train/simulate/part_plan.h"

namespace scaletrain::train {
namespace {

using core::Axis;
using dist::FakeKind;
using units::NamedParameter;

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

std::int64_t bytes_of(const std::vector<NamedParameter>& parameters) {
  std::int64_t bytes = 0;
  for (const NamedParameter& one : parameters) bytes += bytes_of(one.tensor);
  return bytes;
}

using Profiles = std::map<int, std::vector<UnitProfile>>;  // units by rank in tensor group

// The plan of one rank.
class Planner {
 public:
  Planner(const recipe::Recipe& recipe, const JobPlan& job, int rank, const nn::Factories& models,
          Profiles& known)
      : recipe_(recipe),
        job_(job),
        network_(std::make_shared<dist::FakeNetwork>(
            dist::FakeJob{.rank = rank, .world_size = job.mesh.world_size()})),
        world_(network_, at::kCPU),
        mesh_(world_, job.mesh),
        learner_(build_learner(recipe, at::kCPU, {.steps_per_epoch = 1000, .total_steps = 1000000},
                               job.batch.global, models, &mesh_, Values::kBlank)),
        units_(learner_.model->units()),
        micros_(job.batch.accumulate),
        places_(job.mesh.experts() > 1 ? divide_experts(*learner_.model, mesh_)
                                       : parallel::ExpertPlaces()),
        profiles_(profiles_of(known)) {
    plan_.rank = rank;
  }

  RankPlan plan() {
    choose_units();
    own();
    activations();
    if (has(Axis::kTensor)) {
      add_of_units("tensor", "activations", ranks_along({Axis::kTensor}), &UnitProfile::exchanges);
    }
    if (!places_.empty()) {
      add_of_units("expert", "tokens", job_.mesh.expert_group(plan_.rank), &UnitProfile::tokens);
    }
    if (has(Axis::kContext)) {
      add_of_units("context", "keys and values", job_.mesh.link(plan_.rank, Axis::kContext),
                   &UnitProfile::keys);
      add_of_units("context", "sums of the router", ranks_along({Axis::kContext}),
                   &UnitProfile::sums);
    }
    return std::move(plan_);
  }

  double idle_share = 0;

 private:
  const std::vector<UnitProfile>& profiles_of(Profiles& known) {
    learner_.model->train();
    share_tokens(*learner_.model, mesh_);
    const auto [found, is_new] = known.try_emplace(mesh_.coordinate(Axis::kTensor));
    if (is_new) {
      found->second = profile_units(recipe_, learner_, mesh_, *network_, job_.batch.per_device);
    }
    return found->second;
  }

  bool has(Axis axis) const { return mesh_.size(axis) > 1; }
  bool is_expert(const std::string& name) const { return places_.contains(name); }
  // True if the parameter is an expert of another rank.
  bool is_elsewhere(const std::string& name) const {
    const auto place = places_.find(name);
    return place != places_.end() && place->second != mesh_.experts().rank();
  }
  std::vector<int> ranks_along(std::initializer_list<Axis> axes) const {
    return job_.mesh.group(plan_.rank, axes);
  }
  bool is_rare() const { return recipe_.sync.is_rare(); }
  // Along `axes` the ranks that add up gradients.
  std::vector<int> ranks_that_add(std::initializer_list<Axis> axes) const {
    return is_rare() ? job_.mesh.in_copy(plan_.rank, axes) : ranks_along(axes);
  }
  const char* axis_of(const std::vector<int>& adding) const {
    if (has(Axis::kReplica) && !is_rare()) return "replica";
    return static_cast<int>(adding.size()) > mesh_.size(Axis::kContext) ? "expert" : "context";
  }

  // The stages of this rank, or the whole model as one; and the parameters that it trains.
  void choose_units() {
    const core::PipelineShape shape = recipe_.parallel.pipeline_shape(micros_);
    const engine::Stages stages(units_, engine::parameter_costs(units_, *learner_.model),
                                shape.stages());
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const int stage = shape.stage(mesh_.coordinate(Axis::kPipe), chunk);
      stages_.push_back({stages.begin(stage), stages.end(stage)});
      for (std::size_t unit = stages.begin(stage); unit < stages.end(stage); ++unit) {
        plan_.units.push_back(units_[unit].name);
        runs_.insert(units_[unit].tensors.begin(), units_[unit].tensors.end());
      }
    }
    for (const NamedParameter& parameter : learner_.parameters()) {
      if (!runs_.contains(parameter.name) || is_elsewhere(parameter.name)) continue;
      (is_expert(parameter.name) ? experts_ : trained_).push_back(parameter);
    }
    for (const auto& [name, users] : stages.tensors()) {
      std::set<int> places;
      for (const int stage : users) places.insert(stage % shape.ranks);
      if (places.size() > 1 && places.contains(mesh_.coordinate(Axis::kPipe))) tied_[name] = places;
    }
    if (!has(Axis::kPipe)) return;
    const core::ScheduleProof proof =
        core::prove(core::make_schedule(recipe_.parallel.pipeline_kind(), shape), shape);
    idle_share = proof.idle_share;
    plan_.held = proof.held[static_cast<std::size_t>(mesh_.coordinate(Axis::kPipe))];
  }

  void own() {
    for (const auto& item : learner_.model->named_parameters()) {
      const bool is_here = !item.value().requires_grad() || !is_elsewhere(item.key());
      if (is_here && runs_.contains(item.key())) plan_.parameters += bytes_of(item.value());
    }
    for (const auto& item : learner_.model->named_buffers()) {
      plan_.parameters += bytes_of(item.value());
    }
    std::vector<NamedParameter> owned;
    if (has(Axis::kShard)) {
      owned = own_parts();
    } else {
      for (const NamedParameter& one : trained_) {
        owned.push_back(without_memory(one, one.tensor.sizes()));
      }
      const std::vector<int> adding = ranks_that_add(core::kGradientAxes);
      if (adding.size() > 1) add_gradients(axis_of(adding), adding, trained_);
      plan_.gradient_peak = has(Axis::kPipe)
                                ? core::late_gradients(bytes_of(owned), adding.size() > 1)
                                : core::bucketed_gradients(bytes_of(owned));
    }
    for (const NamedParameter& one : experts_) {
      owned.push_back(without_memory(one, one.tensor.sizes()));
    }
    const std::vector<int> same_experts =
        is_rare() ? ranks_along({Axis::kContext}) : job_.mesh.same_experts(plan_.rank);
    plan_.gradient_peak += core::late_gradients(bytes_of(experts_), same_experts.size() > 1);
    if (same_experts.size() > 1) {
      add_gradients(is_rare() ? "context" : "expert", same_experts, experts_);
    }
    std::map<std::string, std::int64_t> bytes;
    for (const NamedParameter& one : owned) {
      plan_.gradients += bytes_of(one.tensor);
      bytes[one.name] = bytes_of(one.tensor);
    }
    for (const auto& [name, shard] : make_optimizer(recipe_, std::move(owned))->state()) {
      plan_.optimizer += bytes_of(shard.tensor);
    }
    const int averages = (recipe_.ema ? 1 : 0) + (recipe_.swa ? 1 : 0);
    plan_.averages = averages * plan_.parameters;
    add_tied(bytes);
    if (!is_rare()) return;
    add_weights(plan_.gradients);
    if (recipe_.sync.name == "diloco") plan_.optimizer += 2 * plan_.gradients;  // the outer one's
  }

  // Adds a step's share of the local-SGD synchronization of replicas.
  void add_weights(std::int64_t bytes) {
    if (job_.mesh.model_copies() == 1 || recipe_.sync.is_async()) return;
    if (recipe_.compress) {  // `bytes` counts fp32 values
      const auto element = c10::elementSize(*parallel::cast_type(*recipe_.compress));
      bytes = bytes / static_cast<std::int64_t>(sizeof(float)) * static_cast<std::int64_t>(element);
    }
    add("replica", "weights", FakeKind::kAllReduce,
        job_.mesh.same_place(plan_.rank, core::kDataAxes), 1, bytes / recipe_.sync.steps);
  }

  // Adds the all-reduce of unsharded gradients, in buckets.
  void add_gradients(const char* axis, const std::vector<int>& ranks,
                     const std::vector<NamedParameter>& parameters) {
    if (parameters.empty()) return;
    std::vector<at::Tensor> tensors;
    for (const NamedParameter& one : parameters) tensors.push_back(one.tensor);
    std::vector<CopyBucket> buckets;
    for (const std::vector<std::int64_t>& numbers : parallel::make_layout(tensors)) {
      CopyBucket& bucket = buckets.emplace_back();
      bucket.slots = parallel::slots_of(parameters, numbers);
      for (const parallel::Slot& slot : bucket.slots) bucket.elements += slot.elements;
      bucket.type = tensors[static_cast<std::size_t>(numbers.front())].scalar_type();
    }
    add_buckets(axis, ranks, buckets);
  }

  void add_buckets(const char* axis, const std::vector<int>& ranks,
                   const std::vector<CopyBucket>& buckets) {
    const parallel::BucketBytes all =
        copy_traffic(is_rare() ? std::nullopt : recipe_.compress, buckets);
    add(axis, "gradients", FakeKind::kAllReduce, ranks, all.reduces, all.reduced);
    add(axis, "gradients", FakeKind::kAllGather, ranks, all.gathers,
        all.gathered * static_cast<std::int64_t>(ranks.size()));
    plan_.unsent += all.unsent;
  }

  // `owned`: bytes of this rank's parameters.
  void add_tied(const std::map<std::string, std::int64_t>& owned) {
    const std::vector<int> pipe = ranks_along({Axis::kPipe});
    for (const NamedParameter& one : trained_) {
      const auto tied = tied_.find(one.name);
      const auto own = owned.find(one.name);
      if (tied == tied_.end() || own == owned.end()) continue;
      std::vector<int> ranks;
      for (const int place : tied->second) ranks.push_back(pipe[static_cast<std::size_t>(place)]);
      add("pipeline", "tied gradients", FakeKind::kAllReduce, ranks, 1, own->second);
    }
  }

  // Parts of blocks, and their exchanges.
  std::vector<NamedParameter> own_parts() {
    std::vector<NamedParameter> parameters = trained_;
    parallel::ShardingOptions sharding;
    const std::string& level = recipe_.parallel.shard_level;
    if (level == "optimizer") sharding.level = parallel::ShardLevel::kOptimizer;
    if (level == "gradients") sharding.level = parallel::ShardLevel::kGradients;
    const bool cuts_parameters = sharding.level == parallel::ShardLevel::kParameters;
    if (cuts_parameters) {
      for (const auto& item : learner_.model->named_parameters()) {
        if (item.value().requires_grad() || !runs_.contains(item.key())) continue;
        parameters.push_back({.name = item.key(), .tensor = item.value()});
      }
    }
    for (const units::Unit& unit : units_) sharding.units.push_back(unit.tensors);
    take_types(recipe_, *learner_.model, sharding);
    PartPlan parts = plan_parts(parameters, sharding,
                                {.ranks = mesh_.size(Axis::kShard),
                                 .place = mesh_.coordinate(Axis::kShard),
                                 .stages = stages_,
                                 .is_of_pipeline = has(Axis::kPipe),
                                 .micros = micros_});
    plan_.gradient_peak = parts.gradients;
    if (cuts_parameters) {
      for (const NamedParameter& one : parameters) plan_.parameters -= bytes_of(one.tensor);
      plan_.parameters += parts.bytes;
      plan_.gathered = parts.together;
    }
    const std::vector<int> shard = ranks_along({Axis::kShard});
    add("shard", "parameters", FakeKind::kAllGather, shard, parts.gathers.calls,
        parts.gathers.bytes);
    add("shard", "gradients", FakeKind::kReduceScatter, shard, parts.scatters.calls,
        parts.scatters.bytes);
    const std::vector<int> adding = ranks_that_add(core::kCopyAxes);
    if (adding.size() > 1) add_buckets(axis_of(adding), adding, parts.copies);
    return std::move(parts.owned);
  }

  void activations() {
    std::vector<engine::UnitCost> costs;
    std::vector<bool> again;
    std::int64_t of_one = 0;  // micro-batch, of all stages of this rank
    for (const auto& [begin, end] : stages_) {
      for (std::size_t unit = begin; unit < end; ++unit) {
        const UnitProfile& one = profiles_[unit];
        costs.push_back({one.name, one.saved_bytes, one.input_bytes, 0});
        plan_.flops.add(one, static_cast<double>(micros_));
        again.push_back(one.runs_again);
        of_one += one.runs_again ? one.input_bytes : one.saved_bytes;
      }
    }
    // Each micro-batch in memory belongs to one stage; one of them is at its peak.
    const auto stages = static_cast<std::int64_t>(stages_.size());
    plan_.activations = engine::peak_bytes(costs, again) + of_one * plan_.held / stages - of_one;
    if (stages > 1) plan_.activations = std::max(plan_.activations, of_one * plan_.held / stages);
    if (has(Axis::kPipe)) add_links();
  }

  // Adds the bytes sent to the next stage and, as many, back to the previous one.
  void add_links() {
    const std::vector<int> pipe = ranks_along({Axis::kPipe});
    const auto place = static_cast<std::size_t>(mesh_.coordinate(Axis::kPipe));
    const int next = pipe[(place + 1) % pipe.size()];
    const int before = pipe[(place + pipe.size() - 1) % pipe.size()];
    std::int64_t sent = 0, sent_bytes = 0, back = 0, back_bytes = 0;
    for (const auto& [begin, end] : stages_) {
      if (end < units_.size()) {
        sent += micros_ * profiles_[end].inputs;
        sent_bytes += micros_ * profiles_[end].input_bytes;
      }
      if (begin > 0) {
        back += micros_ * profiles_[begin].inputs;
        back_bytes += micros_ * profiles_[begin].input_bytes;
      }
    }
    add("pipeline", "activations", FakeKind::kBroadcast, {plan_.rank, next}, sent, sent_bytes);
    add("pipeline", "their gradients", FakeKind::kBroadcast, {plan_.rank, before}, back,
        back_bytes);
  }

  void add_of_units(const char* axis, const char* what, const std::vector<int>& ranks,
                    std::vector<UnitExchange> UnitProfile::*exchanges) {
    std::map<FakeKind, UnitExchange> all;
    for (const auto& [begin, end] : stages_) {
      for (std::size_t unit = begin; unit < end; ++unit) {
        for (const UnitExchange& one : profiles_[unit].*exchanges) {
          all[one.kind].calls += one.calls;
          all[one.kind].bytes += one.bytes;
        }
      }
    }
    const auto micros = static_cast<double>(micros_);
    for (const auto& [kind, one] : all) {
      add(axis, what, kind, ranks, std::llround(one.calls * micros),
          std::llround(one.bytes * micros));
    }
  }

  void add(const char* axis, const char* what, FakeKind kind, std::vector<int> ranks,
           std::int64_t calls, std::int64_t bytes) {
    if (calls == 0) return;
    plan_.traffic.push_back({.axis = axis,
                             .what = what,
                             .kind = kind,
                             .ranks = std::move(ranks),
                             .calls = calls,
                             .bytes = bytes});
  }

  const recipe::Recipe& recipe_;
  const JobPlan& job_;
  std::shared_ptr<dist::FakeNetwork> network_;
  dist::Group world_;
  dist::Mesh mesh_;
  Learner learner_;
  std::vector<units::Unit> units_;
  std::int64_t micros_;
  const parallel::ExpertPlaces places_;  // {}: every rank has all experts
  const std::vector<UnitProfile>& profiles_;

  RankPlan plan_;
  std::vector<std::pair<std::size_t, std::size_t>> stages_;  // their units
  std::set<std::string> runs_;                               // names of the tensors that these use
  std::vector<NamedParameter> trained_, experts_;  // without experts that ranks share, and those
  std::map<std::string, std::set<int>> tied_;      // places that use a tensor
};

// Places of a pipeline differ, ranks along the other axes hardly.
std::vector<int> first_of_each_place(const core::MeshPlan& mesh) {
  return mesh.group(0, {Axis::kPipe});
}

}  // namespace

JobPlan plan_job(recipe::Recipe recipe, int world_size, const nn::Factories& models,
                 std::vector<int> ranks) {
  recipe.parallel.balance = "parameters";  // the other one needs a run
  recipe.offload.reset();                  // offloaded state counts too
  if (recipe.batch.is_automatic()) {
    throw core::RecipeError("/batch/per_device", R"("auto" is found when training begins)",
                            "use a number: --set batch.per_device=N");
  }
  const core::MeshPlan mesh(world_size, recipe.parallel.mesh());
  JobPlan job{.mesh = mesh, .batch = recipe::divide_batch(recipe.batch, mesh.readers())};
  recipe::check_micro_batches(recipe.parallel, job.batch);
  if (ranks.empty()) ranks = first_of_each_place(mesh);
  Profiles profiles;
  for (const int rank : ranks) {
    Planner planner(recipe, job, rank, models, profiles);
    job.ranks.push_back(planner.plan());
    job.idle_share = planner.idle_share;
  }
  return job;
}

}  // namespace scaletrain::train
