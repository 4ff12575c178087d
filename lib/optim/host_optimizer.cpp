#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "lib/optim/optimizer.h"
#include "lib/optim/parameter_group.h"
#include "lib/optim/state_file.h"
#include "lib/units/host_update.h"

namespace scaletrain::optim {
namespace {

// Returns a host tensor in the layout of `tensor`; pinned for a device tensor, so that copies need
// no staging buffer.
at::Tensor twin_of(const at::Tensor& tensor) {
  const bool pinned = !tensor.device().is_cpu();
  return at::empty_like(tensor.detach(), tensor.options().device(at::kCPU).pinned_memory(pinned));
}

// Records an event after all work queued on `device`; nullopt if nothing is queued.
std::optional<c10::Event> event_on(at::Device device) {
  if (device.is_cpu()) return std::nullopt;
  c10::Event event(device.type());
  event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  return event;
}

void wait_for(const std::optional<c10::Event>& event) {
  if (event) event->synchronize();
}

// Parameters that are updated at a time.
struct Portion {
  std::vector<NamedParameter> parameters, twins;  // the model's, and their host copies
  std::unique_ptr<Optimizer> optimizer;           // updates the twins
  std::optional<c10::Event> arrived;              // its gradients in this step

  void take_weights() const {
    for (std::size_t i = 0; i < twins.size(); ++i) {
      if (!parameters[i].on_host) twins[i].tensor.copy_(parameters[i].tensor.detach(), true);
    }
  }
  void give_weights() const {
    for (std::size_t i = 0; i < twins.size(); ++i) {
      if (!parameters[i].on_host) parameters[i].tensor.detach().copy_(twins[i].tensor, true);
    }
  }

  void take_gradients() {
    at::Device device = at::kCPU;
    for (std::size_t i = 0; i < twins.size(); ++i) {
      const at::Tensor gradient = parameters[i].tensor.grad();
      at::Tensor& copy = twins[i].tensor.mutable_grad();
      if (!gradient.defined()) {
        copy.reset();
        continue;
      }
      if (!copy.defined() || copy.strides() != gradient.strides()) copy = twin_of(gradient);
      copy.copy_(gradient, /*non_blocking=*/true);
      device = gradient.device();
    }
    arrived = event_on(device);
  }

  void begin_updates() const {
    for (const NamedParameter& parameter : parameters) parameter.on_host->begin();
  }
  void end_updates(const std::exception_ptr& error) const {
    for (const NamedParameter& parameter : parameters) parameter.on_host->end(error);
  }

  // State that aliases parameters refers to the model's, which are filled from a checkpoint.
  units::Shards state() const {
    units::Shards named = optimizer->state();
    for (auto& [name, shard] : named) {
      if (const auto i = twin_under(shard.tensor)) shard.tensor = parameters[*i].tensor.detach();
    }
    return named;
  }

  // Returns the state tensors that do not alias a parameter.
  std::vector<at::Tensor> state_for_file() const {
    std::vector<at::Tensor> tensors;
    for (const auto& [name, shard] : optimizer->state()) {
      if (!twin_under(shard.tensor)) tensors.push_back(shard.tensor);
    }
    return tensors;
  }

 private:
  std::optional<std::size_t> twin_under(const at::Tensor& tensor) const {
    const auto found = std::find_if(twins.begin(), twins.end(), [&](const NamedParameter& twin) {
      return tensor.is_alias_of(twin.tensor);
    });
    if (found == twins.end()) return std::nullopt;
    return static_cast<std::size_t>(found - twins.begin());
  }
};

std::vector<Portion> divide(const std::vector<NamedParameter>& parameters, std::int64_t elements) {
  std::vector<Portion> portions(1);  // one even without parameters
  std::int64_t count = 0;
  for (const NamedParameter& parameter : parameters) {
    const std::int64_t own = parameter.tensor.numel();
    if (count > 0 && count + own > elements) {
      portions.emplace_back();
      count = 0;
    }
    count += own;
    portions.back().parameters.push_back(parameter);
    NamedParameter twin = parameter;
    twin.tensor = parameter.on_host ? parameter.tensor.detach() : twin_of(parameter.tensor);
    portions.back().twins.push_back(std::move(twin));
  }
  return portions;
}

// A thread that runs one task of its owner at a time.
class Beside {
 public:
  Beside() : thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~Beside() = default;  // waits for a begun task
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  void begin(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      task_ = std::move(task);
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !task_; });
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return task_ != nullptr; })) {
      lock.unlock();
      task_();
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::function<void()> task_;  // empty: no task
  std::jthread thread_;         // the last: it is joined first
};

