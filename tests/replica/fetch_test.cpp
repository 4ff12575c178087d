#include "lib/replica/fetch.h"

#include <doctest/doctest.h>

#include "tests/replica/node_support.h"

namespace scaletrain::replica {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::string said;  // a line each
  std::int64_t step = -1;
};

Found fetched(const fs::path& run, const std::vector<Address>& nodes, std::int64_t beyond = -1) {
  Found found;
  const auto one = fetch_newest(
      core::system_disk(), nodes, run / "checkpoints", beyond,
      [&](const std::string& text) { found.said += text + "\n"; }, test::kLittlePatience);
  if (!one) return found;
  found.step = one->step;
  CHECK(format::check_checkpoint(one->checkpoint).step == one->step);
  return found;
}

}  // namespace

TEST_CASE("a checkpoint comes back from any node that has it") {
  const test::TemporaryFolder run, other;
  const test::Node a, b;
  const fs::path checkpoint = test::keep(run.path, 5, {&a, &b});
  for (const test::Node* const left : {&a, &b}) {
    const test::TemporaryFolder fresh;
    const Found found = fetched(fresh.path, {left->address()});
    CHECK(found.said.empty());
    CHECK(found.step == 5);
    for (const auto& file : fs::directory_iterator(checkpoint)) {
      CHECK(test::read_bytes(file.path()) ==
            test::read_bytes(fresh.path / "checkpoints/step-00000005" / file.path().filename()));
    }
  }
  CHECK(fetched(other.path, test::addresses_of({&a, &b}), 5).step == -1);
  CHECK(fetched(other.path, {}).step == -1);
}

TEST_CASE("files of one save come together from several nodes") {
  const test::TemporaryFolder run, fresh;
  const test::Node a, b;
  const fs::path checkpoint = test::keep(run.path, 5, {&a, &b});
  // Each of these nodes has a part of them, as nodes have whose ranks write shares.
  const test::Node left, right;
  bool is_left = false;
  for (const auto& [name, entry] : format::read_manifest(checkpoint).files) {
    is_left = !is_left;
    Peer peer = (is_left ? left : right).peer();
    const std::string bytes = test::read_bytes(checkpoint / name);
    peer.begin_file("save", 5, name);
    peer.send(std::as_bytes(std::span(bytes)));
    peer.end_file();
  }
  const std::string manifest = test::read_bytes(checkpoint / "manifest.json");
  CHECK(fetched(fresh.path, test::addresses_of({&left, &right})).step == -1);  // nobody finished
  right.peer().finish("save", 5, manifest);
  CHECK(fetched(fresh.path, {right.address()}).step == -1);
  CHECK(fetched(fresh.path, test::addresses_of({&left, &right})).step == 5);
}

TEST_CASE("a damaged copy is named and the other node's is taken") {
  const test::TemporaryFolder run, fresh;
  const test::Node a, b;
  test::keep(run.path, 5, {&a, &b}, {{&a, "model.safetensors"}, {&b, "state.json"}});
  const Found found = fetched(fresh.path, test::addresses_of({&a, &b}));
  CHECK(found.step == 5);
  CAPTURE(found.said);
  CHECK(found.said.starts_with(
      "the memory of node 127.0.0.1, step 5, model.safetensors: has the XXH3-128 "));
  CHECK(found.said.find("state.json") == std::string::npos);  // that of the first node is whole
}

TEST_CASE("where all copies of a file are damaged, the older checkpoint is taken") {
  const test::TemporaryFolder run, fresh;
  const test::Node a, b;
  test::keep(run.path, 5, {&a, &b});
  test::keep(run.path, 6, {&a, &b}, {{&a, "model.safetensors"}, {&b, "model.safetensors"}});
  CHECK(a.steps() == "5* 6*");
  const Found found = fetched(fresh.path, test::addresses_of({&a, &b}));
  CHECK(found.step == 5);
  CHECK(
      found.said.find(
          "the checkpoint of step 6: no node has a complete model.safetensors of it in memory\n") !=
      std::string::npos);
}

TEST_CASE("a manifest that is damaged, and a node that does not answer, are named") {
  const test::TemporaryFolder run, fresh;
  const test::Node a, b;
  const fs::path checkpoint = test::keep(run.path, 5, {&a, &b});
  auto gone = std::make_unique<test::Node>();
  const std::vector<Address> nodes = test::addresses_of({gone.get(), &a});
  gone.reset();
  Peer peer = a.peer();
  peer.begin_file("later", 6, "model.safetensors");
  peer.end_file();
  peer.finish("later", 6, "{}");
  const Found found = fetched(fresh.path, nodes);
  CHECK(found.step == 5);
  CHECK(found.said.find("cannot be reached") != std::string::npos);
  CHECK(found.said.find("the memory of node 127.0.0.1/manifest.json: ") != std::string::npos);
}

}  // namespace scaletrain::replica
