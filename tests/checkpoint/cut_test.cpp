#include "lib/checkpoint/cut.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/host_copies.h"
#include "lib/checkpoint/share.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/checkpoint/team_support.h"
#include "tests/format/checkpoint_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

const std::vector<std::int64_t> kCutShape{5, 7};

at::Tensor numbers_of(const char* name) {
  return at::arange(35, at::kFloat).view(kCutShape).add(1000.0 * name[0]);
}

// What place `place` of `places` has: elements from 35 * place / places on of "a.weight" and its
// state, nothing of "b.weight" but the last place, whose state the first has, of any shape, and all
// of a buffer; as of `step`.
Contents cut_contents(int place, int places, std::int64_t step, bool writes = true) {
  const std::int64_t first = 35 * place / places, last = 35 * (place + 1) / places;
  const auto part = [&](const char* name) {
    return numbers_of(name).view({-1}).narrow(0, first, last - first).clone();
  };
  Contents contents;
  contents.cut = Cut{.parts = {}, .place = place, .places = places, .writes = writes};
  contents.cut->parts["a.weight"] = {.shape = kCutShape,
                                     .pieces = {format::range_piece(kCutShape, first, last)}};
  contents.cut->parts["b.weight"] = {
      .shape = kCutShape, .pieces = {}, .whole = {"exp_avg", "gram", "basis"}};
  contents.model = {{"a.weight", part("a")}, {"norm.mean", at::full({3}, 2.5)}};
  contents.means["ema"].tensors = {{"a.weight", part("m")}, {"norm.mean", at::full({3}, 3.5)}};
  contents.optimizer = {{"exp_avg/a.weight", part("o")}, {"step", at::full({}, 7, at::kDouble)}};
  if (place + 1 == places) {
    contents.cut->parts["b.weight"].pieces = {format::whole_piece(kCutShape)};
    contents.model["b.weight"] = numbers_of("b").view({-1}).clone();
    contents.means["ema"].tensors["b.weight"] = numbers_of("n").view({-1}).clone();
  }
  if (place == 0) {
    contents.optimizer["exp_avg/b.weight"] = numbers_of("p");
    contents.optimizer["gram/b.weight"] = at::full({5, 5}, 0.5);
    contents.optimizer["basis/b.weight"] = at::zeros({0, 0});
  }
  if (place == 0 && writes) {
    contents.classes = {"zero"};
    contents.recipe = "{\"name\": \"test\"}\n";
  }
  contents.state.step = step;
  return contents;
}

// Writes as `places` ranks that hold it together, and as many that hold the same once more.
fs::path write_cut(int places, const fs::path& run) {
  fs::path path;
  test::as_ranks(2 * places, [&](Writers& writers) {
    const int rank = writers.rank();
    const Contents share =
        share_of(cut_contents(rank % places, places, 7, rank < places), rank, 2 * places);
    if (rank != 0) return write_share(core::system_disk(), run, share, writers);
    path = write(core::system_disk(), run, share, &writers).path;
  });
  return path;
}

void check_loaded(const Contents& loaded, const Contents& expected) {
  const auto check = [](const Tensors& a, const Tensors& b) {
    REQUIRE(a.size() == b.size());
    for (const auto& [name, tensor] : a) {
      CAPTURE(name);
      CHECK(at::equal(tensor, b.at(name)));
    }
  };
  check(loaded.model, expected.model);
  check(loaded.optimizer, expected.optimizer);
}

void forget(Contents& contents) {
  for (Tensors* tensors : {&contents.model, &contents.optimizer}) {
    for (auto& [name, tensor] : *tensors) tensor.zero_();
  }
}

}  // namespace

TEST_CASE("a rank's share of what stands stands") {
  Contents contents = cut_contents(0, 2, 7, true);
  CHECK(!share_of(contents, 0, 2).stands);
  contents.stands = true;
  CHECK(share_of(contents, 0, 2).stands);
}

