#include "lib/format/pt/pt_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/safetensors/safetensors_header.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kMaxDepth = 64;  // limit of nested containers
// A shared container is visited at each place that refers to it, so visits and names are limited.
constexpr std::size_t kMaxVisits = 4'000'000, kMaxNameBytes = 64'000'000;
constexpr std::size_t kMaxTensorDimensions = 64;
constexpr std::int64_t kMaxExpandedBytes = 64'000'000;

class PtTensorFinder {
 public:
  explicit PtTensorFinder(const Pickle& pickle) : pickle_(pickle) {}

  PtTensors find() {
    visit(pickle_.root);
    std::vector<PtTensor>& tensors = result_.tensors;
    std::sort(tensors.begin(), tensors.end(),
              [](const PtTensor& a, const PtTensor& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(tensors.begin(), tensors.end(),
                           [](const PtTensor& a, const PtTensor& b) { return a.name == b.name; });
    if (twice != tensors.end()) refuse("tensor {} occurs twice", shown(twice->name));
    check_expanded();
    return std::move(result_);
  }

 private:
  // One step of the walk into a container: a key of a dict, or an index of a list.
  struct Step {
    std::size_t place;
    std::optional<PickleId> key;
  };

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw core::CheckpointError(pickle_.place, fmt::format(format, std::forward<Args>(args)...),
                                kPickleRemedy);
  }

  static std::string shown(std::string_view name) {
    constexpr std::size_t kShown = 200;
    return fmt::format("\"{}\"", core::printable(name.substr(0, kShown)));
  }

  void visit(PickleId id) {
    if (++visits_ > kMaxVisits) refuse("has more than {} values to look at", kMaxVisits);
    const PickleValue& value = pickle_.at(id);
    switch (value.kind) {
      case PickleKind::kTuple:
      case PickleKind::kList:
        for (std::size_t i = 0; i < value.items.size(); ++i) visit_below({i, {}}, value.items[i]);
        return;
      case PickleKind::kDict:
        for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
          visit_below({i, value.items[i]}, value.items[i + 1]);
        }
        return;
      case PickleKind::kCall:
        add_tensor(value);
        return;
      default:
        return;
    }
  }

  void visit_below(Step step, PickleId id) {
    if (path_.size() > kMaxDepth) {
      refuse("has containers more than {} deep: one may hold itself", kMaxDepth);
    }
    path_.push_back(step);
    visit(id);
    path_.pop_back();
  }

  // Keys that are neither text nor integers are named by their position in the pickle, so that
  // tensors below them have names.
  std::string shown_step(const Step& step) const {
    if (!step.key) return std::to_string(step.place);
    const PickleValue& key = pickle_.at(*step.key);
    if (key.kind == PickleKind::kInteger) return std::to_string(key.integer);
    if (key.kind != PickleKind::kText) return fmt::format("key@{}", key.at);
    if ((name_bytes_ += key.bytes) > kMaxNameBytes) {
      refuse("has names of more than {} bytes", kMaxNameBytes);
    }
    return std::string(pickle_.text(key));
  }

  void add_tensor(const PickleValue& value) {
    std::string name;
    std::size_t top_bytes = 0;
    for (const Step& step : path_) {
      if (&step != &path_.front()) name += '.';
      name += shown_step(step);
      if (&step == &path_.front() && path_.size() > 1) top_bytes = name.size();
    }
    PtTensor tensor = read_call(value, shown(name), 0);
    tensor.name = std::move(name);
    tensor.top_bytes = top_bytes;
    result_.tensors.push_back(std::move(tensor));
  }

