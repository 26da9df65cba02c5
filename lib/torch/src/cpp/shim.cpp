// The one place that speaks PyTorch's C++: a flat C interface over its dispatcher and its tensors.
//
// Every function that can fail returns null or -1 and leaves a message for m2m_error. Values cross as Value, whose
// twin is in ffi.rs. Lists and strings in results belong to the calling thread until its next call; tensors in results
// belong to the caller, who frees them with m2m_tensor_free.

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ScalarOps.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <deque>
#include <sstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

using c10::IValue;
using c10::TypeKind;

namespace {

enum Tag : int32_t { ABSENT, NONE, TENSOR, INT, FLOAT, BOOL, STRING, LIST, COMPLEX };

struct Value {
  int32_t tag;
  int32_t unused;
  int64_t integer;
  double real;
  double imaginary;
  const void* pointer;
  size_t count;
};

thread_local std::string error;

template <class Result, class Body>
Result guarded(Result failed, Body body) {
  try {
    return body();
  } catch (const c10::Error& e) {
    error = e.what_without_backtrace();
  } catch (const std::exception& e) {
    error = e.what();
  } catch (...) {
    error = "an exception that says nothing";
  }
  return failed;
}

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

const at::Tensor& tensor(const void* pointer) { return *static_cast<const at::Tensor*>(pointer); }

const char* kind(const Value& v) {
  static const char* const names[] = {"absent", "None", "a tensor", "an integer", "a float", "a bool", "a string", "a list", "a complex number"};
  return v.tag >= ABSENT && v.tag <= COMPLEX ? names[v.tag] : "of unknown kind";
}

c10::Scalar want_scalar(const Value& v) {
  switch (v.tag) {
    case INT: return v.integer;
    case FLOAT: return v.real;
    case BOOL: return v.integer != 0;
    case COMPLEX: return c10::complex<double>(v.real, v.imaginary);
    case TENSOR: return tensor(v.pointer).item();
    default: fail(std::string("expected a number, it is ") + kind(v));
  }
}

int64_t want_int(const Value& v) {
  if (v.tag == INT || v.tag == BOOL) return v.integer;
  auto scalar = want_scalar(v);
  if (!scalar.isIntegral(true)) fail(std::string("expected an integer, it is ") + kind(v));
  return scalar.toLong();
}

double want_float(const Value& v) { return v.tag == FLOAT ? v.real : want_scalar(v).toDouble(); }

bool want_bool(const Value& v) { return v.tag == BOOL ? v.integer != 0 : want_scalar(v).toBool(); }

std::string want_string(const Value& v) {
  if (v.tag != STRING) fail(std::string("expected a string, it is ") + kind(v));
  return std::string(static_cast<const char*>(v.pointer), v.count);
}

at::Tensor want_tensor(const Value& v) {
  if (v.tag == TENSOR) return tensor(v.pointer);
  if (v.tag == NONE || v.tag == STRING || v.tag == LIST) fail(std::string("expected a tensor, it is ") + kind(v));
  // A Python number where a tensor stands promotes as a number, not as a tensor.
  at::Tensor wrapped = c10::scalar_to_tensor(want_scalar(v));
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

template <class T, class Want>
IValue list_of(const Value& v, std::optional<int32_t> size, Want want) {
  c10::List<T> list;
  if (v.tag == LIST) {
    auto items = static_cast<const Value*>(v.pointer);
    list.reserve(v.count);
    for (size_t k = 0; k < v.count; k++) list.push_back(want(items[k]));
    return list;
  }
  // One number stands for a list of a stated length.
  if (!size) fail(std::string("expected a list, it is ") + kind(v));
  for (int32_t k = 0; k < *size; k++) list.push_back(want(v));
  return list;
}

IValue coerce(const Value& v, const c10::Type& type, std::optional<int32_t> size);

IValue coerce_list(const Value& v, const c10::TypePtr& element, std::optional<int32_t> size) {
  switch (element->kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType: return list_of<int64_t>(v, size, want_int);
    case TypeKind::FloatType: return list_of<double>(v, size, want_float);
    case TypeKind::BoolType: return list_of<bool>(v, size, want_bool);
    case TypeKind::TensorType: return list_of<at::Tensor>(v, std::nullopt, want_tensor);
    default: break;
  }
  if (v.tag != LIST) fail(std::string("expected a list, it is ") + kind(v));
  c10::impl::GenericList list(element);
  auto items = static_cast<const Value*>(v.pointer);
  for (size_t k = 0; k < v.count; k++) list.push_back(coerce(items[k], *element, std::nullopt));
  return list;
}

IValue coerce(const Value& v, const c10::Type& type, std::optional<int32_t> size) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      if (v.tag == NONE) return IValue();
      return coerce(v, *type.expectRef<c10::OptionalType>().getElementType(), size);
    case TypeKind::TensorType: return want_tensor(v);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType: return want_int(v);
    case TypeKind::FloatType:
    case TypeKind::SymFloatType: return want_float(v);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType: return want_bool(v);
    case TypeKind::NumberType: return want_scalar(v);
    case TypeKind::StringType: return want_string(v);
    case TypeKind::DeviceObjType: return c10::Device(want_string(v));
    case TypeKind::ListType: return coerce_list(v, type.expectRef<c10::ListType>().getElementType(), size);
    default: fail("its type " + type.str() + " cannot be given from here");
  }
}

