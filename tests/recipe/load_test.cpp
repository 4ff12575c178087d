#include "lib/recipe/load.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/recipe/recipe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {
namespace {

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string names_in(const List& list) { return fmt::format("{}", fmt::join(list.names(), ", ")); }

}  // namespace

TEST_CASE("a minimal recipe gets every default") {
  const Recipe recipe = parse_recipe(minimal_recipe(), "some/small net.json");
  CHECK(recipe.name == "small_net");
  CHECK(recipe.output == absolute("runs/small_net"));
  CHECK(recipe.seed == 0);
  CHECK(recipe.model.name == "mlp");
  CHECK(recipe.model.num_classes == 10);
  CHECK(recipe.model.integer("hidden") == 256);
  CHECK(recipe.model.number("dropout") == 0.0);
  CHECK(recipe.data.train.shards == std::vector<std::string>{absolute("a.tar")});
  CHECK_FALSE(recipe.data.val.has_value());
  CHECK(recipe.data.image_size == 224);
  CHECK(recipe.batch.per_device == 32);
  CHECK(recipe.batch.accumulate == 1);
  CHECK_FALSE(recipe.batch.global.has_value());
  CHECK(recipe.length.unit == Duration::Unit::kEpochs);
  CHECK(recipe.length.value == 10);
  CHECK(recipe.precision.name == "fp32");
  CHECK(recipe.optimizer.lr == 0.1);
  CHECK(recipe.optimizer.number("momentum") == 0.9);
  CHECK_FALSE(recipe.optimizer.flag("nesterov"));
  CHECK(recipe.schedule.decay.name == "constant");
  CHECK(recipe.loss.name == "cross_entropy");
  CHECK(recipe.checkpoint.keep_last == 3);
  CHECK(recipe.log.every.value == 10);
  CHECK(recipe.device == "auto");
}

TEST_CASE("short forms, durations, shard ranges and options are read") {
  const Recipe recipe = parse_recipe(
      R"({
        "$schema": "x", "version": 1, "name": "n", "description": ["two", "lines"], "seed": 7, "steps": 500,
        "model": {"name": "vit_tiny", "num_classes": 3, "dim": 96},
        "data": {
          "train": {"shards": ["t-{08..10}.tar", "/x/../y.tar"],
                    "augment": ["random_flip", {"name": "random_crop", "padding": 2}]},
          "val": {"folder": "v/"}, "image_size": 32,
          "normalize": {"mean": [0, 0.5, 1], "std": [1, 1, 2]}
        },
        "batch": {"global": 64, "per_device": 16},
        "optimizer": {"name": "adamw", "lr": 1, "beta2": 0.95, "lr_base_batch": 256},
        "schedule": {"warmup": {"steps": 0}, "decay": {"name": "step", "gamma": 0.5}},
        "precision": "bf16", "loss": {"label_smoothing": 0.1}, "clip": {"norm": 2},
        "validate": {"every": {"epochs": 0.5}}, "checkpoint": {"every": {"minutes": 1.5}},
        "log": {"every": {"steps": 1}}, "deterministic": true, "device": "cpu"
      })",
      "r.json");
  CHECK(recipe.length.unit == Duration::Unit::kSteps);
  CHECK(recipe.length.value == 500);
  CHECK(recipe.model.integer("dim") == 96);
  CHECK(recipe.model.integer("heads") == 3);
  CHECK(recipe.data.train.shards == std::vector<std::string>{absolute("t-08.tar"),
                                                             absolute("t-09.tar"),
                                                             absolute("t-10.tar"), "/y.tar"});
  REQUIRE(recipe.data.train.augment.size() == 2);
  CHECK(recipe.data.train.augment[0].number("probability") == 0.5);
  CHECK(recipe.data.train.augment[1].integer("padding") == 2);
  CHECK(recipe.data.val->folder == absolute("v/"));
  CHECK(recipe.data.normalize.mean == std::vector<double>{0, 0.5, 1});
  CHECK(recipe.batch.global == 64);
  CHECK_FALSE(recipe.batch.accumulate.has_value());
  CHECK(recipe.optimizer.lr == 1.0);
  CHECK(recipe.optimizer.number("beta1") == 0.9);
  CHECK(recipe.optimizer.number("beta2") == 0.95);
  CHECK(recipe.optimizer.lr_base_batch == 256);
  CHECK(recipe.schedule.warmup->value == 0);
  CHECK(recipe.schedule.decay.number("gamma") == 0.5);
  CHECK(recipe.precision.name == "bf16");
  CHECK(recipe.loss.label_smoothing == 0.1);
  CHECK(recipe.clip->norm == 2);
  CHECK(recipe.validate_every.value == 0.5);
  CHECK(recipe.checkpoint.every.unit == Duration::Unit::kMinutes);
  CHECK(recipe.deterministic);
  CHECK(recipe.description == std::vector<std::string>{"two", "lines"});
}