  // The tensor that a call describes; a parameter holds one, `depth` 1.
  PtTensor read_call(const PickleValue& call, const std::string& name, int depth) {
    const std::vector<PickleId>& arguments = pickle_.at(call.items.front()).items;
    const auto argument = [&](std::size_t index, PickleKind kind) -> const PickleValue& {
      if (index >= arguments.size() || pickle_.at(arguments[index]).kind != kind) {
        refuse("tensor {}: {} at byte {} has a wrong value number {}", name, call.global->name,
               call.at, index);
      }
      return pickle_.at(arguments[index]);
    };
    const bool is_parameter = call.global->kind == PickleGlobalKind::kRebuildParameter;
    const bool is_retyped = call.global->kind == PickleGlobalKind::kRebuildAs;
    const std::size_t hooks = is_parameter ? 2 : 5, expected = hooks + (is_retyped ? 2 : 1);
    // A dict after the values is PyTorch's metadata: negation or conjugation of the values.
    const bool is_plain =
        arguments.size() == expected || (!is_parameter && arguments.size() == expected + 1 &&
                                         pickle_.at(arguments.back()).kind == PickleKind::kNone);
    if (!is_plain) {
      refuse("tensor {}: {} at byte {} has {} values, where {} are read", name, call.global->name,
             call.at, arguments.size(), expected);
    }
    argument(hooks - 1, PickleKind::kBool);
    const PickleValue& hook_values = pickle_.at(arguments[hooks]);
    if (hook_values.kind != PickleKind::kNone &&
        !argument(hooks, PickleKind::kDict).items.empty()) {
      refuse("tensor {} has hooks at byte {}", name, hook_values.at);
    }
    if (is_parameter) {
      if (depth > 0) refuse("tensor {} is a parameter of a parameter", name);
      return read_call(argument(0, PickleKind::kCall), name, depth + 1);
    }
    PtTensor tensor;
    const PickleValue& storage = argument(0, PickleKind::kPersistent);
    tensor.first = argument(1, PickleKind::kInteger).integer;
    tensor.shape = numbers_of(argument(2, PickleKind::kTuple), name);
    tensor.strides = numbers_of(argument(3, PickleKind::kTuple), name);
    tensor.storage = find_storage(storage, tensor, name, is_retyped);
    if (is_retyped) take_dtype(tensor, argument(6, PickleKind::kGlobal), name);
    check_view(tensor, name);
    return tensor;
  }

  void take_dtype(PtTensor& tensor, const PickleValue& dtype, const std::string& name) const {
    if (dtype.global->kind != PickleGlobalKind::kDtype || dtype.global->dtype.empty()) {
      refuse("tensor {} has the dtype {}, which is not supported", name, dtype.global->name);
    }
    tensor.dtype = dtype.global->dtype;
  }

  std::vector<std::int64_t> numbers_of(const PickleValue& tuple, const std::string& name) const {
    if (tuple.items.size() > kMaxTensorDimensions) {
      refuse("tensor {} has more than {} dimensions", name, kMaxTensorDimensions);
    }
    std::vector<std::int64_t> numbers;
    numbers.reserve(tuple.items.size());
    for (const PickleId id : tuple.items) {
      const PickleValue& number = pickle_.at(id);
      if (number.kind != PickleKind::kInteger || number.integer < 0) {
        refuse("tensor {} has a size or stride at byte {} that is not a whole number from 0", name,
               number.at);
      }
      numbers.push_back(number.integer);
    }
    return numbers;
  }

