#include "lib/dist/store_board.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "lib/core/error.h"
#include "lib/dist/foreign_text.h"

namespace scaletrain::dist {
namespace {

class StoreBoard : public core::Board {
 public:
  StoreBoard(c10::intrusive_ptr<c10d::Store> store, int rank)
      : store_(std::move(store)), rank_(rank) {}

  void put(const std::string& key, const std::string& text) override {
    use([&] { store_->set(key, text); });
  }

  std::string get(const std::string& key) override {
    std::string text;
    use([&] {
      // get() would block until the key exists.
      if (store_->check({key})) text = store_->get_to_str(key);
    });
    return text;
  }

 private:
  template <class Body>
  void use(const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      throw core::StoppedError(
          fmt::format("rank {}", rank_),
          fmt::format("the job's store does not answer ({})", foreign_text(error)),
          "look at the logs of rank 0 and of its launcher");
    }
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_;
};

}  // namespace

std::unique_ptr<core::Board> open_board(c10d::Store& store, const std::string& name, int rank) {
  return std::make_unique<StoreBoard>(c10::make_intrusive<c10d::PrefixStore>(name, store.clone()),
                                      rank);
}

}  // namespace scaletrain::dist