TEST_CASE("what ranks hold together is written once, and read by any number of others") {
  for (const int places : {1, 2, 4}) {
    const test::TemporaryFolder run;
    const fs::path path = write_cut(places, run.path);
    CAPTURE(places);
    const std::string last = fmt::format("model-{:05}-of-{:05}.safetensors", places, places);
    CHECK(fs::exists(path / last));
    CHECK_FALSE(fs::exists(path / "model.safetensors"));
    format::check_checkpoint(path);
    for (const int readers : {1, 3, 4}) {
      for (int place = 0; place < readers; ++place) {
        CAPTURE(place);
        Contents loaded = cut_contents(place, readers, 7);
        forget(loaded);
        load_cut(path, loaded);
        check_loaded(loaded, cut_contents(place, readers, 7));
      }
      Tensors mean = cut_contents(0, readers, 7).means.at("ema").tensors;
      const Tensors expected = cut_contents(0, readers, 7).means.at("ema").tensors;
      for (auto& [name, tensor] : mean) tensor.zero_();
      load_cut_model(
          path, mean, cut_contents(0, readers, 7).cut->parts, [] {}, "ema");
      for (const auto& [name, tensor] : mean) CHECK(at::equal(tensor, expected.at(name)));
    }
    // A rank that has the whole model reads the same pieces.
    Contents all;
    all.model = {{"a.weight", at::zeros(kCutShape)},
                 {"b.weight", at::zeros(kCutShape)},
                 {"norm.mean", at::zeros({3})}};
    all.optimizer = {{"exp_avg/a.weight", at::zeros(kCutShape)},
                     {"exp_avg/b.weight", at::zeros(kCutShape)},
                     {"gram/b.weight", at::zeros({5, 5})},
                     {"basis/b.weight", at::zeros({0, 0})},
                     {"step", at::zeros({}, at::kDouble)}};
    load(path, all);
    CHECK(at::equal(all.model.at("a.weight"), numbers_of("a")));
    CHECK(at::equal(all.optimizer.at("exp_avg/b.weight"), numbers_of("p")));
    CHECK(at::equal(all.optimizer.at("gram/b.weight"), at::full({5, 5}, 0.5)));
    CHECK(all.classes == std::vector<std::string>{"zero"});
  }
}

TEST_CASE("a rank that holds a part reads what one rank wrote whole") {
  const test::TemporaryFolder run;
  Contents all;
  all.model = {{"a.weight", numbers_of("a")},
               {"b.weight", numbers_of("b")},
               {"norm.mean", at::full({3}, 2.5)}};
  all.optimizer = {{"exp_avg/a.weight", numbers_of("o")},
                   {"exp_avg/b.weight", numbers_of("p")},
                   {"gram/b.weight", at::full({5, 5}, 0.5)},
                   {"basis/b.weight", at::zeros({0, 0})},
                   {"step", at::full({}, 7, at::kDouble)}};
  all.state.step = 7;
  all.recipe = "{}";
  const fs::path path = save(core::system_disk(), run.path, all, {.last = 1});
  for (int place = 0; place < 3; ++place) {
    Contents loaded = cut_contents(place, 3, 7);
    forget(loaded);
    load_cut(path, loaded);
    check_loaded(loaded, cut_contents(place, 3, 7));
  }
}

TEST_CASE("tensors that do not fit are named before any is changed") {
  const test::TemporaryFolder run;
  const fs::path path = write_cut(2, run.path);
  Contents other = cut_contents(0, 2, 7);
  forget(other);
  other.cut->parts["a.weight"].shape = {7, 5};
  other.optimizer["exp_avg_sq/a.weight"] = at::zeros({17});
  other.model.erase("norm.mean");
  const std::string said = test::message_of<core::CheckpointError>([&] { load_cut(path, other); });
  CHECK(said.find("does not fit: tensors 1 left over (norm.mean); 1 of another shape (a.weight: "
                  "[5, 7] instead of [7, 5])") != std::string::npos);
  other = cut_contents(0, 2, 7);
  other.optimizer["exp_avg_sq/a.weight"] = at::zeros({17});
  forget(other);
  CHECK(test::message_of<core::CheckpointError>([&] {
          load_cut(path, other);
        }).find("1 missing (exp_avg_sq/a.weight)") != std::string::npos);
  CHECK(at::equal(other.model.at("a.weight"), at::zeros({17})));
  Contents less = cut_contents(0, 2, 7);
  less.optimizer.erase("exp_avg/a.weight");
  CHECK(test::message_of<core::CheckpointError>([&] {
          load_cut(path, less);
        }).find("1 left over (exp_avg/a.weight)") != std::string::npos);
}