  // ('storage', type, key, location, number of elements), as torch.save writes them.
  std::size_t find_storage(const PickleValue& persistent, PtTensor& tensor, const std::string& name,
                           bool is_retyped) {
    const PickleValue& tuple = pickle_.at(persistent.items.front());
    const auto is = [&](std::size_t index, PickleKind kind) {
      return pickle_.at(tuple.items[index]).kind == kind;
    };
    constexpr std::size_t kParts = 5;
    const bool is_sound =
        tuple.kind == PickleKind::kTuple && tuple.items.size() == kParts &&
        is(0, PickleKind::kText) && pickle_.text(pickle_.at(tuple.items[0])) == "storage" &&
        is(1, PickleKind::kGlobal) &&
        pickle_.at(tuple.items[1]).global->kind == PickleGlobalKind::kStorage &&
        is(2, PickleKind::kText) && is(3, PickleKind::kText) && is(4, PickleKind::kInteger);
    if (!is_sound) {
      refuse("tensor {}: the value at byte {} is not a storage", name, persistent.at);
    }
    const PickleGlobal& type = *pickle_.at(tuple.items[1]).global;
    if (type.dtype.empty() != is_retyped) {
      refuse("tensor {} has a storage of the type {} at byte {}", name, type.name, persistent.at);
    }
    tensor.dtype = type.dtype;
    const std::int64_t element_bytes = is_retyped ? 1 : dtype_bytes(type.dtype);
    const std::int64_t count = pickle_.at(tuple.items[4]).integer;
    std::int64_t bytes = 0;
    if (count < 0 || __builtin_mul_overflow(count, element_bytes, &bytes)) {
      refuse("tensor {} has a storage of {} elements", name, count);
    }
    const std::string key(pickle_.text(pickle_.at(tuple.items[2])));
    const auto [place, is_new] = numbers_.emplace(key, result_.storages.size());
    if (is_new) {
      result_.storages.push_back({key, bytes, static_cast<std::int64_t>(persistent.at)});
    } else if (result_.storages[place->second].bytes != bytes) {
      refuse("storage {} has {} bytes at byte {} and {} bytes at byte {}", shown(key),
             result_.storages[place->second].bytes, result_.storages[place->second].at, bytes,
             persistent.at);
    }
    return place->second;
  }

  // Checks that the last element is inside the storage and that the size does not overflow. The
  // stride of a dimension of size 1 is irrelevant and becomes 0.
  void check_view(PtTensor& tensor, const std::string& name) const {
    if (tensor.strides.size() != tensor.shape.size()) {
      refuse("tensor {} has {} dimensions and {} strides", name, tensor.shape.size(),
             tensor.strides.size());
    }
    const std::int64_t element_bytes = dtype_bytes(tensor.dtype);
    const PtStorage& storage = result_.storages[tensor.storage];
    const std::int64_t elements = storage.bytes / element_bytes;
    std::int64_t bytes = element_bytes, last = tensor.first;
    bool overflows = false, is_empty = false;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      is_empty = is_empty || tensor.shape[i] == 0;
      if (tensor.shape[i] == 1) tensor.strides[i] = 0;
      overflows = overflows || __builtin_mul_overflow(bytes, tensor.shape[i], &bytes);
    }
    for (std::size_t i = 0; i < tensor.shape.size() && !is_empty; ++i) {
      std::int64_t reach = 0;
      overflows = overflows ||
                  __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
                  __builtin_add_overflow(last, reach, &last);
    }
    if (overflows) refuse("tensor {} has a shape whose size overflows 64 bits", name);
    if (tensor.first < 0 || (!is_empty && last >= elements)) {
      refuse("tensor {} reaches to element {} of its storage, which has {}", name, last, elements);
    }
  }

  // Limits the size of expanded tensors beyond the stored bytes.
  void check_expanded() const {
    std::int64_t expanded = 0;
    for (const PtTensor& tensor : result_.tensors) {
      const std::int64_t bytes = pt_tensor_bytes(tensor) - result_.storages[tensor.storage].bytes;
      if (bytes > kMaxExpandedBytes ||
          (expanded += std::max<std::int64_t>(bytes, 0)) > kMaxExpandedBytes) {
        refuse("tensor {} is expanded: more than {} bytes would be made of those that are stored",
               shown(tensor.name), kMaxExpandedBytes);
      }
    }
  }

  const Pickle& pickle_;
  PtTensors result_;
  std::map<std::string, std::size_t> numbers_;  // storage numbers by key
  std::vector<Step> path_;
  std::size_t visits_ = 0;
  mutable std::size_t name_bytes_ = 0;  // total size of the keys in all names
};

}  // namespace

PtTensors find_pt_tensors(const Pickle& pickle) { return PtTensorFinder(pickle).find(); }

std::int64_t pt_tensor_bytes(const PtTensor& tensor) {
  std::int64_t bytes = dtype_bytes(tensor.dtype);
  for (const std::int64_t size : tensor.shape) bytes *= size;
  return bytes;
}

}  // namespace scaletrain::format