TEST_CASE("a schedule may be just its decay, and any thing just its name") {
  const Recipe recipe =
      parse_recipe(minimal_recipe(R"("schedule": "cosine", "loss": "cross_entropy")"), "r.json");
  CHECK(recipe.schedule.decay.name == "cosine");
  CHECK(recipe.schedule.decay.number("final_factor") == 0.0);
  CHECK_FALSE(recipe.schedule.warmup.has_value());
}

TEST_CASE("all mistakes are reported at once, in the order of their lines") {
  CHECK(error_of(R"({
  "model": {"name": "resnet81", "num_classes": 10},
  "data": {"train": {"shards": "a.tar", "folder": "b"}, "image_size": 4},
  "epochs": 8.5, "steps": 3,
  "optimizer": {"name": "adamw", "no_such_key": 0.1, "beta1": 1},
  "presicion": "bf16",
  "loss": {"label_smoothing": "lots"},
  "safety": {}
})") ==
        R"(r.json:2: /model/name: "resnet81" is not a model
  did you mean "resnet18"?
r.json:3: /data/train/folder: excludes "shards"
  use one of: "shards", "folder", "tokens", "sources"; null removes an inherited key
r.json:3: /data/image_size: 4 is out of range
  use an integer from 8 to 4096
r.json:4: /steps: excludes "epochs"
  use one of: "epochs", "steps"; null removes an inherited key
r.json:5: /optimizer: "lr" is missing
  add "lr": a number above 0 and at most 1000. Base learning rate after warmup, for example 0.001. Scaled with the global batch when `lr_base_batch` is set.
r.json:5: /optimizer/beta1: 1 is out of range
  use a number of at least 0 and below 1
r.json:5: /optimizer/no_such_key: "no_such_key" is not a key here
  use one of: name, lr, weight_decay, weight_decay_end, decay_norm_and_bias, layer_decay, lr_base_batch, lr_scaling, groups, centralize_gradients, beta1, beta2, eps
r.json:6: /presicion: "presicion" is not a key here
  did you mean "precision"?
r.json:7: /loss/label_smoothing: "lots" is not a number
  use a number of at least 0 and below 1
r.json:8: /safety: is reserved: not available in this version
  leave it out)");
}

TEST_CASE("an error lists all missing keys of an empty object") {
  CHECK(error_of("{}") ==
        "r.json:1: \"model\" is missing\n"
        "  add \"model\": a model, one of: " +
            names_in(models()) +
            ". Model architecture, with its initial weights and frozen parameters.\n"
            "r.json:1: \"data\" is missing\n"
            "  add \"data\": an object with keys of: train, val, test, extra, image_size, "
            "resize_ramp, eval_resize, eval_filter, context, token_bytes, document_attention, "
            "threads, prefetch, shuffle_shards, order, lanes, samples_per_epoch, bad_samples, "
            "index_cache, cache, normalize, exif_orientation, jpeg, max_pixels, label, "
            "label_format. Training, validation and test data, and options of the data loader.\n"
            "r.json:1: \"optimizer\" is missing\n"
            "  add \"optimizer\": an optimizer, one of: " +
            names_in(optimizers()) +
            ". Optimizer, with learning rate and weight decay.\n"
            "r.json:1: none of \"epochs\", \"steps\" is there\n"
            "  add one of them");
}