// What rank `rank`, at `place` of two in copy `copy` of three, has of its own: some elements of the
// optimizer's of "a.weight", and the first place a number of its own.
OwnRows rows_of(int copy, int place) {
  const int rank = 2 * copy + place;
  OwnRows rows{.tensors = {}, .cut = {.parts = {}, .place = rank, .places = 6}};
  const std::int64_t first = place == 0 ? 0 : 20, last = place == 0 ? 20 : 35;
  rows.tensors["optimizer/exp_avg/a.weight"] =
      numbers_of("a").view({-1}).narrow(0, first, last - first).add(100 * copy);
  format::Piece piece = format::range_piece(kCutShape, first, last);
  piece.begin.insert(piece.begin.begin(), copy);
  piece.size.insert(piece.size.begin(), 1);
  rows.cut.parts["exp_avg/a.weight"] = {.shape = {3, 5, 7}, .pieces = {piece}};
  rows.tensors["optimizer/step"] = at::full({}, 10 * copy, at::kDouble);
  format::Piece whole = format::whole_piece({});
  whole.begin.insert(whole.begin.begin(), copy);
  whole.size.insert(whole.size.begin(), 1);
  rows.cut.parts["step"] = {.shape = {3}, .pieces = {whole}, .writes = place == 0};
  return rows;
}

TEST_CASE("ranks write the rows of others as these write them") {
  const auto written_by = [](int ranks, const fs::path& run) {
    fs::path path;
    test::as_ranks(ranks, [&](Writers& writers) {
      const int rank = writers.rank();
      Contents contents = cut_contents(rank % 2, 2, 7, rank < 2);
      for (int copy = rank / 2; copy < 3; copy += ranks / 2) {
        contents.own_rows.push_back(rows_of(copy, rank % 2));
      }
      HostCopies copies;
      copies.begin(share_of(contents, rank, ranks));
      const Contents& share = copies.contents();
      if (rank != 0) return write_share(core::system_disk(), run, share, writers);
      path = write(core::system_disk(), run, share, &writers).path;
    });
    format::check_checkpoint(path);
    return path;
  };
  const test::TemporaryFolder each, two;
  const fs::path own = written_by(6, each.path), all = written_by(2, two.path);
  int files = 0;
  for (const auto& file : fs::directory_iterator(own)) {
    if (!file.path().filename().string().starts_with("ranks-")) continue;
    ++files;
    CHECK(test::read_bytes(file.path()) == test::read_bytes(all / file.path().filename()));
  }
  CHECK(files == 6);
  for (const fs::path& path : {own, all}) {
    for (const int copy : {0, 1, 2}) {
      const OwnRows rows = rows_of(copy, 1);
      Tensors tensors{{"optimizer/exp_avg/a.weight", at::zeros({15})},
                      {"optimizer/step", at::zeros({}, at::kDouble)}};
      prepare_cut_ranks(path, tensors, rows.cut.parts)();
      CHECK(at::equal(tensors.at("optimizer/exp_avg/a.weight"),
                      rows.tensors.at("optimizer/exp_avg/a.weight")));
      CHECK((tensors.at("optimizer/step").item<double>() == 10 * copy));
    }
  }
}

TEST_CASE("several pieces of a tensor in one file are refused: a file of pieces has one of each") {
  Contents contents = cut_contents(0, 2, 4);
  contents.cut->parts.at("a.weight").pieces = {format::range_piece(kCutShape, 0, 10),
                                               format::range_piece(kCutShape, 20, 27)};
  const std::string said = test::message_of<core::InternalError>([&] { share_of(contents, 0, 2); });
  CHECK(said.find("a.weight has 2 pieces in one file") != std::string::npos);
}

