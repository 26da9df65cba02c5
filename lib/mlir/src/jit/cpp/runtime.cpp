// What compiled code calls while it runs: memory that is accounted for, strided copies, 8-bit float conversions, and the
// way out when an assertion fails.
//
// A failing assertion or allocation, or a division that the processor refuses, leaves compiled code by siglongjmp into
// m2m_jit_invoke. Between the two there are only frames of compiled code and of functions below that own nothing, so
// nothing is skipped that would have to run; the buffers still allocated are in the session's table and are freed by
// m2m_jit_release.

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/CAPI/Support.h"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMessageLimit = 1024;

struct Session {
  sigjmp_buf exit;
  llvm::DenseMap<void *, size_t> live;
  size_t bytes = 0, peak = 0, limit = 0;
  char message[kMessageLimit] = {};
};

thread_local Session *session = nullptr;

[[noreturn]] void leave() { siglongjmp(session->exit, 1); }

[[noreturn]] void failAllocation(size_t size) {
  snprintf(session->message, kMessageLimit, "cannot allocate %zu bytes with %zu in use and a limit of %zu", size,
           session->bytes, session->limit);
  leave();
}

void *allocate(size_t size) {
  size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < size || rounded > session->limit || session->bytes > session->limit - rounded)
    failAllocation(size);
  void *memory = aligned_alloc(kAlignment, rounded ? rounded : kAlignment);
  if (!memory)
    failAllocation(size);
  session->live[memory] = rounded;
  session->bytes += rounded;
  if (session->bytes > session->peak)
    session->peak = session->bytes;
  return memory;
}

void *allocateZeroed(size_t count, size_t each) {
  if (each != 0 && count > SIZE_MAX / each)
    failAllocation(SIZE_MAX);
  void *memory = allocate(count * each);
  memset(memory, 0, count * each);
  return memory;
}

void release(void *memory) {
  auto found = session->live.find(memory);
  if (found == session->live.end())
    return;
  session->bytes -= found->second;
  session->live.erase(found);
  free(memory);
}

// cf.assert becomes puts(message) and abort().
int note(const char *message) {
  snprintf(session->message, kMessageLimit, "%s", message);
  return 0;
}

[[noreturn]] void failAssertion() { leave(); }

// The signal comes from an instruction of compiled code, in the thread that runs it, so leaving from here is sound. One
// that comes from elsewhere ends the process as it would have.
void failDivision(int) {
  if (!session) {
    signal(SIGFPE, SIG_DFL);
    return;
  }
  snprintf(session->message, kMessageLimit, "integer division by zero, or of the lowest integer by -1");
  leave();
}

void catchDivisions() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_handler = failDivision;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGFPE, &action, nullptr) == 0;
  }();
  (void)installed;
}

struct Unranked {
  int64_t rank;
  int64_t *descriptor; // allocated, aligned, offset, sizes…, strides…
};

char *start(const Unranked &view, int64_t size) {
  return reinterpret_cast<char *>(view.descriptor[1]) + view.descriptor[2] * size;
}

// Copies one axis after the other; rank is that of a tensor, so recursion is shallow.
void copyAxis(int64_t size, const Unranked &from, const Unranked &to, int64_t axis, const char *source, char *target) {
  if (axis == from.rank) {
    memcpy(target, source, size);
    return;
  }
  int64_t extent = from.descriptor[3 + axis];
  int64_t fromStep = from.descriptor[3 + from.rank + axis] * size, toStep = to.descriptor[3 + to.rank + axis] * size;
  if (axis + 1 == from.rank && fromStep == size && toStep == size) {
    memcpy(target, source, extent * size);
    return;
  }
  for (int64_t index = 0; index < extent; ++index)
    copyAxis(size, from, to, axis + 1, source + index * fromStep, target + index * toStep);
}

void copyMemref(int64_t size, const Unranked *from, const Unranked *to) {
  copyAxis(size, *from, *to, 0, start(*from, size), start(*to, size));
}

const llvm::fltSemantics &e5m2() { return llvm::APFloat::Float8E5M2(); }
const llvm::fltSemantics &e5m2fnuz() { return llvm::APFloat::Float8E5M2FNUZ(); }
const llvm::fltSemantics &e4m3() { return llvm::APFloat::Float8E4M3(); }
const llvm::fltSemantics &e4m3fn() { return llvm::APFloat::Float8E4M3FN(); }
const llvm::fltSemantics &e4m3fnuz() { return llvm::APFloat::Float8E4M3FNUZ(); }
const llvm::fltSemantics &e4m3b11fnuz() { return llvm::APFloat::Float8E4M3B11FNUZ(); }
const llvm::fltSemantics &e3m4() { return llvm::APFloat::Float8E3M4(); }
const llvm::fltSemantics &e8m0fnu() { return llvm::APFloat::Float8E8M0FNU(); }