// What the last call of this thread returned, kept until the next one.
struct Arena {
  std::vector<Value> results;
  std::deque<std::vector<Value>> lists;
  std::deque<std::string> strings;
};

thread_local Arena arena;
thread_local c10::Stack stack;

Value give(const IValue& v) {
  Value out{NONE, 0, 0, 0, 0, nullptr, 0};
  if (v.isTensor()) {
    if (!v.toTensor().defined()) return out;
    out.tag = TENSOR;
    out.pointer = new at::Tensor(v.toTensor());
  } else if (v.isInt()) {
    out.tag = INT, out.integer = v.toInt();
  } else if (v.isDouble()) {
    out.tag = FLOAT, out.real = v.toDouble();
  } else if (v.isBool()) {
    out.tag = BOOL, out.integer = v.toBool();
  } else if (v.isComplexDouble()) {
    out.tag = COMPLEX, out.real = v.toComplexDouble().real(), out.imaginary = v.toComplexDouble().imag();
  } else if (v.isString()) {
    auto& text = arena.strings.emplace_back(v.toStringRef());
    out.tag = STRING, out.pointer = text.data(), out.count = text.size();
  } else if (v.isList() || v.isTuple()) {
    std::vector<Value> items;
    if (v.isTuple()) {
      for (auto& item : v.toTupleRef().elements()) items.push_back(give(item));
    } else {
      for (const IValue& item : v.toListRef()) items.push_back(give(item));
    }
    auto& kept = arena.lists.emplace_back(std::move(items));
    out.tag = LIST, out.pointer = kept.data(), out.count = kept.size();
  } else if (!v.isNone()) {
    fail("a result of type " + v.tagKind() + " cannot be taken from here");
  }
  return out;
}

struct Quiet : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

c10::OperatorHandle& handle(void* op) { return *static_cast<c10::OperatorHandle*>(op); }

}  // namespace

EXPORT const char* m2m_error(size_t* length) {
  *length = error.size();
  return error.data();
}

EXPORT const char* m2m_torch_version() { return TORCH_VERSION; }

// Nothing here needs gradients; warnings would go to stderr in a form that is not ours.
EXPORT void m2m_start(int32_t threads) {
  static Quiet quiet;
  c10::WarningUtils::set_warning_handler(&quiet);
  at::GradMode::set_enabled(false);
  if (threads > 0) at::set_num_threads(threads);
}

EXPORT int32_t m2m_seed(uint64_t seed) {
  return guarded(-1, [&] {
    at::manual_seed(seed);
    return 0;
  });
}

// Operators live as long as the process, so their handles are never freed.
EXPORT void* m2m_find(const char* name, const char* overload) {
  return guarded<void*>(nullptr, [&]() -> void* {
    auto found = c10::Dispatcher::singleton().findSchema({name, overload});
    if (!found) return error.clear(), nullptr;
    return new c10::OperatorHandle(*found);
  });
}

EXPORT size_t m2m_argument_count(void* op) { return handle(op).schema().arguments().size(); }

EXPORT const char* m2m_argument_name(void* op, size_t index, size_t* length) {
  auto& arguments = handle(op).schema().arguments();
  if (index >= arguments.size()) return nullptr;
  *length = arguments[index].name().size();
  return arguments[index].name().data();
}

EXPORT const char* m2m_schema(void* op, size_t* length) {
  return guarded<const char*>(nullptr, [&] {
    std::ostringstream text;
    text << handle(op).schema();
    error = text.str();
    *length = error.size();
    return error.data();
  });
}

// Names and overloads of all operators, a line each.
EXPORT const char* m2m_operators(size_t* length) {
  return guarded<const char*>(nullptr, [&] {
    std::string text;
    for (auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (!c10::Dispatcher::singleton().findSchema(name)) continue;
      text += name.name + "." + (name.overload_name.empty() ? "default" : name.overload_name) + "\n";
    }
    error = std::move(text);
    *length = error.size();
    return error.data();
  });
}