TEST_CASE("a share counts the bytes of all, and has what is no piece where it is the first") {
  Contents contents = cut_contents(0, 2, 4);
  contents.buffers = {{"norm.mean", at::ones({2, 3})}};
  contents.means.at("ema").buffers = {{"norm.mean", at::zeros({2, 3})}};
  const Contents share = share_of(contents, 0, 2);
  // Thrice 17 elements on two places, twice what all have, a number, and what this place owns.
  CHECK(share.all_bytes == 3 * 2 * 4 * 17 + 2 * 12 + 8 + 2 * (4 * 35 + 4 * 25));
  CHECK(share.buffers.size() == 1);
  CHECK(share.means.at("ema").buffers.size() == 1);
  // Twice 18 elements, what all have, and the last place's own.
  const Contents last = share_of(cut_contents(1, 2, 4), 1, 2);
  CHECK(last.all_bytes == 3 * 2 * 4 * 18 + 2 * 12 + 8 + 2 * 2 * 4 * 35);
  CHECK(share_of(cut_contents(0, 2, 4, /*writes=*/false), 2, 4).all_bytes == 920);
  contents.optimizer.clear();
  CHECK(share_of(contents, 0, 2).pieces.contains("optimizer.safetensors"));
  Contents second = cut_contents(1, 2, 4);
  second.optimizer.clear();
  second.buffers = contents.buffers;
  CHECK_FALSE(share_of(second, 1, 2).pieces.contains("optimizer.safetensors"));
  CHECK(share_of(second, 1, 2).buffers.empty());
}

TEST_CASE("rows of several ranks that one writes are counted once: each has those of all") {
  Contents contents = cut_contents(0, 2, 4);
  const std::int64_t without = share_of(contents, 0, 2).all_bytes;
  contents.own_rows.push_back(rows_of(0, 0));
  const std::int64_t with_own = share_of(contents, 0, 2).all_bytes;
  CHECK(with_own == without + 6 * (4 * 20 + 8));
  contents.own_rows.push_back(rows_of(1, 0));
  contents.own_rows.push_back(rows_of(2, 0));
  CHECK(share_of(contents, 0, 2).all_bytes == with_own);
}

TEST_CASE(
    "pieces are read into a tensor of another type and layout, and each says that it goes on") {
  const test::TemporaryFolder run;
  const fs::path path = write_cut(2, run.path);
  const Parts parts{
      {"a.weight",
       {.shape = kCutShape,
        .pieces = {format::range_piece(kCutShape, 3, 5), format::range_piece(kCutShape, 16, 20)}}},
      {"b.weight", {.shape = kCutShape}}};
  const at::Tensor expected = at::cat(
      {numbers_of("a").view({-1}).narrow(0, 3, 2), numbers_of("a").view({-1}).narrow(0, 16, 4)});
  for (const at::Tensor& target :
       {at::zeros({6}), at::zeros({6}, at::kDouble), at::zeros({6, 2}).select(1, 0)}) {
    CAPTURE(target.dtype().name());
    CAPTURE(target.is_contiguous());
    int calls = 0;
    load_cut_model(path, {{"a.weight", target}, {"norm.mean", at::zeros({3})}}, parts,
                   [&] { ++calls; });
    CHECK(at::equal(target.to(at::kFloat), expected));
    CHECK(calls == 2);
  }
}

TEST_CASE("what a rank had of its own is compared too, but for what others had") {
  const test::TemporaryFolder folder;
  const Tensors stored{{"optimizer/step", at::ones({3})}, {"other", at::ones({2})}};
  const Parts parts{{"step", {.shape = {3}, .pieces = {format::range_piece({3}, 1, 2)}}}};
  const auto refusal_of = [&](const Tensors& tensors) {
    return test::message_of<core::CheckpointError>(
        [&] { prepare_cut_ranks(folder.path, tensors, parts); });
  };
  Tensors wanted{{"optimizer/step", at::zeros({1})}};
  CHECK(refusal_of(wanted).find("ranks.safetensors: the checkpoint has none") != std::string::npos);
  HostTensors(stored).write(core::system_disk(), fs::path(folder.path) / "ranks.safetensors");
  prepare_cut_ranks(folder.path, wanted, parts)();
  CHECK(wanted.at("optimizer/step").item<float>() == 1);
  wanted["optimizer/step"] = at::zeros({1}, at::kDouble);
  CHECK(refusal_of(wanted).find("1 of another dtype (optimizer/step: F32 instead of F64)") !=
        std::string::npos);
}
