// Loads NVML, the driver's library, at run time, so that machines without a GPU do not need it.
#pragma once

#include <dlfcn.h>

#include <array>
#include <string>

namespace scaletrain::launcher {

// Its functions by their names in nvml.h; they return 0 for success.
class Nvml {
 public:
  using Handle = void*;

  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~Nvml() {
    if (ready_) call<int()>("nvmlShutdown");
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_there() const { return library_ != nullptr; }
  // Returns 0 or an error code.
  int start() {
    const int status = call<int()>("nvmlInit_v2");
    ready_ = status == 0;
    return status;
  }

  // Returns -1 if the library does not have the function. The library's structs are types of its
  // own, which the sanitizer's comparison of function types takes for other ones.
  template <class Signature, class... Args>
#if defined(__clang__)
  __attribute__((no_sanitize("function")))
#endif
  int call(const char* name, Args... arguments) const {
    auto* const function = reinterpret_cast<Signature*>(dlsym(library_, name));
    return function == nullptr ? -1 : function(arguments...);
  }

  std::string text(const char* name, Handle device) const {
    std::array<char, 96> buffer{};
    const int status = call<int(Handle, char*, unsigned)>(name, device, buffer.data(),
                                                          static_cast<unsigned>(buffer.size()));
    return status == 0 ? buffer.data() : "";
  }

 private:
  void* library_;
  bool ready_ = false;
};

}  // namespace scaletrain::launcher