class HostOptimizer : public Optimizer {
 public:
  HostOptimizer(const MakeOptimizer& make, const std::vector<NamedParameter>& parameters,
                const HostOptions& options)
      : portions_(divide(parameters, options.portion)) {
    if (!options.folder.empty()) file_ = std::make_unique<StateFile>(options.folder);
    for (Portion& portion : portions_) {
      portion.optimizer = make(portion.twins);
      link_numbers(portion);
      if (file_) file_->add(portion.state_for_file());
    }
    const bool are_on_host = std::ranges::all_of(
        parameters, [](const NamedParameter& one) { return one.on_host != nullptr; });
    if (are_on_host && !parameters.empty()) beside_ = std::make_unique<Beside>();
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    settle();
    for (const auto& [leader, follower] : numbers_) follower.copy_(leader);
    if (file_) file_->fetch(0);
    take_weights();
    std::optional<at::Tensor> left_out;
    std::optional<c10::Event> known;
    if (found_inf) {
      left_out = twin_of(*found_inf);
      left_out->copy_(*found_inf, /*non_blocking=*/true);
      known = event_on(found_inf->device());
    }
    for (Portion& portion : portions_) portion.take_gradients();
    if (!beside_) {
      wait_for(known);
      for (std::size_t i = 0; i < portions_.size(); ++i) update(i, lr, left_out);
      return;
    }
    for (const Portion& portion : portions_) portion.begin_updates();
    auto known_later = std::make_shared<std::optional<c10::Event>>(std::move(known));
    beside_->begin(
        [this, lr, left_out, known_later] { update_beside(lr, left_out, *known_later); });
  }

  void settle() override {
    if (!beside_) return;
    beside_->wait();
    if (error_) std::rethrow_exception(error_);
  }

  void set_weight_decay(double weight_decay) override {
    settle();
    for (const Portion& portion : portions_) portion.optimizer->set_weight_decay(weight_decay);
  }

  units::Shards state() override {
    settle();
    if (file_) file_->finish();
    units::Shards named;
    for (const Portion& portion : portions_) named.merge(portion.state());
    return named;
  }

  void resume_at(std::int64_t step) override {
    settle();
    for (const Portion& portion : portions_) portion.optimizer->resume_at(step);
  }

  std::map<std::string, at::Tensor> evaluation_weights() override {
    settle();
    take_weights();
    if (file_) file_->finish();
    std::map<std::string, at::Tensor> named;
    for (const Portion& portion : portions_) named.merge(portion.optimizer->evaluation_weights());
    return named;
  }
  bool has_evaluation_weights() const override {
    return portions_.front().optimizer->has_evaluation_weights();
  }

 private:
  // The numbers of the whole optimizer, which several portions have by the same name, are those of
  // the first one: a state that is filled in fills these, and the others follow.
  void link_numbers(const Portion& portion) {
    for (const auto& [name, shard] : portion.optimizer->state()) {
      const auto [leader, is_first] = leaders_.emplace(name, shard.tensor);
      if (!is_first) numbers_.emplace_back(leader->second, shard.tensor);
    }
  }

  void update(std::size_t number, double lr, const std::optional<at::Tensor>& left_out) {
    Portion& portion = portions_[number];
    wait_for(portion.arrived);
    if (file_) {
      file_->enter(number);
      if (number + 1 < portions_.size()) file_->fetch(number + 1);
    }
    portion.optimizer->step(lr, left_out);
    if (file_) file_->leave(number);
    portion.give_weights();
  }

  // An error is rethrown to all that wait for parameters, and to the next caller.
  void update_beside(double lr, const std::optional<at::Tensor>& left_out,
                     const std::optional<c10::Event>& known) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < portions_.size(); ++i) {
      try {
        if (i == 0) wait_for(known);
        if (!error_) update(i, lr, left_out);
      } catch (...) {
        error_ = std::current_exception();
      }
      portions_[i].end_updates(error_);
    }
  }

  // Called once; from then on only this object changes the weights.
  void take_weights() {
    if (std::exchange(has_weights_, true)) return;
    for (const Portion& portion : portions_) portion.take_weights();
    for (const Portion& portion : portions_) {
      if (portion.parameters.empty()) continue;
      wait_for(event_on(portion.parameters.front().tensor.device()));
    }
  }

  // Destroyed last, since the state's tensors use its memory. Null: the state is in memory.
  std::unique_ptr<StateFile> file_;
  std::vector<Portion> portions_;
  std::map<std::string, at::Tensor> leaders_;
  std::vector<std::pair<at::Tensor, at::Tensor>> numbers_;  // pairs of (source, destination)
  bool has_weights_ = false;
  std::exception_ptr error_;        // thrown by an asynchronous update
  std::unique_ptr<Beside> beside_;  // destroyed first
};

}  // namespace

std::unique_ptr<Optimizer> make_host_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters,
                                               const HostOptions& options) {
  return make_host_optimizer(
      [&config](std::vector<NamedParameter> twins) {
        return make_optimizer(config, std::move(twins));
      },
      parameters, options);
}

std::unique_ptr<Optimizer> make_host_optimizer(const MakeOptimizer& make,
                                               const std::vector<NamedParameter>& parameters,
                                               const HostOptions& options) {
  return std::make_unique<HostOptimizer>(make, parameters, options);
}

}  // namespace scaletrain::optim