TEST_CASE("a violated condition between keys is reported at its place in the file") {
  CHECK(error_of(minimal_recipe("\"batch\": {\"global\": 100, \"per_device\": 32}")) ==
        "r.json:6: /batch/global: 100 is not a multiple of \"per_device\", which is 32\n"
        "  use 96 or 128");
  CHECK(error_of(minimal_recipe(), {"model={\"name\": \"vit_tiny\", \"num_classes\": 2, "
                                    "\"heads\": 5}"}) ==
        "--set model: /model/heads: 5 does not divide \"dim\", which is 192\n"
        "  change one of them");
  CHECK(error_of(minimal_recipe(), {"optimizer.momentum=0", "optimizer.nesterov=true"}) ==
        "--set optimizer.nesterov: needs \"momentum\" above 0\n"
        "  change one of them");
  CHECK(
      error_of(minimal_recipe(),
               {"data.train.augment=[{\"name\": \"random_resized_crop\", \"scale_max\": 0.01}]"}) ==
      "--set data.train.augment: /data/train/augment/0/scale_min: 0.08 is more than \"scale_max\", "
      "which is "
      "0.01\n  change one of them");
}

TEST_CASE("overrides take JSON or text, the later one wins, and replace what they exclude") {
  const Recipe recipe = parse_recipe(
      minimal_recipe("\"schedule\": \"cosine\", \"loss\": \"cross_entropy\""), "r.json",
      {"optimizer.lr=0.2", "optimizer.lr=0.3", "name=abc", "steps=20", "precision=bf16",
       "loss.label_smoothing=0.1", "schedule.warmup.steps=5", "schedule.decay.final_factor=0.5",
       "data.val.shards=v-{0..1}.tar", "data.train.folder=f", "checkpoint.every.steps=7",
       "batch.global=64", "output=o=p"});
  CHECK(recipe.optimizer.lr == 0.3);
  CHECK(recipe.name == "abc");
  CHECK(recipe.length.unit == Duration::Unit::kSteps);
  CHECK(recipe.length.value == 20);
  CHECK(recipe.precision.name == "bf16");
  CHECK(recipe.loss.label_smoothing == 0.1);
  CHECK(recipe.schedule.warmup->value == 5);
  CHECK(recipe.schedule.decay.name == "cosine");
  CHECK(recipe.schedule.decay.number("final_factor") == 0.5);
  CHECK(recipe.data.val->shards.size() == 2);
  CHECK(recipe.data.train.shards.empty());
  CHECK(recipe.data.train.folder == absolute("f"));
  CHECK(recipe.checkpoint.every.unit == Duration::Unit::kSteps);
  CHECK(recipe.batch.global == 64);
  CHECK(recipe.output == absolute("o=p"));
}

TEST_CASE("an override of null goes back to the default") {
  const Recipe recipe = parse_recipe(minimal_recipe("\"clip\": {\"norm\": 1}, \"seed\": 5"),
                                     "r.json", {"clip=null", "seed=null"});
  CHECK_FALSE(recipe.clip.has_value());
  CHECK(recipe.seed == 0);
}