EXPORT int32_t m2m_call(void* op, const Value* values, size_t count, const Value** results, size_t* result_count) {
  auto called = guarded(-1, [&] {
    arena.results.clear(), arena.lists.clear(), arena.strings.clear();
    stack.clear();
    auto& arguments = handle(op).schema().arguments();
    stack.reserve(arguments.size());
    for (size_t k = 0; k < arguments.size(); k++) {
      auto& argument = arguments[k];
      if (k >= count || values[k].tag == ABSENT) {
        if (!argument.default_value()) fail("argument " + argument.name() + " is missing");
        stack.push_back(*argument.default_value());
        continue;
      }
      try {
        stack.push_back(coerce(values[k], *argument.real_type(), argument.N()));
      } catch (const std::exception& e) {
        auto c10_error = dynamic_cast<const c10::Error*>(&e);
        fail("argument " + argument.name() + ": " + (c10_error ? c10_error->what_without_backtrace() : e.what()));
      }
    }
    handle(op).callBoxed(stack);
    for (auto& result : stack) arena.results.push_back(give(result));
    return 0;
  });
  stack.clear();
  *results = arena.results.data();
  *result_count = arena.results.size();
  return called;
}

struct Info {
  int32_t dtype;
  int32_t is_dense;
  size_t rank;
  const int64_t* sizes;
  const int64_t* strides;
  const void* data;
  int64_t count;
  int64_t version;
};

EXPORT int32_t m2m_tensor_info(const void* t, Info* out) {
  return guarded(-1, [&] {
    auto& it = tensor(t);
    bool dense = it.layout() == c10::kStrided && it.device().is_cpu();
    *out = Info{static_cast<int32_t>(it.scalar_type()), dense, static_cast<size_t>(it.dim()), it.sizes().data(),
                dense ? it.strides().data() : nullptr, dense ? it.const_data_ptr() : nullptr, it.numel(),
                static_cast<int64_t>(it._version())};
    return 0;
  });
}

EXPORT void* m2m_tensor_clone(const void* t) { return new at::Tensor(tensor(t)); }

EXPORT void m2m_tensor_free(void* t) { delete static_cast<at::Tensor*>(t); }

// A tensor over memory that the caller keeps alive.
EXPORT void* m2m_tensor_over(void* data, int32_t dtype, size_t rank, const int64_t* sizes, const int64_t* strides) {
  return guarded<void*>(nullptr, [&]() -> void* {
    auto options = at::TensorOptions().dtype(static_cast<c10::ScalarType>(dtype));
    return new at::Tensor(at::from_blob(data, {sizes, rank}, {strides, rank}, options));
  });
}

EXPORT void* m2m_tensor_empty(int32_t dtype, size_t rank, const int64_t* sizes) {
  return guarded<void*>(nullptr, [&]() -> void* {
    auto options = at::TensorOptions().dtype(static_cast<c10::ScalarType>(dtype));
    return new at::Tensor(at::empty(at::IntArrayRef(sizes, rank), options));
  });
}

// The elements row-major on the CPU, with no lazy conjugation or negation; the same tensor where it already is so.
EXPORT void* m2m_tensor_plain(const void* t) {
  return guarded<void*>(nullptr, [&]() -> void* {
    return new at::Tensor(tensor(t).cpu().resolve_conj().resolve_neg().contiguous());
  });
}

struct Autocast {
  int32_t device;
  int32_t was_enabled;
  int32_t was_dtype;
  int32_t was_cached;
};

EXPORT int32_t m2m_autocast_enter(const char* device, int32_t dtype, int32_t enabled, int32_t cached, Autocast* saved) {
  return guarded(-1, [&] {
    auto type = c10::Device(std::string(device)).type();
    *saved = Autocast{static_cast<int32_t>(type), at::autocast::is_autocast_enabled(type),
                      static_cast<int32_t>(at::autocast::get_autocast_dtype(type)), at::autocast::is_autocast_cache_enabled()};
    at::autocast::set_autocast_enabled(type, enabled != 0);
    if (dtype >= 0) at::autocast::set_autocast_dtype(type, static_cast<c10::ScalarType>(dtype));
    at::autocast::set_autocast_cache_enabled(cached != 0);
    at::autocast::increment_nesting();
    return 0;
  });
}

EXPORT void m2m_autocast_exit(const Autocast* saved) {
  auto type = static_cast<c10::DeviceType>(saved->device);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(type, saved->was_enabled != 0);
  at::autocast::set_autocast_dtype(type, static_cast<c10::ScalarType>(saved->was_dtype));
  at::autocast::set_autocast_cache_enabled(saved->was_cached != 0);
}
