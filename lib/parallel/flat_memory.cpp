#include "lib/parallel/flat_memory.h"

#include <ATen/ops/empty.h>

namespace scaletrain::parallel {

void give_memory_back(const at::Tensor& whole) {
  c10::StorageImpl& storage = *whole.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, whole.device()));
  storage.set_nbytes(0);
}

void take_memory(const at::Tensor& whole) {
  c10::StorageImpl& storage = *whole.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(storage.allocator()->allocate(whole.nbytes()));
  storage.set_nbytes(whole.nbytes());
}

at::Tensor same_memory_as(const at::Tensor& whole, at::ScalarType type) {
  const at::Tensor other = at::empty({0}, whole.options().dtype(type));
  return other.set_(whole.storage(), 0, whole.sizes(), whole.strides());
}

}  // namespace scaletrain::parallel