TEST_CASE("mistakes of overrides name the override") {
  CHECK(error_of(minimal_recipe(), {"optimizer.lrr=1"}) ==
        "--set optimizer.lrr: \"lrr\" is not a key here\n"
        "  did you mean \"lr\"?");
  CHECK(error_of(minimal_recipe(), {"optimizer.lr=NaN"}) ==
        "--set optimizer.lr: \"NaN\" is not a number\n  use a number above 0 and at most 1000");
  CHECK(error_of(minimal_recipe(), {"clip={\"nrm\": 1}"}) ==
        "--set clip: none of \"norm\", \"value\", \"adaptive\" is there\n"
        "  add one of them\n"
        "--set clip: /clip/nrm: \"nrm\" is not a key here\n"
        "  did you mean \"norm\"?");
  CHECK(error_of(minimal_recipe(), {"optimizer"}) ==
        "--set optimizer: is not KEY=VALUE\n  write for instance --set optimizer.lr=0.1");
  CHECK(error_of(minimal_recipe(), {"seed.x=1"}).find("--set seed.x: /seed:") == 0);
  CHECK(error_of(minimal_recipe(), {"epochs.x=1"}) ==
        "--set epochs.x: 10 has no key \"x\"\n  set the whole value");
  CHECK(
      error_of(minimal_recipe(), {"clip={\"norm\": 1"}) ==
      "--set clip: not JSON: syntax error while parsing object - unexpected end of input; expected "
      "'}'\n  recipes are JSON in UTF-8; comments (// and /* */) and trailing commas are "
      "allowed, NaN and single quotes are not");
  CHECK(error_of(minimal_recipe(), {"name=\xff"}) ==
        "--set name: \"\xEF\xBF\xBD\" is not UTF-8\n  use UTF-8");
}

TEST_CASE("extends merges as RFC 7396 says, relative to its file, and keeps places") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path / "base");
  (void)folder.write("base/a.json", minimal_recipe("\"clip\": {\"norm\": 1}, \"seed\": 3"));
  (void)folder.write("b.json", R"({"extends": "base/a.json", "seed": 4, "loss": "cross_entropy"})");
  const auto top = folder.write(
      "c.json", R"({"extends": "b.json", "clip": null, "optimizer": {"lr": 0.5}, "name": "c"})");
  const Recipe recipe = load_recipe(top, {"seed=9"});
  CHECK(recipe.name == "c");
  CHECK(recipe.optimizer.name == "sgd");
  CHECK(recipe.optimizer.lr == 0.5);
  CHECK(recipe.seed == 9);
  CHECK_FALSE(recipe.clip.has_value());

  (void)folder.write("base/a.json", minimal_recipe("\"sed\": 3"));
  CHECK(load_error_of(top) == (folder.path / "base/a.json").string() +
                                  ":6: /sed: \"sed\" is not a key here\n  did you mean \"seed\"?");
}

TEST_CASE("paths that are not UTF-8, which a recipe cannot hold, are refused") {
  const test::TemporaryFolder folder;
  const std::filesystem::path odd = folder.path / "o\xe9";
  std::filesystem::create_directory(odd);
  const auto file = folder.write("r.json", minimal_recipe());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(odd);
  const std::string found = load_error_of(file);
  std::filesystem::current_path(before);
  CHECK(found.starts_with("/output: "));
  CHECK(
      found.ends_with("is not UTF-8\n  rename the file or folder, or start in another working "
                      "directory"));
}

TEST_CASE("extends of itself, of nothing and of a number are reported") {
  const test::TemporaryFolder folder;
  const std::string place = (folder.path / "a.json").string();
  const auto file = folder.write("a.json", "{\n\"extends\": \"b.json\"}");
  CHECK(load_error_of(file) == place + ":2: /extends: \"" + (folder.path / "b.json").string() +
                                   "\": cannot be read: No such file or directory (ENOENT)\n"
                                   "  check the path");
  (void)folder.write("b.json", "{\"extends\": \"./a.json\"}");
  CHECK(load_error_of(file) == (folder.path / "b.json").string() +
                                   ":1: /extends: \"./a.json\" extends this file in turn\n"
                                   "  remove one of the extends");
  (void)folder.write("a.json", "{\"extends\": 3}");
  CHECK(load_error_of(file) ==
        place + ":1: /extends: 3 is not a text\n  use a path relative to this file");
}

