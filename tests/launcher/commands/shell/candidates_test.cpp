#include "launcher/commands/shell/candidates.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

core::Command small_table() {
  core::Command launch{
      .name = "launch", .help = "Run", .examples = "", .flags = {}, .commands = {}};
  launch.flags = {
      {.names = {"-r", "--redirects"}, .help = "streams; more", .takes_value = true},
      {.names = {"--nproc", "--nproc-per-node"}, .help = "workers", .takes_value = true},
      {.names = {"--set"}, .help = "", .takes_value = true},
      {.names = {"--allow"}, .help = "", .takes_value = true},
      {.names = {"--log-dir"}, .help = "", .takes_value = true},
      {.names = {"--to"}, .help = "", .takes_value = true, .allowed = {"timm", "pt"}},
      {.names = {"--standalone"}, .help = "one node"},
      {.names = {"RECIPE"}, .help = "", .takes_value = true}};
  core::Command show{.name = "show", .help = "", .examples = "", .flags = {}, .commands = {}};
  core::Command recipe{
      .name = "recipe", .help = "Recipes", .examples = "", .flags = {}, .commands = {show}};
  return {
      .name = "scaletrain", .help = "", .examples = "", .flags = {}, .commands = {launch, recipe}};
}

// The candidates in one line.
std::string after(const std::vector<std::string>& words) {
  std::string result;
  for (const CompletionWord& candidate : candidates(small_table(), words))
    result += candidate.word + " ";
  return result;
}

TEST_CASE("commands, and commands below them") {
  CHECK(after({""}) == "launch recipe ");
  CHECK(after({}) == "launch recipe ");
  CHECK(after({"la"}) == "launch ");
  CHECK(after({"recipe", ""}) == "show ");
  CHECK(after({"help", "la"}) == "launch ");
  CHECK(after({"help", "recipe", ""}) == "show ");
  CHECK(candidates(small_table(), {"la"})[0].help == "Run");
}

TEST_CASE("flags by their beginnings, with the first part of their help") {
  CHECK(after({"launch", "--n"}) == "--nproc --nproc-per-node ");
  CHECK(after({"launch", "-"}) ==
        "--redirects --nproc --nproc-per-node --set --allow --log-dir --to --standalone ");
  CHECK(candidates(small_table(), {"launch", "--red"})[0].help == "streams");
  CHECK(after({"recipe", "--n"}).empty());
}

TEST_CASE("values of flags, files where they are none") {
  CHECK(after({"launch", "--nproc", ""}) == "auto gpu cpu ");
  CHECK(after({"launch", "--nproc", "g"}) == "gpu ");
  CHECK(after({"launch", "--nproc=a"}) == "--nproc=auto ");
  CHECK(after({"launch", "--log-dir", ""}).empty());
  CHECK(after({"launch", ""}).empty());
  // A value is not taken for a command, and a flag without value takes no word.
  CHECK(after({"launch", "--log-dir", "recipe", "--st"}) == "--standalone ");
  CHECK(after({"launch", "--standalone", "--st"}) == "--standalone ");
}

TEST_CASE("--set offers the keys of recipes") {
  CHECK(after({"launch", "--set", "optimizer.lr"}) ==
        "optimizer.lr= optimizer.lr_base_batch= optimizer.lr_scaling= ");
  CHECK(after({"launch", "--set=optimizer.gr"}) == "--set=optimizer.groups= ");
}

TEST_CASE("--allow offers the keys of recipes by themselves") {
  CHECK(after({"launch", "--allow", "optimizer.lr"}) ==
        "optimizer.lr optimizer.lr_base_batch optimizer.lr_scaling ");
}

TEST_CASE("--set offers the values of a key after =") {
  CHECK(after({"launch", "--set", "optimizer.name=ada"}).starts_with("optimizer.name=ada"));
  CHECK(after({"launch", "--set", "optimizer=sg"}) == "optimizer=sgd ");
  CHECK(after({"launch", "--set=precision=bf16_"}) == "--set=precision=bf16_pure ");
  CHECK(after({"launch", "--set", "optimizer.lr="}).empty());
  CHECK(after({"launch", "--set", "no.such.key="}).empty());
}

TEST_CASE("a flag with a list of values offers them") {
  CHECK(after({"launch", "--to", ""}) == "timm pt ");
  CHECK(after({"launch", "--to=p"}) == "--to=pt ");
}

TEST_CASE("a program's own words are its own") {
  CHECK(after({"launch", "--", "tool", "--n"}).empty());
}

}  // namespace
}  // namespace scaletrain::launcher