template <const llvm::fltSemantics &(*Format)()>
float extend(uint8_t bits) {
  llvm::APFloat value(Format(), llvm::APInt(8, bits));
  bool lost;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return value.convertToFloat();
}

template <const llvm::fltSemantics &(*Format)()>
uint8_t truncate(double wide) {
  llvm::APFloat value(wide);
  bool lost;
  value.convert(Format(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return static_cast<uint8_t>(value.bitcastToAPInt().getZExtValue());
}

// Debian's libgcc lacks the conversions to bf16, and code for hosts without the instruction calls them. The result is
// returned in the low half of a float register.
float roundToBf16(uint32_t bits) {
  uint32_t rounded = (bits & 0x7FFFFFFF) > 0x7F800000 ? (bits >> 16) | 0x40 : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  float result;
  memcpy(&result, &rounded, sizeof result);
  return result;
}

float truncateSingleToBf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return roundToBf16(bits);
}

float truncateDoubleToBf16(double value) {
  llvm::APFloat exact(value);
  bool lost;
  exact.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &lost);
  uint32_t bits = static_cast<uint32_t>(exact.bitcastToAPInt().getZExtValue());
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

struct Symbol {
  const char *name;
  void *address;
};

template <class F>
Symbol symbol(const char *name, F *function) {
  return {name, reinterpret_cast<void *>(function)};
}

const Symbol kSymbols[] = {
    symbol("malloc", allocate),
    symbol("calloc", allocateZeroed),
    symbol("free", release),
    symbol("puts", note),
    symbol("abort", failAssertion),
    symbol("memrefCopy", copyMemref),
    symbol("__truncsfbf2", truncateSingleToBf16),
    symbol("__truncdfbf2", truncateDoubleToBf16),
    symbol("m2m_extend_f8E5M2", extend<e5m2>),
    symbol("m2m_extend_f8E5M2FNUZ", extend<e5m2fnuz>),
    symbol("m2m_extend_f8E4M3", extend<e4m3>),
    symbol("m2m_extend_f8E4M3FN", extend<e4m3fn>),
    symbol("m2m_extend_f8E4M3FNUZ", extend<e4m3fnuz>),
    symbol("m2m_extend_f8E4M3B11FNUZ", extend<e4m3b11fnuz>),
    symbol("m2m_extend_f8E3M4", extend<e3m4>),
    symbol("m2m_extend_f8E8M0FNU", extend<e8m0fnu>),
    symbol("m2m_truncate_f8E5M2", truncate<e5m2>),
    symbol("m2m_truncate_f8E5M2FNUZ", truncate<e5m2fnuz>),
    symbol("m2m_truncate_f8E4M3", truncate<e4m3>),
    symbol("m2m_truncate_f8E4M3FN", truncate<e4m3fn>),
    symbol("m2m_truncate_f8E4M3FNUZ", truncate<e4m3fnuz>),
    symbol("m2m_truncate_f8E4M3B11FNUZ", truncate<e4m3b11fnuz>),
    symbol("m2m_truncate_f8E3M4", truncate<e3m4>),
    symbol("m2m_truncate_f8E8M0FNU", truncate<e8m0fnu>),
};

} // namespace

// The functions compiled code may call by name, one after the other; null past the last.
extern "C" const char *m2m_jit_symbol(size_t index, void **address) {
  if (index >= sizeof kSymbols / sizeof *kSymbols)
    return nullptr;
  *address = kSymbols[index].address;
  return kSymbols[index].name;
}

extern "C" void *m2m_jit_open(size_t limit) {
  auto *made = new Session;
  made->limit = limit;
  return made;
}

// Calls a packed function; false when it left early, with the reason in m2m_jit_message.
extern "C" bool m2m_jit_invoke(void *opaque, void (*function)(void **), void **arguments) {
  Session *outer = session;
  session = static_cast<Session *>(opaque);
  catchDivisions();
  bool completed = sigsetjmp(session->exit, 1) == 0;
  if (completed)
    function(arguments);
  session = outer;
  return completed;
}

extern "C" const char *m2m_jit_message(void *opaque) { return static_cast<Session *>(opaque)->message; }

extern "C" size_t m2m_jit_peak(void *opaque) { return static_cast<Session *>(opaque)->peak; }

// Frees everything that compiled code left allocated, results included, and the session.
extern "C" void m2m_jit_release(void *opaque) {
  auto *ended = static_cast<Session *>(opaque);
  for (auto &entry : ended->live)
    free(entry.first);
  delete ended;
}