TEST_CASE("wrong values of fault 40 are each refused with what is allowed") {
  const auto check = [](const std::string& value, const std::string& expected) {
    CHECK(error_of(minimal_recipe("\"threads\": " + value)) == "r.json:6: /threads: " + expected);
  };
  const std::string use = "\n  use an integer from 0 to 4096";
  check("8.7", "8.7 is not an integer" + use);
  check("-1", "-1 is out of range" + use);
  check("true", "true is not an integer" + use);
  check("\"8\"", "\"8\" is not an integer" + use);
  check("null", "null is not an integer" + use);
  check("[8]", "a list is not an integer" + use);
  check("{}", "an object is not an integer" + use);
  check("1e3", "1000.0 is not an integer" + use);
}

TEST_CASE("an error lists all names if none is similar") {
  CHECK(error_of(minimal_recipe(), {"clip={\"norm\": 1, \"everything\": 2}"}) ==
        "--set clip: /clip/everything: \"everything\" is not a key here\n  use one of: norm, "
        "value, adaptive");
  CHECK(error_of(minimal_recipe(), {"precision=wide"}) ==
        "--set precision: \"wide\" is not a precision\n  use one of: " + names_in(precisions()));
}

TEST_CASE("a key misspelled in any object is reported with the right one") {
  const char* const known[] = {
      "seed",   "batch.per_device", "data.image_size", "checkpoint.keep_last",
      "device", "data.prefetch",    "output",          "optimizer.weight_decay"};
  for (const std::string path : known) {
    std::string wrong = path;
    std::swap(wrong[wrong.size() - 1], wrong[wrong.size() - 2]);
    const std::string name = path.substr(path.find('.') + 1);
    const std::string error = error_of(minimal_recipe(), {wrong + "=1"});
    CHECK(error.ends_with("did you mean \"" + name + "\"?"));
  }
}

TEST_CASE("texts are refused when empty, with control characters, or remote") {
  CHECK(error_of(minimal_recipe("\"output\": \"\"")) ==
        "r.json:6: /output: is empty\n  use a path");
  CHECK(error_of(minimal_recipe("\"output\": \"a\\u0000b\"")) ==
        "r.json:6: /output: \"a\\u0000b\" has control characters\n  use a path");
  CHECK(error_of(minimal_recipe("\"output\": \"s3://b/k\"")) ==
        "r.json:6: /output: \"s3://b/k\" is remote, and a local path is needed here\n  use a path");
  CHECK(error_of(minimal_recipe("\"name\": \"a b\"")) ==
        "r.json:6: /name: \"a b\" cannot be a run's name\n  use at most 100 letters, digits, '.', "
        "'_' and '-', not '.' or '-' first");
}

TEST_CASE("a path that is not a regular file of sensible size is refused at once") {
  const test::TemporaryFolder folder;
  const std::string no_file = ": is not a regular file\n  name a file, not a folder or a device";
  CHECK(load_error_of(folder.path) == folder.path.string() + no_file);
  CHECK(load_error_of("/dev/zero") == "/dev/zero" + no_file);
  const auto fifo = folder.path / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(load_error_of(fifo) == fifo.string() + no_file);
  const auto loop = folder.path / "loop";
  std::filesystem::create_symlink("loop", loop);
  CHECK(load_error_of(loop) ==
        loop.string() +
            ": cannot be read: Too many levels of symbolic links (ELOOP)\n  check the path");
  const auto large = folder.write("large", "");
  std::filesystem::resize_file(large, (16 << 20) + 1);
  CHECK(load_error_of(large) ==
        large + ": has 16777217 bytes\n  at most 16777216 bytes are read here");
  CHECK(load_error_of(folder.write("empty", "")) ==
        (folder.path / "empty").string() + ": is empty\n  write a recipe; recipes/ has examples");
}

TEST_CASE("a short list that stands for too many shards is refused at once") {
  std::string shards = "\"{0..99999}\"";
  for (int i = 0; i < 50000; ++i) shards += ",\"{0..99999}\"";
  CHECK(error_of(minimal_recipe(), {"data.train.shards=[" + shards + "]"}) ==
        "--set data.train.shards: /data/train/shards/1: makes the list too long\n"
        "  use at most 100000 shards");
}

}  // namespace scaletrain::recipe
