#include "lib/recipe/schema/foreign_names.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> names_of_list(const std::string& kind) {
  for (const List* const list :
       {&models(), &losses(), &optimizers(), &schedules(), &transforms(), &precisions()}) {
    if (list->kind.ends_with(" " + kind)) return list->names();
  }
  return {};
}

// The whole message about one --set.
std::string message(const std::string& override) { return error_of(minimal_recipe(), {override}); }

}  // namespace

TEST_CASE("every foreign name stands once in its list") {
  std::set<std::pair<std::string, std::string>> seen;
  for (const ForeignName& name : foreign_names()) {
    CAPTURE(name.theirs);
    CHECK(seen.emplace(name.list == kNoKey ? "" : name.list, name.theirs).second);
  }
}

TEST_CASE("every foreign name leads to a key or value of ours and is none itself") {
  const std::vector<std::string> keys = all_keys();
  CHECK(foreign_names().size() >= 60);
  for (const ForeignName& name : foreign_names()) {
    CAPTURE(name.theirs);
    CAPTURE(name.ours);
    if (name.list == kNoKey) {
      CHECK_FALSE(is_in(keys, name.theirs));
      CHECK_FALSE(name.ours.empty());
      continue;
    }
    if (!name.list.empty()) {
      CHECK(is_in(names_of_list(name.list), name.ours));
      CHECK_FALSE(is_in(names_of_list(name.list), name.theirs));
      continue;
    }
    const std::size_t both = name.ours.find(" and ");
    CHECK(is_in(keys, name.ours.substr(0, both)));
    if (both != std::string::npos) CHECK(is_in(keys, name.ours.substr(both + 5)));
  }
}

TEST_CASE("a key of other models is not suggested for a model without it") {
  CHECK(message("model.rotary_base=1").find("here it is") == std::string::npos);
}

TEST_CASE("a foreign key or value is answered with ours") {
  const std::vector<std::pair<std::string, std::string>> answers{
      {"num_workers=4", "here it is data.threads"},
      {"gradient_clip_val=1", "here it is clip.norm"},
      {"accumulate_grad_batches=4", "here it is batch.accumulate"},
      {"model.pretrained=x", "here it is \"weights\""},
      {"optimizer.betas=[0.9]", "here it is optimizer.beta1 and optimizer.beta2"},
      {"data.val.URLs=a.tar", "here it is \"shards\""},
      {"optimizer.name=AdamW", "did you mean \"adamw\"?"},
      {"model.name=vit_small_patch16_224", "did you mean \"vit_small\"?"},
      {"precision=float32", "did you mean \"fp32\"?"},
      {"precision=bf16-mixed", "did you mean \"bf16\"?"},
      {"zero_optimization.stage=2", "here it is parallel.shard"},
      {"parallel.zero_stage=2", "here it is \"shard_level\""},
      {"lr-warmup-iters=10", "here it is schedule.warmup"},
      {"dropout=0.1", "here it is model.dropout"},
      {"report_to=wandb", "here it is log.to"},
      {"drop_last=true", "leave it out: the incomplete last batch of an epoch is always dropped"},
      {"nproc_per_node=8", "leave it out: the flag --nproc of scaletrain launch sets it"},
      {"data.pin_memory=true", "leave it out: batches for a GPU are always in pinned memory"},
  };
  for (const auto& [override, remedy] : answers) {
    const std::string found = message(override);
    CAPTURE(found);
    CHECK(found.find("\n  " + remedy) != std::string::npos);
  }
}

}  // namespace scaletrain::recipe
